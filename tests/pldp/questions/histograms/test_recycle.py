from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, exp_below, log_above
from pldp.channels.krr import KRR
from pldp.channels.olh import OLH
from pldp.channels.protocol import Counts, PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE
from pldp.estimate.combine import Combined, combine_linear, estimate_levels
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.recycle.recycle import clear, recycle
from pldp.questions.histograms.recycle.sets import RecycledKRR, RecycledSubset
from pldp.questions.histograms.recycle.unary import Recycled, RecycledBRR, RecycledOUE
from tests.pldp.channels.laws import channel
from tests.pldp.world import z_bound, zipf

KINDS: list[type[PureProtocol]] = [BRR, KRR, OUE, Subset]


def cleared_estimate(support: Counts, n: Counts, protocols: tuple[PureProtocol, ...]) -> Combined:
    return combine_linear("oc+", estimate_levels(support, n, protocols))


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_of_budgets_adds_up_to_nothing(kind: type[PureProtocol]) -> None:
    """Each step starts from the one before: all reports together are a Markov chain, so the first of them tells most.

    Enumerated for two values: the worst ratio over pairs of reports at budgets 1 and 1/2 is that of the first alone;
    drawn independently it would be more.
    """
    start = kind.for_budget(2, Fraction(4))
    one = recycle(start, Fraction(1))
    half = recycle(one, Fraction(1, 2))
    assert half.worst_ratio <= exp_below(Fraction(1, 2))
    assert half.before == (one.again,)
    afresh = recycle(start, Fraction(1, 2))
    assert float(half.exact_p) == pytest.approx(float(afresh.exact_p), rel=1e-12), "the same law, another origin"

    def law(protocol: PureProtocol, x: int, z: tuple[int, ...]) -> Fraction:
        """Bits of a unary report, or the one value of k-RR."""
        if isinstance(protocol, RecycledKRR | KRR | RecycledSubset | Subset):  # of two values, a set is one of them
            return protocol.exact_p if z == (x,) else protocol.exact_q
        out = Fraction(1)
        for j, bit in enumerate(z):
            chance = protocol.exact_p if j == x else protocol.exact_q
            out *= chance if bit else 1 - chance
        return out

    outcomes = [(0,), (1,)] if kind in (KRR, Subset) else [(0, 0), (0, 1), (1, 0), (1, 1)]
    independent = max(
        law(one, 0, z) * law(afresh, 0, y) / (law(one, 1, z) * law(afresh, 1, y)) for z in outcomes for y in outcomes
    )
    chained = max(law(one, 0, z) / law(one, 1, z) for z in outcomes)  # what follows z no longer depends on x
    assert chained == one.worst_ratio
    assert independent > exp_below(Fraction(1))


def test_the_stated_figure() -> None:
    # methods.md: from 2 to 1 a bit is kept with r = (p_a + p_d − 1)/(2 p_a − 1) = 0.765.
    found = recycle(BRR.for_budget(16, Fraction(2)), Fraction(1))
    assert float(found.retain) == pytest.approx(0.765, abs=5e-4)
    assert found.p == pytest.approx(BRR.for_budget(16, Fraction(1)).p, abs=1e-15)


@given(
    st.sampled_from(KINDS),
    st.integers(2, 40),
    st.fractions(Fraction(1, 1000), 20, max_denominator=1000),
    st.fractions(Fraction(1, 1000), 1, max_denominator=1000),
)
def test_the_promise_is_kept_exactly_and_no_more(
    kind: type[PureProtocol], size: int, budget: Fraction, part: Fraction
) -> None:
    epsilon = budget * part * Fraction(99, 100)
    found = recycle(kind.for_budget(size, budget), epsilon)
    assert found.worst_ratio <= exp_below(epsilon)
    assert log_above(found.worst_ratio) <= float(epsilon) * (1 + 1e-15) + 1e-300
    # The next threshold would break it: nothing is given away.
    assert replace(found, again=found.again + 2).worst_ratio > exp_below(epsilon)
    assert 0 < found.again < SCALE
    assert found.exact_p > found.exact_q
    others = {KRR: 1 - found.exact_p, BRR: (size - 1) * (1 - found.exact_p), OUE: (size - 1) * found.exact_q}
    named = found.size - found.exact_p if isinstance(found, RecycledSubset) else others[kind]
    assert (size - 1) * found.exact_q == named


