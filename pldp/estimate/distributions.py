"""Tails and quantiles of the normal, χ² and Student's distributions, by SciPy's special functions.

`scipy.stats` gives the same numbers and takes a second to import, which every command would wait for. Names and
arguments are its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri, stdtrit

Number = Any
"""A number or an array of them; the answer has the same shape."""


class norm:  # noqa: N801 — as SciPy calls it
    """The standard normal distribution."""

    @staticmethod
    def cdf(x: Number) -> Number:
        """Pr[Z ≤ x]."""
        return ndtr(x)

    @staticmethod
    def sf(x: Number) -> Number:
        """Pr[Z > x], exact where it is tiny."""
        return ndtr(-x)

    @staticmethod
    def ppf(q: Number) -> Number:
        """The x with Pr[Z ≤ x] = q."""
        return ndtri(q)

    @staticmethod
    def isf(q: Number) -> Number:
        """The x with Pr[Z > x] = q."""
        return -ndtri(q)


class chi2:  # noqa: N801
    """χ² with `df` degrees of freedom."""

    @staticmethod
    def sf(x: Number, df: Number) -> Number:
        """Pr[X > x]: 1 for a statistic that rounding made negative, unknown without a degree of freedom."""
        return np.where(np.asarray(df) > 0, chdtrc(df, np.maximum(x, 0)), np.nan)[()]


class t:  # noqa: N801
    """Student's distribution with `df` degrees of freedom."""

    @staticmethod
    def ppf(q: Number, df: Number) -> Number:
        """The x with Pr[T ≤ x] = q, 0 < q < 1."""
        return stdtrit(df, q)
