"""The inverted interval of a group: it knows its channels from what is published, and holds where few hold a value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.registry import PROTOCOLS
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR
from pldp.estimate.answer import answer
from pldp.estimate.combine import Levels
from pldp.estimate.ends import invert_table
from pldp.estimate.groups import GroupLevels, group_ends
from pldp.estimate.invert import ANYTHING, Cover, make_table
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.estimate.people import PARTS, SHARES, five_levels, one_cell
from tests.pldp.groups import combine_group, group_interval
from tests.pldp.world import z_bound


def published(protocols: tuple[PureProtocol, ...], frequency: Floats, n: Counts, g: int) -> GroupLevels:
    parts = [[float(one.moments[name]) for one in protocols] for name in protocols[0].moments]
    own, other, slope, base = (np.array(part) for part in parts)
    return GroupLevels(n, frequency, own, other, slope, base, g)


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("budget", [Fraction(1, 2), Fraction(4), Fraction(15)], ids=str)
def test_the_channels_follow_from_the_published_noise(name: str, budget: Fraction) -> None:
    protocol = PROTOCOLS[name].for_budget(9, budget)
    n = np.array([100])
    single = published((protocol,), np.zeros(1), n, 1).channels
    assert single is not None
    assert (single.p[0], single.q[0]) == pytest.approx((protocol.p, protocol.q), rel=1e-6, abs=1e-12)
    group = published((protocol,), np.zeros(1), n, 3).channels
    # Two values are never supported together where one report names one value.
    assert (group is not None) == (protocol.exact_pairs[1] == 0)
    if group is not None:
        assert group.p[0] == pytest.approx(protocol.p + 2 * protocol.q, rel=1e-6)
        assert group.q[0] == pytest.approx(3 * protocol.q, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 1.3, ANYTHING])
def test_a_group_of_one_value_has_that_value_s_interval(gamma: float, seed: int) -> None:
    sizes, protocols = five_levels(7, 6, 1000)
    levels, _ = one_cell(40, sizes, protocols, 1, np.random.default_rng(seed))
    method = "oc+" if gamma == 1 else "sum"
    expected = answer(method, levels, Cover(gamma))
    found = published(protocols, levels.frequencies[0, :, 0], sizes, 1)
    ends = group_ends(method, found, Cover(gamma), float(expected.combined.frequency[0, 0]))
    assert ends is not None
    assert (ends.low[0], ends.high[0]) == pytest.approx((expected.low[0, 0], expected.high[0, 0]), abs=1e-9)


def test_bits_that_are_set_together_keep_the_score_interval() -> None:
    protocols = tuple(BRR.for_budget(7, 6 * part) for part in PARTS)
    levels = published(protocols, np.full(5, 0.1), whole_counts(SHARES, 1000), 3)
    assert group_ends("oc+", levels, Cover(), 0.1) is None


@pytest.mark.parametrize("kind", [KRR, Subset])
@pytest.mark.parametrize("holders", [0, 1, 60])
def test_it_holds_for_groups_of_few_people(kind: type[PureProtocol], holders: int, seed: int) -> None:
    # Four of 33 values, ε = 20, levels of 70 … 1 %: the score interval covers one person in 0.92. At ε = 20 subset
    # selection takes sets of one. 1,500 repetitions, α = 1e-6, half a per cent for the grid of the law.
    repeats, n, size, g = 1500, 1000, 33, 4
    rng = np.random.default_rng(seed)
    sizes, protocols = whole_counts(SHARES, n), tuple(kind.for_budget(size, 20 * part) for part in PARTS)
    counts = np.zeros(size, dtype=np.int64)
    counts[0], counts[g:] = holders, whole_counts(np.ones(size - g), n - holders)
    support = draw_support(draw_levels(counts, sizes, repeats, rng), protocols, rng)
    estimates = np.stack([one.estimate(support[:, i], int(sizes[i])) for i, one in enumerate(protocols)], axis=1)
    merged = estimates[:, :, :g].sum(axis=-1, keepdims=True)
    levels = published(protocols, merged[0, :, 0], sizes, g)
    table = make_table("oc+", sizes, levels.noise, levels.channels, Cover())
    ends = invert_table(table, merged)
    truth = holders / n
    covered = np.mean((ends.low <= truth + 1e-12) & (truth <= ends.high + 1e-12))
    slack = z_bound() * np.sqrt(0.95 * 0.05 / repeats) + 0.005
    assert abs(covered - 0.95) < slack
    if holders == 1:
        group = Levels(estimates, sizes, protocols)
        score = group_interval(combine_group("oc+", group, range(g)), group, g, 1.959964)
        assert (ends.high - ends.low).mean() < 0.8 * (score.high - score.low).mean()
        # The twin: read as if the budget were a tenth, it could not tell as much.
        wrong = tuple(kind.for_budget(size, 2 * part) for part in PARTS)
        other = published(wrong, merged[0, :, 0], sizes, g)
        far = invert_table(make_table("oc+", sizes, other.noise, other.channels, Cover()), merged)
        assert (far.high - far.low).mean() > 2 * (ends.high - ends.low).mean()
