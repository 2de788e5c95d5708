"""What speaks against the totals that clients sent, and how far one report may lie at all.

Where items count up to a cap, nobody holds more of attribute j than every item of the catalogue with the largest of
its rows: M_j = n_items · max_i a_ij grid units (rows of the plan, which are times the cap). Noise that spends x on a
grid unit goes beyond t with probability e^(−xt), so an honest report lies within [0, M_j] ± 64/x_j but for e^−64. One
farther away is set aside: a fake moves a total by what that allows, and not by what it likes.
The total of n honest people lies within [0, n·M_j]. Its noise is a sum of two-sided geometric ones, each with
E e^(λe) ≤ exp(λ²v/2/(1 − λb)), b = 1/x its scale, so Bernstein bounds it: Pr[E > t] ≤ exp(−t²/(2(V + bt))).
Where every occurrence is protected by itself nothing bounds what a person holds; `plan` and statement say so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.objectives import Floats
from pldp.questions.doubts import IMPOSSIBLE, Doubt
from pldp.questions.question import Evidence

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates

FAR = 64
"""Scales of noise: an honest report goes beyond them with a probability of e^−64."""


def largest(plan: Aggregates) -> Units | None:
    """M_j: what one person can hold of every attribute, in grid units; None where nothing bounds it."""
    if plan.cap is None:
        return None
    return np.array(plan.rows, dtype=np.int64).max(axis=0) * plan.n_items


def scales(plan: Aggregates, provider: str) -> Floats:
    """1/x, (profile, attribute), in grid units."""
    return float(1 << TICK_BITS) / np.maximum(plan.mechanisms[provider].ticks, 1)


def doubts(plan: Aggregates, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """Totals that no population could have, and reports that stand there too often, with this false alarm together."""
    return (*_impossible(plan, evidence, alpha / 2), *plan.repeated(evidence, alpha / 2))


def _impossible(plan: Aggregates, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """Totals further below nothing, or above what all could hold, than honest noise explains; one per provider."""
    most, grid = largest(plan), np.array([float(unit) for unit in plan.grid])
    doubted = []
    part = alpha / max(len(plan.providers) * len(plan.attributes), 1)
    for provider, totals in evidence.result.totals.items():
        scale = scales(plan, provider).max(axis=0) * grid
        top = np.full(grid.size, np.inf) if most is None else most * grid * totals.n_users
        away = np.maximum(-totals.total, totals.total - top)
        variance = np.square(totals.standard_error)
        chance = np.where(away > 0, np.exp(-np.square(away) / (2 * (variance + scale * np.abs(away)))), 1.0)
        worst = int(np.argmin(chance))
        if chance[worst] < part:
            log = -math.log(part)
            reach = log * scale[worst] + math.sqrt((log * scale[worst]) ** 2 + 2 * log * variance[worst])
            above = totals.total[worst] > 0
            bound = float(top[worst] + reach if above else -reach)
            doubted.append(
                Doubt(
                    provider, None, IMPOSSIBLE, float(totals.total[worst]), bound, float(chance[worst]), withheld=True
                )
            )
    return tuple(doubted)
