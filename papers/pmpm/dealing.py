"""Budgets dealt at random, as the paper's experiments do, and its bound of the largest error (Theorem 5)."""

from __future__ import annotations

import math

import numpy as np

from pldp.channels.numeric.draws import sample_without_replacement
from pldp.channels.randomness import Keystream
from pldp.questions.numbers.budgets import BudgetClasses, Units
from pldp.questions.numbers.choice import MECHANISMS, ClassMix


def deal_at_random(classes: BudgetClasses, users: int, stream: Keystream) -> Units:
    """Every way to deal the units equally likely.

    k − 1 bars among U + k − 1 places cut the units into k parts.
    """
    k, places = classes.sampled, classes.units + classes.sampled - 1
    if not classes.personal:
        return np.full((users, k), classes.equal, dtype=np.int64)
    bars = sample_without_replacement(users, places, k - 1, stream).astype(np.int64)
    edges = np.hstack([np.full((users, 1), -1), bars, np.full((users, 1), places)])
    return np.diff(edges, axis=1) - 1


def random_mix(classes: BudgetClasses, mechanism: str) -> ClassMix:
    """Expected classes if every way to deal the units is equally likely.

    With u of the U units on one attribute, the other k − 1 divide the rest in C(U − u + k − 2, k − 2) ways.
    """
    k, whole, units = classes.sampled, classes.units, classes.by_weights
    counts = np.array([float(math.comb(whole - u + k - 2, k - 2)) if classes.personal else 1.0 for u in units])
    kind = MECHANISMS[mechanism]
    return ClassMix(tuple(kind.for_budget(classes.budget(u)) for u in units), counts / counts.sum())


def error_bound(beta: float, variance: float, largest: float, attributes: int, n_users: int) -> float:
    """λ with Pr[max_j |Y_j − X_j| ≥ λ] ≤ β for the scaled estimate: pmpm Theorem 5, computed from Eq. A.7.

    2d exp(−nλ² / (2V + 2λR/3)) = β, a quadratic in λ, V the largest variance of a user's scaled report and
    R = largest − x ≤ largest + 1 its range (`largest` = (d/k) max |y|).
    """
    log = math.log(2 * attributes / beta)
    linear = 2 * (largest + 1) * log / 3
    return (linear + math.sqrt(linear**2 + 8 * n_users * variance * log)) / (2 * n_users)


def scaled_range(classes: BudgetClasses, mechanism: str, attributes: int) -> tuple[float, float]:
    """Worst variance of a user's scaled report (pmpm Eq. 12 at |x| = 1 and the lowest budget), and its largest size."""
    kind = MECHANISMS[mechanism].for_budget(classes.lowest)
    factor = attributes / classes.sampled
    second = max(float(kind.base + kind.gain), float(kind.base))
    return factor * second, factor * float(kind.largest)
