"""Numbers in words: no promise may look stronger than it is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.page import words


@given(st.floats(1e-9, 20))
def test_a_factor_is_never_below_the_true_one(epsilon: float) -> None:
    said = float(words.factor(epsilon).replace(",", ""))
    assert said >= math.exp(epsilon) * (1 - 1e-9)
    assert said - 1 <= 1.2 * math.expm1(epsilon) + 1e-12


@given(st.floats(1e-9, 1000))
def test_budgets_and_certainties_are_rounded_up(epsilon: float) -> None:
    assert float(words.above(epsilon)) >= epsilon * (1 - 1e-9)
    sure = words.certainty(epsilon)
    if sure != "practically certain":
        assert float(sure.removesuffix(" % sure")) >= 100 / (1 + math.exp(-epsilon)) - 1e-9


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [(0.8574, "2.4"), (0.2858, "1.34"), (3, "20.1"), (6, "404"), (1e-9, "1.0000000011"), (50, "10^22")],
)
def test_factors(epsilon: float, said: str) -> None:
    assert words.factor(epsilon) == said


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (0, "never"),
        (5e-6, "at most 5 in a million"),
        (1e-5, "at most 10 in a million"),
        (0.01, "at most 10 in a thousand"),
        (2.51e-9, "at most 2.6 in a billion"),
        (1e-15, "less than 1 in a trillion"),
    ],
)
def test_chances(probability: float, said: str) -> None:
    assert words.chance(probability) == said


def test_a_fallback_is_explained_and_only_then() -> None:
    assert words.fallback("oc+", "oc+") is None
    assert words.fallback(None, "sum") is None
    assert "contradicted" in str(words.fallback("oc+", "sum"))
    assert "oc+ instead of op" in str(words.fallback("op", "oc+"))


@pytest.mark.parametrize(("error", "digits"), [(0.024, 1), (0.0012, 2), (0.00004, 4), (1.0, 1), (0.0, 2), (1e-12, 6)])
def test_decimals_show_the_error(error: float, digits: int) -> None:
    assert words.decimals(error) == digits


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        (553_699.2, 4, "553,699"),
        (1_234_567.8, 6, "1,234,568"),
        (-12_345.6, 4, "-12,346"),
        (999.96, 4, "1000"),
        (0.012346, 4, "0.01235"),
        (297.31, 2, "297"),
        (0.0, 4, "0"),
        (2.5e17, 4, "2.5e+17"),
    ],
)
def test_figures_keep_what_stands_before_the_point(value: float, digits: int, said: str) -> None:
    assert words.figure(value, digits) == said


def test_numbers() -> None:
    assert [words.number(value) for value in (20_000.0, 0.5, 2.5e-6, float("nan"), float("inf"))] == [
        "20,000", "0.5", "2.5e-06", "nan", "inf",
    ]  # fmt: skip
    assert words.percent(-0.0123, 1) == "−1.2 %"


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (25614.2, 297.0, "25,614"),
        (45.6976, 0.23, "45.70"),
        (-0.5, 0.031, "−0.500"),
        (1e6, 1e4, "1,000,000"),
        (3.0, 0.0, "3.00"),
    ],
)
def test_a_number_is_told_to_the_second_digit_of_its_error(value: float, error: float, said: str) -> None:
    assert words.measured(value, error) == said
