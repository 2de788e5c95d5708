"""Both promises of multiupp by enumeration over small universes, and the sampler against its law."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from pldp.channels.exact import exp_below, within
from pldp.channels.randomness import Keystream
from pldp.questions.aggregates.budgets import allocate, profile_ticks, to_ticks
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.noise import TwoSidedGeometric, noise_for
from pldp.questions.aggregates.objectives import MAE, MSE, Floats, Objective
from pldp.questions.aggregates.release import Mechanism
from tests.pldp.questions.aggregates.world import MATRICES, catalogue, probability
from tests.pldp.world import ALPHA, z_bound

CLOSE = 1 + Fraction(1, 1 << 50)


def _mechanism(cat: Catalogue, t: list[Fraction], epsilon: Fraction) -> Mechanism:
    return Mechanism(cat, allocate(cat, profile_ticks(cat, [t]), to_ticks(epsilon), MAE).ticks)


def _outputs(laws: tuple[TwoSidedGeometric, ...], most: int) -> list[range]:
    """Per attribute, outputs around two neighbours' aggregates that hold every ratio: a period on either side."""
    return [range(-(1 << len(law.digits)) - most, (1 << len(law.digits)) + most + 1) for law in laws]


def _channel(laws: tuple[TwoSidedGeometric, ...], output: tuple[int, ...], aggregate: tuple[int, ...]) -> Fraction:
    chance = Fraction(1)
    for law, seen, true in zip(laws, output, aggregate, strict=True):
        chance *= probability(law, seen - true)
    return chance


