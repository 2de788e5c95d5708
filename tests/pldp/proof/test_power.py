"""What a count shows of its chance, against the binomial law by another library and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from pldp.proof.power import ALPHA, CAUGHT, LARGEST, Count, deviation, draws_needed, power, refused, shared
from pldp.proof.trial import Trial
from pldp.questions.gate import REHEARSED


def own_value(values: int, epsilon: float) -> float:
    """Of k-RR."""
    return 1 / (1 + (values - 1) * math.exp(-epsilon))


@pytest.mark.parametrize("chance", [1e-7, 0.001, 0.3, 0.5, 0.98, 1 - 1e-6])
@pytest.mark.parametrize("draws", [1, 256, 40_000, 1 << 26])
def test_counts_are_refused_beyond_the_tail_and_not_before(draws: int, chance: float) -> None:
    low, high = refused(draws, chance)
    assert low < high
    if low >= 0:
        assert binom.cdf(low, draws, chance) < ALPHA * (1 + 1e-6)
    assert binom.cdf(low + 1, draws, chance) >= ALPHA * (1 - 1e-6)
    if high <= draws:
        assert binom.sf(high - 1, draws, chance) < ALPHA * (1 + 1e-6)
    assert binom.sf(high - 2, draws, chance) >= ALPHA * (1 - 1e-6)


def test_power_is_how_often_another_chance_is_refused(seed: int) -> None:
    draws, chance, other = 4000, 0.3, 0.36
    low, high = refused(draws, chance)
    counts = np.random.default_rng(seed).binomial(draws, other, 20_000)
    seen = ((counts <= low) | (counts >= high)).mean()
    assert power(draws, chance, other) == pytest.approx(seen, abs=5 * math.sqrt(0.25 / 20_000))
    assert power(draws, chance, chance) <= 2 * ALPHA


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 12.0])
def test_as_many_draws_as_are_needed_and_hardly_more(epsilon: float) -> None:
    chance, others = own_value(5, epsilon), [own_value(5, epsilon * factor) for factor in (0.9, 1.1)]
    draws = draws_needed(chance, others, 1 << 30)
    assert min(power(draws, chance, other) for other in others) >= CAUGHT
    assert min(power(int(draws / 1.2), chance, other) for other in others) < CAUGHT
    seen = deviation(draws, lambda at: own_value(5, at), epsilon)
    assert 0.09 < seen <= 0.1001


def test_what_too_few_draws_show_is_told() -> None:
    """At ε = 30 no report of a million errs: an ε that is too large is not seen, whatever it is."""
    assert deviation(1 << 20, lambda at: own_value(5, at), 30.0) == math.inf
    assert draws_needed(own_value(5, 30.0), [own_value(5, 33.0)], 1000) == 1000
    assert draws_needed(0.5, [0.5], 77) == 77, "what does not move tells nothing, however many are drawn"


def test_more_draws_than_the_law_is_defined_for() -> None:
    """2³¹ and more draws had no law at all: nothing was refused, and nothing seen."""
    chance = 3e-9
    assert draws_needed(chance, [1.01 * chance], 1 << 40) == 1 << 40
    assert deviation(1 << 40, lambda at: own_value(5, at), 1.0) == deviation(LARGEST, lambda at: own_value(5, at), 1.0)
    assert deviation(1 << 40, lambda at: own_value(5, at), 1.0) < 0.01


def test_the_gate_refuses_all_that_is_reckoned_with() -> None:
    """`tails` divides its false alarms by channels, a trial by its sums and their sides: 1,000 channels of 3,000."""
    assert REHEARSED / (2 * 1000 * 3000) >= ALPHA


def test_those_who_need_little_leave_the_rest() -> None:
    assert shared([10, 1000, 40], 5000) == [10, 1000, 40]
    assert shared([10, 1000, 1000], 510) == [10, 250, 250]
    assert shared([], 10) == []


def test_what_a_law_cannot_show_no_bound_promises() -> None:
    """k-RR at ε = 16: of 33 million reports so few err that an ε above it is not seen; the bound at 10 % would
    promise some deviation by proportion."""
    draws, chance = 1 << 25, 1 - own_value(5, 16.0)
    shift = draws * (chance - (1 - own_value(5, 17.6)))
    sums = [(draws * (1 - chance), draws * (1 - chance), draws * chance, 1.0, shift, draws)]
    count = Count(draws, lambda at: own_value(5, at))
    assert 0.1 < Trial.of("krr", 16.0, draws, sums).visible < 1
    assert Trial.of("krr", 16.0, draws, sums, [count]).visible == count.deviation(16.0) > 1
