"""Exact arithmetic of privacy: budgets are rationals, probabilities are integers over 2^64.

A mechanism's guarantee is the worst ratio of two probabilities. Here that ratio is a rational number,
compared with a rational lower bound of e^ε, so no rounding error can hide an overspend.
(Thresholds taken from doubles exceed their nominal ε for about half of all budgets.)
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

BITS = 64
"""Bits of a threshold: a probability is threshold / 2^BITS."""
SCALE = 1 << BITS

_DIGITS = 60
_LONGEST = 100
_FLOOR = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_CEILING = Context(prec=_DIGITS, rounding=ROUND_CEILING)


def parse_ratio(value: object) -> Fraction:
    """A number as the spec's author wrote it: 0.1 means one tenth, "1/3" one third."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError('must be a number or a fraction such as "1/3"')
    written = re.sub(r"\s*/\s*", "/", str(value))
    # Python reads 1e9_999 too, so the underscores must not hide an exponent.
    if len(written) > _LONGEST or re.search(r"[eE][+-]?\d{4,}", written.replace("_", "")):
        raise ValueError("must be written in at most 100 characters, without huge exponents")
    try:
        return Fraction(written)
    except (ValueError, ZeroDivisionError):
        raise ValueError('must be a finite number or a fraction such as "1/3"') from None


def exp_below(epsilon: Fraction) -> Fraction:
    """The largest 60-digit rational we can prove to lie below e^ε."""
    exponent = _FLOOR.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    # Decimal.exp rounds to nearest whatever the context says; one step down makes it a bound.
    return Fraction(_FLOOR.next_minus(_FLOOR.exp(exponent)))


def log_above(ratio: Fraction) -> float:
    """A double not below ln(ratio): what we publish as the exact ε."""
    quotient = _CEILING.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return float_above(Fraction(_CEILING.next_plus(_CEILING.ln(quotient))))


def float_above(number: Fraction) -> float:
    """The smallest double not below the number, so that published budgets keep their order."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def within(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether a worst-case ratio provably keeps the promise of ε."""
    return ratio <= exp_below(epsilon)


def logistic_threshold(epsilon: Fraction) -> int:
    """The largest T with T / (2^64 − T) ≤ e^ε: keeping a bit with T/2^64 spends at most ε."""
    odds = exp_below(epsilon)
    return SCALE * odds.numerator // (odds.numerator + odds.denominator)