@pytest.mark.parametrize(
    ("items", "t", "epsilon"),
    [
        ([[1, 1], [1, 0]], ["1/2", "3/4"], "1"),  # below the turning point
        ([[1, 1], [1, 0]], ["1/2", "3/4"], "2"),  # above it
        ([[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["0.9", "1.2", "0.8"], "1.5"),
        ([[2, 1], [0, 3]], ["1.5", "2"], "2.5"),  # weights
    ],
)
def test_both_promises_by_enumeration(items: list[list[int]], t: list[str], epsilon: str) -> None:
    # All item sets of a user, each with each of its neighbours (multiupp P1, P2: one item more or less), all outputs.
    cat = catalogue(items)
    budgets, overall = [Fraction(one) for one in t], Fraction(epsilon)
    mechanism = _mechanism(cat, budgets, overall)
    laws = mechanism.noise(0)
    units = cat.units(np.array(items)).tolist()
    ranges = _outputs(laws, max(map(max, units)) * len(items))
    worst, worst_each = Fraction(0), [Fraction(0)] * len(t)
    for owned in itertools.product((0, 1), repeat=len(items)):
        for item in (i for i, has in enumerate(owned) if not has):
            before = tuple(sum(has * row[j] for has, row in zip(owned, units, strict=True)) for j in range(len(t)))
            after = tuple(a + b for a, b in zip(before, units[item], strict=True))
            each = []
            for j, (law, outputs) in enumerate(zip(laws, ranges, strict=True)):
                ratios = [probability(law, z - before[j]) / probability(law, z - after[j]) for z in outputs]
                each.append(max(max(ratios), 1 / min(ratios)))
                worst_each[j] = max(worst_each[j], each[j])
            # Independent noise: the worst of the product is the product of the worsts; see the next test.
            worst = max(worst, np.prod(np.array(each, dtype=object)))
    assert within(worst, overall)
    assert worst <= mechanism.overall_ratios[0] <= worst * CLOSE
    for j, budget in enumerate(budgets):
        assert within(worst_each[j], budget)
        assert worst_each[j] <= mechanism.attribute_ratios(0)[j] <= worst_each[j] * CLOSE


def test_the_joint_outputs_reach_the_product_and_no_more() -> None:
    items = [[1, 1], [1, 0]]
    mechanism = _mechanism(catalogue(items), [Fraction(1, 2), Fraction(3, 4)], Fraction(1))
    laws = mechanism.noise(0)
    worst = Fraction(0)
    for owned in itertools.product((0, 1), repeat=2):
        for item in (i for i, has in enumerate(owned) if not has):
            before = tuple(sum(has * row[j] for has, row in zip(owned, items, strict=True)) for j in range(2))
            after = tuple(a + b for a, b in zip(before, items[item], strict=True))
            for output in itertools.product(*_outputs(laws, 2)):
                chances = _channel(laws, output, before), _channel(laws, output, after)
                worst = max(worst, max(chances) / min(chances))
    assert worst <= mechanism.overall_ratios[0] <= worst * CLOSE
    assert within(worst, Fraction(1))


@pytest.mark.parametrize(
    ("items", "t", "epsilon", "more"),
    [
        ([[1, 1, 0, 0], [0, 0, 1, 1]], ["1", "1", "1", "1"], "1", "1.99"),  # nothing in common: all of 2 ε
        ([[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["0.9", "1.2", "0.8"], "1.5", "1.4"),
        ([[2, 1], [0, 3]], ["1.5", "2"], "2.5", "2.5"),
    ],
)
def test_replacing_an_item_spends_up_to_twice_as_much(
    items: list[list[int]], t: list[str], epsilon: str, more: str
) -> None:
    """As the statement says: up to 2 ε overall, `more` in fact, and on one attribute no more than its own budget."""
    cat = catalogue(items)
    budgets, overall = [Fraction(one) for one in t], Fraction(epsilon)
    laws = _mechanism(cat, budgets, overall).noise(0)
    units = cat.units(np.array(items)).tolist()
    ranges = _outputs(laws, max(map(max, units)))
    worst = Fraction(0)
    for one, other in itertools.permutations(units, 2):
        product = Fraction(1)
        for law, outputs, before, after, budget in zip(laws, ranges, one, other, budgets, strict=True):
            ratio = max(probability(law, z - before) / probability(law, z - after) for z in outputs)
            assert within(ratio, budget)
            product *= ratio
        worst = max(worst, product)
    assert within(worst, 2 * overall)
    assert not within(worst, Fraction(more))


def test_a_mechanism_ten_percent_off_is_caught() -> None:
    # The same accounting on noise that spends 1.1 times what was allocated breaks a promise.
    cat = catalogue([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    t, epsilon = [Fraction("0.9"), Fraction("1.2"), Fraction("0.8")], Fraction("1.5")
    right = _mechanism(cat, t, epsilon)
    wrong = Mechanism(cat, right.ticks * 11 // 10)
    assert within(right.overall_ratios[0], epsilon)
    assert not within(wrong.overall_ratios[0], epsilon)
    loose = _mechanism(cat, t, Fraction(9))
    over = Mechanism(cat, loose.ticks * 11 // 10)
    for j, budget in enumerate(t):
        assert within(loose.attribute_ratios(0)[j], budget)
        assert not within(over.attribute_ratios(0)[j], budget)


@settings(max_examples=100)
@given(
    MATRICES,
    st.lists(st.floats(-6, 1.5), min_size=4, max_size=4),
    st.floats(-3, 1.5),
    st.sampled_from([MAE, MSE]),
    st.integers(1, 5),
)
def test_exact_budgets_never_exceed_the_nominal_ones(
    rows: list[list[int]], t: list[float], e: float, objective: Objective, cap: int
) -> None:
    cat = catalogue(rows).capped(cap)
    budgets = [Fraction(str(10**exponent)) for exponent in t[: len(cat.attributes)]]
    epsilon = Fraction(str(10**e))
    ticks = allocate(cat, profile_ticks(cat, [budgets]), to_ticks(epsilon), objective).ticks
    mechanism = Mechanism(cat, ticks)
    assert mechanism.overall_ratios[0] <= exp_below(epsilon)
    for ratio, budget in zip(mechanism.attribute_ratios(0), budgets, strict=True):
        assert ratio <= exp_below(budget)


SPENDS = [0.004, 0.03, 0.4, 1.7]
"""Two profiles of two attributes: many digits and none."""
N_USERS = 150_000


def _drawn(spends: list[float], seed: int) -> tuple[Mechanism, Units, Units]:
    """Reports of users alternating between two profiles; aggregates differ between users and may be negative."""
    ticks = (np.array(spends).reshape(2, 2) * 2**40).astype(np.int64)
    mechanism = Mechanism(catalogue([[1, 1]]), ticks)
    profiles = np.arange(N_USERS) % 2
    truth = np.stack([np.arange(N_USERS) % 7 - 3, np.arange(N_USERS) % 1000], axis=1)
    return mechanism, mechanism.perturb(truth, profiles, Keystream.seeded(seed, "aggregates")) - truth, profiles


def _cells(noise: Units, profiles: Units) -> list[Units]:
    return [noise[profiles == profile, column] for profile in range(2) for column in range(2)]


def _distance(drawn: Units, law: TwoSidedGeometric) -> tuple[float, int]:
    """χ² over some fifty cells of outputs, from those far on the left to those far on the right."""
    scale = max(1, int(3 * law.mean_size))
    edges = np.unique(np.linspace(-scale, scale + 1, 50).astype(np.int64))
    chances = [float(probability(law, z)) for z in range(-scale, scale + 1)]
    inner = np.add.reduceat(chances, (edges[:-1] + scale).tolist())
    outer = (1 - sum(chances)) / 2
    expected = np.array([outer, *inner, outer]) * drawn.size
    seen = np.histogram(drawn, bins=[-(2**60), *edges, 2**60])[0]
    return float((np.square(seen - expected) / expected).sum()), expected.size - 1


def test_the_sampler_follows_the_law(seed: int) -> None:
    # Four laws, all outputs, first and last cells included; α = 1e-6 each.
    _, noise, profiles = _drawn(SPENDS, seed)
    for drawn, spend in zip(_cells(noise, profiles), SPENDS, strict=True):
        distance, freedom = _distance(drawn, noise_for(int(spend * 2**40)))
        assert distance < chi2.isf(ALPHA, freedom)


def test_noise_ten_percent_off_is_caught(seed: int) -> None:
    _, noise, profiles = _drawn([1.1 * spend for spend in SPENDS], seed)
    for drawn, spend in zip(_cells(noise, profiles), SPENDS, strict=True):
        distance, freedom = _distance(drawn, noise_for(int(spend * 2**40)))
        assert distance > chi2.isf(ALPHA, freedom)


def _moment_errors(mechanism: Mechanism, noise: Units, profiles: Units) -> Floats:
    """z-scores of mean and variance of every profile and attribute. Var Z² = E Z⁴ − v², below 5 v² + v."""
    scores = []
    for drawn, variance in zip(_cells(noise, profiles), mechanism.variance.reshape(-1), strict=True):
        scores.append(drawn.mean() / np.sqrt(variance / drawn.size))
        scores.append((np.square(drawn).mean() - variance) / np.sqrt((5 * variance**2 + variance) / drawn.size))
    return np.array(scores)


def test_noise_is_unbiased_with_the_stated_variance(seed: int) -> None:
    mechanism, noise, profiles = _drawn(SPENDS, seed)
    assert np.abs(_moment_errors(mechanism, noise, profiles)).max() < z_bound(8)
    wrong, _, _ = _drawn([1.1 * spend for spend in SPENDS], seed)
    assert np.abs(_moment_errors(wrong, noise, profiles)[1::2]).min() > z_bound(8)


def test_digits_and_signs_are_independent_across_cells(seed: int) -> None:
    # 3 attributes of one profile, consecutive users: correlations of signs and of sizes, α over 12 of them.
    ticks = np.full((1, 3), int(0.01 * 2**40))
    mechanism = Mechanism(catalogue([[1, 1, 1]]), ticks)
    noise = mechanism.perturb(
        np.zeros((60_000, 3), np.int64), np.zeros(60_000, np.int64), Keystream.seeded(seed, "pairs")
    )
    for values in (np.sign(noise), np.abs(noise) - mechanism.mean_size, noise & 1):
        scaled = (values - values.mean(axis=0)) / values.std(axis=0)
        pairs = [np.mean(scaled[:, i] * scaled[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        pairs.append(np.mean(scaled[1:, 0] * scaled[:-1, 2]))
        assert np.abs(pairs).max() * np.sqrt(60_000) < z_bound(12)


def test_a_large_budget_tells_the_truth() -> None:
    # At 44 a unit moves once in 2^63; every attribute and user lands in its own place.
    mechanism = Mechanism(catalogue([[1] * 5]), np.full((3, 5), 1000 << 40))
    truth = np.arange(50_000).reshape(-1, 5) - 77
    profiles = np.arange(10_000) % 3
    assert np.array_equal(mechanism.perturb(truth, profiles, Keystream.secure()), truth)


def test_two_streams_differ_and_one_repeats() -> None:
    mechanism = Mechanism(catalogue([[1, 1]]), np.full((1, 2), 1 << 30))
    truth, profiles = np.zeros((100, 2), np.int64), np.zeros(100, np.int64)
    first, again = (mechanism.perturb(truth, profiles, Keystream.seeded(1)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, mechanism.perturb(truth, profiles, Keystream.secure()))


def test_nobody_and_bad_input() -> None:
    mechanism = Mechanism(catalogue([[1, 1]]), np.full((1, 2), 1 << 30))
    nobody = np.zeros(0, np.int64)
    assert mechanism.perturb(np.zeros((0, 2), np.int64), nobody, Keystream.secure()).shape == (0, 2)
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="one row a user and one column an attribute"):
        mechanism.perturb(np.zeros((1, 3), np.int64), one, Keystream.secure())
    for profile in (1, -1):
        with pytest.raises(ValueError, match="profile is not among the allocated"):
            mechanism.perturb(np.zeros((1, 2), np.int64), one + profile, Keystream.secure())
    with pytest.raises(ValueError, match="bound the counts of an item"):
        mechanism.perturb(np.full((1, 2), 1 << 60), one, Keystream.secure())