def test_the_ratio_is_that_of_the_channel() -> None:
    # From the two steps, value by value: k-RR reports z′ after z after x.
    first = KRR.for_budget(3, Fraction(2))
    found = recycle(first, Fraction(1))
    assert isinstance(found, RecycledKRR)
    second = KRR(3, SCALE - found.again)

    def chance(kind: KRR, z: int, x: int) -> Fraction:
        return kind.exact_p if z == x else kind.exact_q

    table = [[sum(chance(second, y, z) * chance(first, z, x) for z in range(3)) for y in range(3)] for x in range(3)]
    assert table[0][0] == found.exact_p
    assert table[1][0] == found.exact_q
    assert max(table[x][y] / table[w][y] for x in range(3) for w in range(3) for y in range(3)) == found.worst_ratio


SOURCES = [
    BRR.for_budget(3, Fraction(2)),
    KRR.for_budget(4, Fraction(2)),
    OUE.for_budget(3, Fraction(2)),
    Subset.for_budget(4, Fraction(2)),
    Subset(6, 2, 4 * (SCALE // 5)),  # ratio 8
    Subset(5, 3, 19 * (SCALE // 20)),  # ratio 12 2/3
]


def step_law(kind: type[PureProtocol], retain: Fraction, reports: list[tuple[int, ...]]) -> list[list[Fraction]]:
    """Pr[report after | report before] of one recycling, from its definition, (before, after)."""
    if kind in (KRR, Subset):
        redrawn = (1 - retain) / len(reports)
        return [[retain * (a == b) + redrawn for a in reports] for b in reports]
    return [
        [
            prod((retain if x == y else 1 - retain for x, y in zip(a, b, strict=True)), start=Fraction(1))
            for a in reports
        ]
        for b in reports
    ]


@pytest.mark.parametrize("budgets", [(Fraction(1),), (Fraction(3, 2), Fraction(1))], ids=["at once", "by two steps"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.name} {source.domain_size}")
def test_recycling_is_a_protocol_by_enumeration(source: PureProtocol, budgets: tuple[Fraction, ...]) -> None:
    """The first channel times every step's, as rationals: p, q, pairs and the worst ratio are those of the class, and
    the ratio keeps e^ε. Steps meant for 1.1 times the budget are caught."""

    size = source.domain_size

    def table(found: Recycled) -> dict[tuple[int, ...], list[Fraction]]:
        law = channel(found.first)
        reports = list(law)
        rows = [[law[report][x] for report in reports] for x in range(size)]
        for threshold in found.steps:
            step = step_law(type(source), Fraction(threshold, SCALE), reports)
            rows = [[sum(map(mul, row, after), Fraction(0)) for after in zip(*step, strict=True)] for row in rows]
        assert all(sum(row) == 1 for row in rows)
        return {report: [row[a] for row in rows] for a, report in enumerate(reports)}

    def recycled(factor: Fraction) -> Recycled:
        found = recycle(source, budgets[0] * factor)
        for budget in budgets[1:]:
            found = recycle(found, budget * factor)
        return found

    found = recycled(Fraction(1))
    law = table(found)
    assert max(max(row) / min(row) for row in law.values()) == found.worst_ratio <= exp_below(Fraction(1))
    assert sum(row[0] for report, row in law.items() if report[0]) == found.exact_p
    assert all(sum(row[x] for report, row in law.items() if report[0]) == found.exact_q for x in range(1, size))
    own, others = found.exact_pairs
    assert sum(row[0] for report, row in law.items() if report[0] and report[1]) == own
    assert sum(row[0] for report, row in law.items() if report[1] and report[2]) == others
    wrong = table(recycled(Fraction(11, 10)))
    assert max(max(row) / min(row) for row in wrong.values()) > exp_below(Fraction(1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [3, 13, 300])
def test_reports_behave_as_declared(kind: type[PureProtocol], size: int, seed: int) -> None:
    # Support of every value among 150,000 users who share one value, Bonferroni over cells; the same with a second step
    # meant for 1.1 times the budget must be caught.
    source = kind.for_budget(size, Fraction(4))
    found, wrong = (recycle(source, e) for e in (Fraction(2), Fraction(11, 5)))
    stream, n = Keystream.seeded(seed), 150_000
    reports = source.perturb(np.full(n, size - 1, dtype=np.uint16), stream)
    kept = reports.copy()

    def worst(by: Recycled) -> float:
        again = by.perturb_again(reports, stream)
        assert not by.invalid(again).size
        chances = np.where(np.arange(size) == size - 1, found.p, found.q)
        return float(np.max(np.abs(by.support(again) - n * chances) / np.sqrt(n * chances * (1 - chances))))

    assert worst(found) < z_bound(size) + 0.5
    assert worst(wrong) > z_bound(size) + 0.5
    assert (reports == kept).all()  # the first reports are left as they were


@pytest.mark.parametrize("kind", KINDS)
def test_the_sampler_and_both_steps_agree(kind: type[PureProtocol], seed: int) -> None:
    found = recycle(kind.for_budget(5, Fraction(3)), Fraction(1))
    counts = np.array([400, 300, 200, 100, 0])
    drawn = found.sample_support(np.broadcast_to(counts, (3000, 5)), np.random.default_rng(seed))
    mean = counts * found.p + (1000 - counts) * found.q
    spread = np.sqrt(counts * found.p * (1 - found.p) + (1000 - counts) * found.q * (1 - found.q))
    assert np.abs((drawn.mean(axis=0) - mean) / spread * np.sqrt(3000)).max() < z_bound(5)
    assert (drawn.var(axis=0) / spread**2) == pytest.approx(1, abs=z_bound(5) * np.sqrt(2 / 3000))
    reports = found.perturb(np.repeat(np.arange(5, dtype=np.uint16), counts), Keystream.seeded(seed))
    assert np.abs((found.support(reports) - mean) / spread).max() < z_bound(5)
    assert found.members(reports).sum(axis=0) == pytest.approx(found.support(reports))


@pytest.mark.parametrize("kind", KINDS)
def test_an_analyst_cleared_up_to_a_budget(kind: type[PureProtocol], seed: int) -> None:
    # Levels ½, 1, 3; cleared up to 1. Every repetition's error against its standard error: z² averages to one with
    # standard error √(2/2000).
    budgets = (Fraction(1, 2), Fraction(1), Fraction(3))
    protocols = tuple(kind.for_budget(6, budget) for budget in budgets)
    cleared = clear(protocols, Fraction(1))
    assert cleared[:2] == protocols[:2]
    assert all(protocol.worst_ratio <= exp_below(Fraction(1)) for protocol in cleared)
    rng = np.random.default_rng(seed)
    counts, sizes = whole_counts(zipf(6), 30_000), np.array([10_000, 8_000, 12_000])
    support = draw_support(draw_levels(counts, sizes, 2000, rng), cleared, rng)
    found = cleared_estimate(support, sizes, cleared)
    z = (found.frequency - counts / 30_000) / found.standard_error
    assert np.abs(z.mean(axis=0)).max() < z_bound(6) / np.sqrt(2000) + 0.01
    assert (z**2).mean(axis=0) == pytest.approx(1, abs=z_bound(6) * np.sqrt(2 / 2000) + 0.02)
    # Recycling beats leaving the third level out, and costs against using its reports as they are.
    without = cleared_estimate(support[:, :2], sizes[:2], cleared[:2])
    full = cleared_estimate(draw_support(draw_levels(counts, sizes, 2000, rng), protocols, rng), sizes, protocols)
    assert (found.standard_error.mean(axis=0) < without.standard_error.mean(axis=0)).all()
    assert (found.standard_error.mean(axis=0) > full.standard_error.mean(axis=0)).all()


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="already keep a budget of 2"):
        recycle(BRR.for_budget(4, Fraction(2)), Fraction(2))
    with pytest.raises(ValueError, match="olh reports cannot be recycled: only brr, krr, oue and subset"):
        recycle(OLH.for_budget(4, Fraction(2)), Fraction(1))
    with pytest.raises(ValueError, match=r"recycle\(\)"):
        RecycledBRR.for_budget(4, Fraction(1))
    for again in (RecycledKRR, RecycledOUE, RecycledSubset):
        with pytest.raises(ValueError, match=r"recycle\(\)"):
            again.for_budget(4, Fraction(1))
    for kind in KINDS:
        with pytest.raises(ValueError, match="too small to leave any signal"):
            recycle(kind.for_budget(4, Fraction(2)), Fraction(1, 10**30))
