"""How improbable a total's distance from the truth is, by a bound that needs no approximation."""

from __future__ import annotations

import numpy as np

from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.objectives import Floats

_POINTS = 400


def noise_tails(distance: Units, spend: Floats, users: Units) -> Floats:
    """Bound of Pr[|summed noise| ≥ |distance|] for each attribute; `spend` is x_j (profile × attribute).

    Chernoff: for every 0 < θ < min x, Pr[S ≥ s] ≤ exp(K(θ) − θ s) with K(θ) = Σ_profiles n · log E e^{θZ}. Two-sided
    geometric noise has E e^{θZ} = (1 − e^{−x})² / ((1 − e^{θ−x})(1 − e^{−θ−x})). The implemented thresholds differ from
    it by 2^-60 and the normal law by its tails, which for few users are too thin.
    """
    present = users > 0
    x, n = spend[present], users[present].astype(np.float64)
    shares = np.concatenate([np.geomspace(1e-6, 0.5, _POINTS), 1 - np.geomspace(0.5, 1e-6, _POINTS)])
    theta = shares[:, None] * x.min(axis=0)
    # Σ_p n_p log E e^{θZ}, as (θ, attribute).
    growth = np.zeros_like(theta)
    for spends, size in zip(x, n, strict=True):
        log = 2 * np.log(-np.expm1(-spends)) - np.log(-np.expm1(theta - spends)) - np.log(-np.expm1(-theta - spends))
        growth += size * log
    exponent = (growth - theta * np.abs(distance)).min(axis=0)
    bound: Floats = np.minimum(1.0, 2 * np.exp(np.minimum(exponent, 0.0)))
    return bound
