"""A whole collection of means in memory, for evaluations: who samples what, who spends what, reports, estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.numeric.budgets import BudgetClasses, Units, check_budgets, sample_attributes
from pldp.numeric.domain import Codes, Floats
from pldp.numeric.means import ESTIMATORS, Groups, estimate_groups
from pldp.numeric.mechanism import NumericMechanism
from pldp.numeric.predict import MECHANISMS
from pldp.randomness import Keystream

Deal = Callable[[Codes], Units]
"""From the attributes each user sampled to the units each of them gets."""


@dataclass(frozen=True)
class Collection:
    """Mechanisms by units; classes that nobody can have are left out."""

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
        own = np.take_along_axis(codes, sampled.astype(np.int64), axis=1).reshape(-1)
        attribute, spent = sampled.reshape(-1), units.reshape(-1)
        sums = np.zeros((3, len(self.mechanisms), d))
        for c, (u, mechanism) in enumerate(self.mechanisms.items()):
            chosen = np.flatnonzero(spent == u)
            where = attribute[chosen]
            reports = mechanism.perturb(own[chosen], stream)
            order = np.argsort(where, kind="stable")
            edges = np.searchsorted(where[order], np.arange(d + 1))
            for j in range(d):
                tally = mechanism.tally(reports[order[edges[j] : edges[j + 1]]])
                sums[0, c, j] = tally.n_reports
                for scale, total, squares in zip(_floats(mechanism), tally.total, tally.squares, strict=True):
                    sums[1, c, j] += scale * total
                    sums[2, c, j] += scale**2 * squares
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


def _floats(mechanism: NumericMechanism) -> list[float]:
    return [float(scale) for scale in mechanism.scales]
