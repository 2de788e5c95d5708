"""Population totals and shares from perturbed aggregates, with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.objectives import Floats
from pldp.questions.aggregates.reach import reach
from pldp.questions.aggregates.release import Mechanism

_RELIABLE = 3.0
"""Shares divide by the sum of all totals; below this many standard errors the quotient has no useful error."""


@dataclass(frozen=True)
class Sums:
    """What a partition contributes: summed reports (attribute) and users (profile), both whole numbers."""

    reports: Units
    users: Units

    @classmethod
    def of(cls, reports: Units, profiles: NDArray[np.integer], n_profiles: int) -> Self:
        return cls(reports.sum(axis=0), np.bincount(profiles, minlength=n_profiles).astype(np.int64))

    @property
    def n_reports(self) -> int:
        return int(self.users.sum())

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.reports + other.reports, self.users + other.users)


@dataclass(frozen=True)
class Totals:
    """One number an attribute, in the aggregates' own units. Unbiased; a total may be negative."""

    total: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats
    n_users: int

    def shares(self) -> tuple[Floats, Floats]:
        """Each attribute's share of all totals and its standard error, to first order in the noise.

        With s = T_j/T: T·(ŝ − s) ≈ (1−s)·e_j − s·Σ_{k≠j} e_k. Not a number unless T is three standard errors from zero.
        """
        overall, noise = self.total.sum(), np.square(self.standard_error)
        if overall <= _RELIABLE * np.sqrt(noise.sum()):
            return np.full_like(self.total, np.nan), np.full_like(self.total, np.nan)
        share = self.total / overall
        spread = np.square(1 - share) * noise + np.square(share) * (noise.sum() - noise)
        return share, np.sqrt(spread) / overall


@dataclass(frozen=True)
class AggregatesResult:
    """What every provider's reports add up to, and the totals estimated from it, by provider."""

    sums: dict[str, Sums]
    totals: dict[str, Totals]


def estimate_totals(sums: Sums, mechanism: Mechanism, confidence: float = 0.95) -> Totals:
    """The noise has mean zero, so the sum of the reports is unbiased for the sum of the aggregates of these users.

    Its variance is that of the implemented noise, added over users by their profiles; the data add none, being those of
    the users themselves. Intervals are those of the noise's own law (`reach`): whole units where it is a few of them.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1 (got {confidence:g})")
    grid = np.array([float(step) for step in mechanism.catalogue.grid])
    total = sums.reports * grid
    error = np.sqrt(sums.users @ mechanism.variance) * grid
    reaches = np.array([reach(spends, sums.users, confidence) for spends in mechanism.spends.T]) * grid
    return Totals(total, error, total - reaches, total + reaches, sums.n_reports)
