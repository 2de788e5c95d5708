"""Reports as they are drawn, against the exact laws: every coordinate, whole reports, pairs, and the sampler."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from pldp.channels.exact import SCALE, exp_below
from pldp.channels.krr import KRR
from pldp.channels.olh import OLH
from pldp.channels.protocol import Counts, Floats, PureProtocol, Values
from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.channels.subset import Subset
from pldp.channels.unary import OUE
from pldp.estimate.simulate import whole_counts
from tests.pldp.channels.laws import channel, codes
from tests.pldp.world import ALPHA, z_bound, zipf

NEW: tuple[type[PureProtocol], ...] = (KRR, OUE, OLH, Subset)
"""BRR has a file of its own."""
ENUMERABLE: tuple[type[PureProtocol], ...] = (KRR, OUE, Subset)
N_USERS = 200_000


def _skewed(size: int) -> tuple[Values, Floats]:
    """Zipf(1.5), the last value included: a uniform truth would be a fixed point of k-RR."""
    counts = whole_counts(zipf(size, 1.5), N_USERS)
    return np.repeat(np.arange(size, dtype=np.uint16), counts), counts / N_USERS


def _distance(protocol: PureProtocol, drawn: PureProtocol, value: int, n: int, seed: int) -> tuple[float, int]:
    """χ² of whole reports of one value against the exact law, and its degrees of freedom."""
    law = channel(protocol)
    places = np.array([sum(bit << j for j, bit in enumerate(bits)) for bits in law])
    expected = np.array([float(chances[value]) for chances in law.values()]) * n
    reports = drawn.perturb(np.full(n, value, dtype=np.uint16), Keystream.seeded(seed, protocol.name, value))
    seen = np.bincount(codes(protocol, reports), minlength=1 << protocol.domain_size)
    assert seen[places].sum() == n
    return float((np.square(seen[places] - expected) / expected).sum()), len(law) - 1


@pytest.mark.parametrize("kind", ENUMERABLE)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_whole_reports_follow_the_channel(kind: type[PureProtocol], size: int, seed: int) -> None:
    # α = 1e-6 for every value by itself; a budget 10 % off must be caught at every one.
    right, wrong = kind.for_budget(size, Fraction(2)), kind.for_budget(size, Fraction("2.2"))
    for value in range(size):
        distance, freedom = _distance(right, right, value, 50_000, seed)
        assert distance < chi2.isf(ALPHA, freedom)
        distance, freedom = _distance(right, wrong, value, 50_000, seed)
        assert distance > chi2.isf(ALPHA, freedom)


@pytest.mark.parametrize(("size", "epsilon"), [(9, "0.6"), (9, "0.05"), (10, "0.1"), (12, "1.5")])
def test_subsets_are_uniform_given_the_own_value(size: int, epsilon: str, seed: int) -> None:
    # ω = 3, 4, 5 and 2: one table of sets, numbers of 2 bytes; 66 to 252 sets.
    protocol = Subset.for_budget(size, Fraction(epsilon))
    assert protocol.size == {9: {"0.6": 3, "0.05": 4}, 10: {"0.1": 5}, 12: {"1.5": 2}}[size][epsilon]
    for value in (0, size // 2, size - 1):
        distance, freedom = _distance(protocol, protocol, value, 100_000, seed)
        assert distance < chi2.isf(ALPHA, freedom)


def _pairs(size: int, epsilon: Fraction) -> Subset:
    """ω = 2, whether or not that is the best one: a report is a pair."""
    chosen = 2 * exp_below(epsilon)
    return Subset(size, 2, int(SCALE * chosen // (chosen + size - 2)))


@pytest.mark.parametrize("size", [17, 24, 33, 64, 65, 100])
def test_pairs_are_uniform_given_the_own_value_at_every_width(size: int, seed: int) -> None:
    # All pairs, for the first, a middle and the last value; the own one among them with p. Numbers of 4 and 8 bytes,
    # rows of 9 and 13, one to seven tables. α = 1e-6; a budget 10 % off must be caught.
    right, wrong = _pairs(size, Fraction(2)), _pairs(size, Fraction("2.2"))
    n = 200_000
    for value in (0, size // 2, size - 1):
        for drawn, follows in ((right, True), (wrong, False)):
            reports = drawn.perturb(np.full(n, value, dtype=np.uint16), Keystream.seeded(seed, size, value))
            places = np.nonzero(right.members(reports))[1].reshape(n, 2)
            seen = np.bincount(places[:, 0] * size + places[:, 1], minlength=size**2).reshape(size, size)
            low, high = np.triu_indices(size, 1)
            own = (low == value) | (high == value)
            chances = np.where(own, right.p / (size - 1), (1 - right.p) * 2 / ((size - 1) * (size - 2)))
            distance = (np.square(seen[low, high] - n * chances) / (n * chances)).sum()
            assert (distance < chi2.isf(ALPHA, low.size - 1)) == follows


def _errors(kind: type[PureProtocol], size: int, spent: str, assumed: str, seed: int) -> Floats:
    """z-scores of all cells: reports drawn with one budget, estimated as if with another."""
    drawn, used = kind.for_budget(size, Fraction(spent)), kind.for_budget(size, Fraction(assumed))
    values, truth = _skewed(size)
    support = drawn.support(drawn.perturb(values, Keystream.seeded(seed, kind.name, size)))
    return (used.estimate(support, N_USERS) - truth) / np.sqrt(used.noise_variance(truth) / N_USERS)


@pytest.mark.parametrize("size", [13, 20, 40, 64, 100])
@pytest.mark.parametrize("kind", NEW)
def test_estimates_are_unbiased_in_every_cell(kind: type[PureProtocol], size: int, seed: int) -> None:
    # α = 1e-6 over the cells, first and last included. Rows of 2, 3, 5, 8 and 13 bytes.
    assert np.abs(_errors(kind, size, "2", "2", seed)).max() < z_bound(size)


@pytest.mark.parametrize("size", [13, 40])
@pytest.mark.parametrize("kind", NEW)
def test_a_budget_ten_percent_off_is_caught(kind: type[PureProtocol], size: int, seed: int) -> None:
    # The most frequent value is estimated several percent too large: tens of standard errors.
    z = _errors(kind, size, "2.2", "2", seed)
    assert np.abs(z).max() > 3 * z_bound(size)


@pytest.mark.parametrize("epsilon", ["0.2", "2"])
@pytest.mark.parametrize("size", [5, 9, 17, 40, 70])
@pytest.mark.parametrize("kind", NEW)
def test_every_pair_of_cells_has_its_chance(kind: type[PureProtocol], size: int, epsilon: str, seed: int) -> None:
    # Whole matrix of E[1_i 1_j], own value first, middle, last; α = 1e-6 over the k (k + 1) / 2 cells of each.
    protocol = kind.for_budget(size, Fraction(epsilon))
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    n = 60_000
    for value in (0, size // 2, size - 1):
        reports = protocol.perturb(np.full(n, value, dtype=np.uint16), Keystream.seeded(seed, kind.name, value))
        members = protocol.members(reports).astype(np.float32)
        seen = np.asarray(members.T @ members, dtype=np.float64)  # whole numbers below 2^24: exact
        chance = np.full((size, size), float(others))
        chance[value, :] = chance[:, value] = float(own)
        np.fill_diagonal(chance, float(q))
        chance[value, value] = float(p)
        assert not seen[chance == 0].any()
        spread = np.sqrt(np.maximum(n * chance * (1 - chance), 1))
        assert (np.abs(seen - n * chance) / spread).max() < z_bound(size * (size + 1) // 2)


def _sampled(protocol: PureProtocol, counts: Counts, repeats: int, seed: int) -> Counts:
    many = np.broadcast_to(counts, (repeats, counts.size))
    return protocol.sample_support(many, np.random.default_rng(seed))


@pytest.mark.parametrize("n", [40, 30_000])
@pytest.mark.parametrize("kind", NEW)
def test_the_sampler_has_the_mean_and_covariance_of_the_reports(kind: type[PureProtocol], n: int, seed: int) -> None:
    # Subset selection draws reports at n = 40 and a normal at n = 30,000. α = 1e-6 over 8 means and 36 covariances;
    # the variance of a product of two nearly normal errors is v_i v_j + c², and 10 % for fourth moments at n = 40.
    size, repeats = 8, 4000
    protocol = kind.for_budget(size, Fraction("0.8"))
    counts = whole_counts(zipf(size, 1.5), n)
    drawn = _sampled(protocol, counts, repeats, seed)
    assert drawn.shape == (repeats, size)
    assert drawn.dtype == np.int64
    (c, e), share = protocol.ties, counts / n
    covariance = -(c * np.add.outer(share, share) + e)
    np.fill_diagonal(covariance, protocol.noise_variance(share))
    covariance *= n * protocol.gap**2
    error = drawn - (counts * protocol.p + (n - counts) * protocol.q)
    variance = np.diag(covariance)
    assert (np.abs(error.mean(axis=0)) / np.sqrt(variance / repeats)).max() < z_bound(8)
    spread = np.sqrt(1.1 * (np.outer(variance, variance) + covariance**2) / repeats)
    assert (np.abs(error.T @ error / repeats - covariance) / spread).max() < z_bound(36)
    if protocol.free_cells < size:
        assert all(protocol.total_tail(int(total), n) == 1.0 for total in drawn.sum(axis=-1))


@pytest.mark.parametrize("kind", ENUMERABLE)
def test_the_sampler_and_the_reports_follow_one_law(kind: type[PureProtocol], seed: int) -> None:
    # Three users with values 0, 0 and 2 of 3: the law of the whole support vector, convolved from the channel; the
    # rarest outcomes together, so that every class expects ten; and a budget 10 % off. Subset selection has ω = 1 here,
    # where its sampler is that of k-RR.
    repeats = 60_000
    protocol, wrong = kind.for_budget(3, Fraction(2)), kind.for_budget(3, Fraction("2.2"))
    law: dict[tuple[int, ...], Fraction] = {(0, 0, 0): Fraction(1)}
    for value in (0, 0, 2):
        step: dict[tuple[int, ...], Fraction] = {}
        for before, chance in law.items():
            for bits, chances in channel(protocol).items():
                after = tuple(a + b for a, b in zip(before, bits, strict=True))
                step[after] = step.get(after, Fraction(0)) + chance * chances[value]
        law = step
    chance_of = {code: float(law.get((code // 16, code // 4 % 4, code % 4), 0)) for code in range(64)}
    likely = [code for code, chance in chance_of.items() if chance * repeats >= 10]

    def distance(support: Counts) -> float:
        seen = np.bincount(support @ np.array([16, 4, 1]), minlength=64)
        expected = np.array([chance_of[code] for code in likely]) * repeats
        rest = repeats - expected.sum()
        statistic = (np.square(seen[likely] - expected) / expected).sum()
        return float(statistic + np.square(repeats - seen[likely].sum() - rest) / max(rest, 10))

    def reported(drawing: PureProtocol) -> Counts:
        values = np.tile(np.array([0, 0, 2], dtype=np.uint16), repeats)
        members = drawing.members(drawing.perturb(values, Keystream.seeded(seed, kind.name)))
        summed: Counts = members.reshape(repeats, 3, 3).sum(axis=1, dtype=np.int64)
        return summed

    counts, bound = np.array([2, 0, 1]), chi2.isf(ALPHA, len(likely))
    assert distance(_sampled(protocol, counts, repeats, seed)) < bound
    assert distance(reported(protocol)) < bound
    assert distance(_sampled(wrong, counts, repeats, seed)) > bound
    assert distance(reported(wrong)) > bound


def test_the_sampler_takes_leading_dimensions() -> None:
    rng = np.random.default_rng(0)
    for kind in PROTOCOLS.values():
        for size, most in ((1, 9), (2, 9), (6, 9), (6, 90_000)):
            protocol = kind.for_budget(size, Fraction(1, 2))
            counts = rng.integers(0, most, (2, 3, size))
            drawn = protocol.sample_support(counts, rng)
            assert drawn.shape == counts.shape
            assert drawn.dtype == np.int64
            assert protocol.sample_support(counts[0, 0], rng).shape == (size,)
            assert protocol.sample_support(np.zeros((4, size), dtype=np.int64), rng).shape == (4, size)
