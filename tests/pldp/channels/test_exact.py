from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, exp_below, float_above, log_above, logistic_threshold, parse_ratio, within
from tests.pldp.world import BUDGETS

# Twice the digits of the code under test.
_PRECISE = Context(prec=130)


def _exp(epsilon: Fraction) -> Fraction:
    return Fraction(_PRECISE.exp(_PRECISE.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


def _ln(ratio: Fraction) -> Fraction:
    return Fraction(_PRECISE.ln(_PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (" 1 / 3 ", Fraction(1, 3)),
        (2, Fraction(2)),
        ("1e-9", Fraction(1, 10**9)),
        (1e-9, Fraction(1, 10**9)),
        (Fraction(2, 7), Fraction(2, 7)),
        (-1, Fraction(-1)),
    ],
)
def test_a_ratio_means_what_was_written(written: object, meant: Fraction) -> None:
    assert parse_ratio(written) == meant


@pytest.mark.parametrize(
    "written", [True, None, [1], "", "abc", "1/0", "nan", "inf", math.nan, -math.inf, "1 2", "1//3"]
)
def test_what_is_no_finite_number_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="number or a fraction"):
        parse_ratio(written)


@given(BUDGETS)
def test_exp_below_is_a_tight_lower_bound(epsilon: Fraction) -> None:
    true = _exp(epsilon)
    bound = exp_below(epsilon)
    assert bound < true
    # 60 digits; rounding the exponent costs ε more of them (ε ≤ 1000).
    assert (true - bound) / true < Fraction(3 + 10 * epsilon, 10**59)


@given(st.fractions(min_value=1, max_value=10**30, max_denominator=10**20).filter(lambda ratio: ratio > 1))
def test_log_above_is_the_next_double(ratio: Fraction) -> None:
    published, true = log_above(ratio), _ln(ratio)
    assert Fraction(published) >= true
    # One double less would not cover the logarithm (its 60-digit bound, to be exact).
    assert Fraction(math.nextafter(published, 0)) < true * (1 + Fraction(1, 10**55))


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=1000))
def test_float_above_is_the_smallest_double_not_below(number: Fraction) -> None:
    double = float_above(number)
    assert Fraction(double) >= number
    assert Fraction(math.nextafter(double, -math.inf)) < number


@given(BUDGETS)
def test_threshold_is_the_largest_that_keeps_the_promise(epsilon: Fraction) -> None:
    threshold = logistic_threshold(epsilon)
    assert 0 < threshold < SCALE
    assert within(Fraction(threshold, SCALE - threshold), epsilon)
    if threshold < SCALE - 1:  # 2^64 itself would be a certain answer
        assert not within(Fraction(threshold + 1, SCALE - threshold - 1), epsilon)


@given(BUDGETS, BUDGETS)
def test_thresholds_grow_with_the_budget(one: Fraction, other: Fraction) -> None:
    smaller, larger = sorted((one, other))
    assert logistic_threshold(smaller) <= logistic_threshold(larger)


def test_thresholds_from_doubles_overspend_about_half_the_time() -> None:
    # Why thresholds are integers made with decimals; no randomness, the budgets are 0.01, 0.02, …, 6.00.
    budgets = [Fraction(i, 100) for i in range(1, 601)]
    naive = [int(SCALE / (1 + math.exp(-float(epsilon)))) for epsilon in budgets]
    over = sum(not within(Fraction(t, SCALE - t), e) for t, e in zip(naive, budgets, strict=True))
    assert 0.3 < over / len(budgets) < 0.7
