"""What an allocation minimises: Σ_j w_j / x_j^m, with 1/x_j the scale of attribute j's noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Objective:
    """A loss Σ_j w_j / x_j^power in the aggregates' own units; convex in x for every power > 0.

    `weights` None means one each. `relative` weighs an attribute by t_j/Δ_j, the best scale that its budget allows
    (multiupp U3). multiupp's extra variable v with vᵀvʳ ≥ 1 is not needed.
    """

    name: str
    power: float
    weights: tuple[float, ...] | None = None
    relative: bool = False

    @classmethod
    def weighted(cls, weights: Sequence[float], power: float = 1.0) -> Self:
        if not all(math.isfinite(weight) and weight > 0 for weight in weights):
            raise ValueError("objective.weights must be > 0 and finite; leave out an attribute of no interest")
        if not (math.isfinite(power) and 0 < power <= 8):
            raise ValueError(f"objective.power must lie in (0, 8] (got {power:g}); 1 weighs errors, 2 squared ones")
        return cls("weighted", power, tuple(weights))

    def unit_weights(self, caps: Floats, grid: Sequence[Fraction]) -> Floats:
        """Weights (profile × attribute) for x in budgets per grid unit; `caps` are t_j/Δ_j in the same."""
        if self.relative:
            return caps
        weights = np.ones(caps.shape[1]) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weights.size != caps.shape[1]:
            raise ValueError(f"objective.weights must be one for each of the {caps.shape[1]} attributes")
        spread = np.array([float(step) for step in grid]) ** self.power
        return np.broadcast_to(weights * spread, caps.shape)


MAE = Objective("mae", 1.0)
MSE = Objective("mse", 2.0)
MAEL = Objective("mael", 1.0, relative=True)
OBJECTIVES = {objective.name: objective for objective in (MAE, MSE, MAEL)}
