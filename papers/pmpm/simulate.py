"""A whole collection of means in memory, for evaluations: who samples what, who spends what, reports, estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.numeric.domain import Codes, Floats
from pldp.channels.numeric.hybrid import HM
from pldp.channels.numeric.mechanism import NumericMechanism, Reports
from pldp.channels.randomness import Keystream
from pldp.questions.numbers.budgets import BudgetClasses, Units, check_budgets, sample_attributes
from pldp.questions.numbers.choice import MECHANISMS
from pldp.questions.numbers.means import ESTIMATORS, Groups, estimate_groups

Deal = Callable[[Codes], Units]
"""From the attributes each user sampled to the units each of them gets."""


@dataclass(frozen=True)
class Collection:
    """Mechanisms by units, the fewest first; classes that nobody can have are left out."""

    classes: BudgetClasses
    mechanisms: dict[int, NumericMechanism]

    @classmethod
    def of(cls, classes: BudgetClasses, mechanism: str, units: Sequence[int]) -> Collection:
        kind = MECHANISMS[mechanism]
        return cls(classes, {u: kind.for_budget(classes.budget(u)) for u in units})

    def simulate(
        self, codes: Codes, deal: Deal, stream: Keystream, methods: Sequence[str] = ESTIMATORS
    ) -> dict[str, tuple[Floats, Floats]]:
        """Means of all attributes and their standard errors, in [−1, 1] terms, by method; `codes` one row a user."""
        n, d = codes.shape
        k = self.classes.sampled
        sampled = sample_attributes(n, d, k, stream)
        units = deal(sampled)
        if check_budgets(self.classes, units).size:
            raise ValueError("a user's budgets leave the range or do not sum to the total")
        held = np.take_along_axis(codes, sampled.astype(np.int64), axis=1).reshape(-1)
        attribute, spent = sampled.reshape(-1).astype(np.int64), units.reshape(-1)
        known = np.array(list(self.mechanisms))
        class_ = np.minimum(np.searchsorted(known, spent), known.size - 1)
        if (known[class_] != spent).any():
            raise ValueError("a user's budget is of no class of the collection")
        values = np.empty(held.size)
        for c, mechanism in enumerate(self.mechanisms.values()):
            chosen = np.flatnonzero(class_ == c)
            values[chosen] = report_values(mechanism, mechanism.perturb(held[chosen], stream))
        cell, cells = class_ * d + attribute, len(self.mechanisms) * d
        added = [np.bincount(cell, weights, minlength=cells) for weights in (None, values, values**2)]
        sums: Floats = np.stack(added).astype(np.float64).reshape(3, len(self.mechanisms), d)
        return {method: self._estimate(method, sums, n, k / d) for method in methods}

    def _estimate(self, method: str, sums: Floats, n_users: int, sampling: float) -> tuple[Floats, Floats]:
        constants = np.array([[float(m.gain), float(m.base), float(m.largest)] for m in self.mechanisms.values()])
        estimates = []
        for j in range(sums.shape[2]):
            seen = sums[0, :, j] > 0
            groups = Groups(*sums[:, seen, j], *constants[seen].T)
            estimates.append(estimate_groups(method, groups, n_users, sampling)[:2] if seen.any() else (np.nan, np.inf))
        means, variances = np.array(estimates).T
        return means, np.sqrt(variances)


def report_values(mechanism: NumericMechanism, reports: Reports) -> Floats:
    """The unbiased y of every report: a line through those of the reports 0 and 1, two lines for HM."""
    if isinstance(mechanism, HM):
        signs = report_values(mechanism.duchi, reports)
        return np.where(reports < 2, signs, report_values(mechanism.pm, reports.astype(np.int64) - 2))
    zero, one = (
        float(mechanism.scales[0] * mechanism.tally(np.array([j], dtype=mechanism.report_type)).total[0])
        for j in (0, 1)
    )
    return zero + (one - zero) * reports.astype(np.float64)
