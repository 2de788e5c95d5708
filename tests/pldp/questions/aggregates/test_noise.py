"""The implemented noise: its law by enumeration, its ratio at every output, its moments. All rational, no tolerance."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, exp_below, within
from pldp.questions.aggregates.budgets import LEAST_TICKS, TICK_BITS
from pldp.questions.aggregates.noise import TwoSidedGeometric, fixed_product, fixed_to_ratio, noise_for
from tests.pldp.questions.aggregates.world import TICK, probability

TICKS = st.floats(math.log2(LEAST_TICKS), TICK_BITS + 7).map(lambda power: int(2**power) + 1)
SHORT = st.floats(TICK_BITS - 5, TICK_BITS + 5).map(lambda power: int(2**power))
"""Spends of at least 1/32: at most five digits, so that a whole period can be enumerated."""


def _windows(law: TwoSidedGeometric, units: int) -> range:
    """Outputs that hold every window of `units` steps: ratios repeat with period 2^k on each side of zero."""
    reach = 2 * (1 << len(law.digits)) + units + 1
    return range(-reach, reach + 1)


@settings(max_examples=150)
@given(SHORT)
def test_the_worst_ratio_is_that_of_all_neighbouring_outputs(ticks: int) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    outputs = _windows(law, 1)
    chance = {z: probability(law, z) for z in [*outputs, outputs.stop]}
    ratios = [chance[z] / chance[z + 1] for z in outputs]
    assert max(max(ratios), 1 / min(ratios)) == law.worst_ratio
    assert within(law.worst_ratio, ticks * TICK)


@settings(max_examples=60)
@given(SHORT, st.integers(1, 9))
def test_a_longer_shift_stays_below_its_bound(ticks: int, units: int) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    bound = fixed_to_ratio(law.shift_ratio(units))
    outputs = _windows(law, units)
    chance = {z: probability(law, z) for z in range(outputs.start, outputs.stop + units)}
    exact = max(max(chance[z] / chance[z + units], chance[z + units] / chance[z]) for z in outputs)
    assert exact <= bound <= exp_below(units * ticks * TICK)
    assert bound <= exact * (1 + Fraction(units, 1 << 60))


@given(TICKS)
def test_every_spend_is_kept_and_used_up(ticks: int) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    assert within(law.worst_ratio, ticks * TICK)
    assert law.worst_ratio > 1
    # A coin has at least probability 2^-64, so no unit spends more than 44.4; up to 30 rounding costs less than 1e-6.
    if ticks < 30 << TICK_BITS:
        assert law.worst_ratio * (1 + Fraction(1, 10**6)) > exp_below(ticks * TICK)
    if ticks < 3 << TICK_BITS:
        assert law.worst_ratio * (1 + Fraction(1, 1 << 59)) > exp_below(ticks * TICK)


def _relaxed(law: TwoSidedGeometric, place: int) -> TwoSidedGeometric:
    """The same law with one threshold lower by one."""
    if place == len(law.digits):
        return TwoSidedGeometric(law.digits, law.tail - 1)
    digits = list(law.digits)
    digits[place] -= 1
    return TwoSidedGeometric(tuple(digits), law.tail)


@settings(max_examples=60)
@given(st.floats(20, TICK_BITS + 3).map(lambda power: int(2**power)), st.data())
def test_thresholds_are_the_lowest_that_keep_the_spend(ticks: int, data: st.DataObject) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    place = data.draw(st.integers(0, len(law.digits)))
    assert not within(_relaxed(law, place).worst_ratio, ticks * TICK)


@settings(max_examples=40)
@given(SHORT)
def test_the_law_is_symmetric_falling_and_sums_to_one(ticks: int) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    period = 1 << len(law.digits)
    for z in range(3 * period):
        assert probability(law, z) == probability(law, -z)
        assert probability(law, z) > probability(law, z + 1)
    # A period further out everything is smaller by the tail's probability: a geometric series.
    one_side = sum(probability(law, z) for z in range(period)) / (1 - Fraction(law.tail, SCALE))
    assert 2 * one_side - probability(law, 0) == 1


@settings(max_examples=10)
@given(st.integers(int(0.2 * 2**TICK_BITS), 4 << TICK_BITS))
def test_moments_are_those_of_the_law(ticks: int) -> None:
    law = TwoSidedGeometric.for_ticks(ticks)
    chances = [(z, float(probability(law, z))) for z in range(400)]  # the rest is below e^-80
    assert law.mean_size == pytest.approx(2 * sum(z * chance for z, chance in chances), rel=1e-12)
    assert law.variance == pytest.approx(2 * sum(z * z * chance for z, chance in chances), rel=1e-12)


@pytest.mark.parametrize("spend", [1e-8, 1e-6, 1e-3, 0.05, 0.3, 1.0, 5.0, 20.0])
def test_moments_are_those_of_the_discrete_laplace_noise(spend: float) -> None:
    law = noise_for(int(spend * 2**TICK_BITS))
    x = int(spend * 2**TICK_BITS) / 2**TICK_BITS
    assert law.mean_size == pytest.approx(1 / math.sinh(x), rel=1e-9)
    assert law.variance == pytest.approx(1 / (2 * math.sinh(x / 2) ** 2), rel=1e-9)
    # Below the Laplace noise of the same ε, which multiupp Theorem 3 takes for the least possible.
    assert law.mean_size < 1 / x * (1 + 1e-9)
    assert law.variance < 2 / x**2 * (1 + 1e-9)


def test_theorem_3_is_no_bound_for_counts() -> None:
    # multiupp Theorem 3: E|noise| ≥ Δ/t. With t = 1, Δ = 1 the implemented noise has 0.851, and spends no more than t.
    law = noise_for(1 << TICK_BITS)
    assert within(law.worst_ratio, Fraction(1))
    assert law.mean_size == pytest.approx(0.8509, abs=1e-4)


def test_the_support_has_no_end() -> None:
    # A bounded support would tell some neighbours apart for certain.
    law = noise_for(1 << (TICK_BITS - 2))
    assert probability(law, 10_000) > 0
    assert probability(law, 10_000) / probability(law, 10_001) <= law.worst_ratio


@given(st.integers(0, 1 << 300), st.integers(0, 1 << 300))
def test_fixed_products_round_up_by_less_than_a_step(first: int, second: int) -> None:
    exact = fixed_to_ratio(first) * fixed_to_ratio(second)
    assert 0 <= fixed_to_ratio(fixed_product(first, second)) - exact < Fraction(1, 1 << 256)


@pytest.mark.parametrize(
    ("digits", "tail"), [((0,), 5), ((SCALE // 2 + 1,), 5), ((), 0), ((), SCALE), ((SCALE,), SCALE - 1)]
)
def test_thresholds_that_would_tell_all_or_nothing_are_refused(digits: tuple[int, ...], tail: int) -> None:
    with pytest.raises(ValueError, match="thresholds must lie in"):
        TwoSidedGeometric(digits, tail)


def test_a_spend_without_signal_is_refused() -> None:
    with pytest.raises(ValueError, match="must spend at least 256 ticks"):
        TwoSidedGeometric.for_ticks(LEAST_TICKS - 1)
