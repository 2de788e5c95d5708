"""What multiupp measures: overall and per-attribute loss of an allocation, and the bounds of its Theorem 3.

All functions take arrays profile × attribute and give one number a profile. `size` is E|noise| and `variance` the noise
variance, in the aggregates' own units: those of the implemented noise (`Mechanism`), or the Laplace noise's.
"""

from __future__ import annotations

import numpy as np

from pldp.questions.aggregates.budgets import TICK_BITS, caps
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.objectives import Floats


def scales(catalogue: Catalogue, ticks: Units) -> Floats:
    """Laplace scales 1/x_j in the aggregates' own units: E|noise|; twice their squares are variances."""
    grid = np.array([float(step) for step in catalogue.grid])
    return grid * 2.0**TICK_BITS / ticks


def best_scales(catalogue: Catalogue, budgets: Units) -> Floats:
    """Δ_j/t_j: what each attribute's budget alone allows (BU_j in multiupp U3)."""
    return scales(catalogue, caps(catalogue, budgets))


def geometric_moments(spend: Floats) -> tuple[Floats, Floats]:
    """E|noise| and its variance for spends x a grid unit, in grid units: 1/sinh x and 1/(2 sinh²(x/2)).

    The implemented thresholds differ from it by 1e-9 at most; beyond x = 700 there is no noise left.
    """
    x = np.minimum(spend, 700.0)
    return 1 / np.sinh(x), 0.5 / np.sinh(x / 2) ** 2


def mean_absolute_error(size: Floats) -> Floats:
    """multiupp U1."""
    return size.mean(axis=-1)


def mean_squared_error(variance: Floats) -> Floats:
    """multiupp U2."""
    return variance.mean(axis=-1)


def mean_absolute_error_loss(size: Floats, best: Floats) -> Floats:
    """multiupp U3: how much larger errors are than the attributes' own budgets ask for, minus one."""
    return (size / best).mean(axis=-1) - 1


def lower_bounds(best: Floats) -> dict[str, Floats]:
    """multiupp Theorem 3, for Laplace noise; whole-numbered noise goes a little below (docs/aggregates.md)."""
    return {
        "mae": mean_absolute_error(best),
        "mse": mean_squared_error(2 * np.square(best)),
        "mael": np.zeros(best.shape[:-1]),
    }


def kl_divergence(best: Floats, used: Floats) -> Floats:
    """Divergence of the shares of noise variance that the budgets ask for from those used (multiupp 5.1).

    Zero for equal scaling, which keeps the shares as they are.
    """
    asked, got = np.square(best), np.square(used)
    asked, got = asked / asked.sum(axis=-1, keepdims=True), got / got.sum(axis=-1, keepdims=True)
    return (asked * np.log(asked / got)).sum(axis=-1)
