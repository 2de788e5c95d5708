"""Levels of a made-up survey, and how often an interval of one cell holds, for tests and the coverage bench."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bench.cells import draw_cell, draw_cell_support
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.subset import Subset
from pldp.estimate.combine import Levels
from pldp.estimate.simulate import whole_counts

SHARES = np.array([0.70, 0.20, 0.05, 0.04, 0.01])
PARTS = (Fraction(1, 6), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(1))


def five_levels(size: int, epsilon: int | Fraction, n: int) -> tuple[Counts, tuple[PureProtocol, ...]]:
    """Sizes and protocols of five levels of very unequal sizes and budgets."""
    return whole_counts(SHARES, n), tuple(KRR.for_budget(size, epsilon * part) for part in PARTS)


def three_levels(size: int, epsilon: int | Fraction, n: int) -> tuple[Counts, tuple[PureProtocol, ...]]:
    """As many people at each, a third, a half and all of the budget."""
    parts = (Fraction(1, 3), Fraction(1, 2), Fraction(1))
    return whole_counts(np.ones(3), n), tuple(KRR.for_budget(size, epsilon * part) for part in parts)


def reference_mix(n: int, size: int = 16) -> tuple[Counts, tuple[PureProtocol, ...]]:
    """ε ½, 1, 3 at 50, 30, 20 %: the best of k-RR and subset at each."""
    typical = np.array([1 / size])
    protocols = []
    for budget in (Fraction(1, 2), Fraction(1), Fraction(3)):
        both = (KRR.for_budget(size, budget), Subset.for_budget(size, budget))
        protocols.append(min(both, key=lambda one: float(one.noise_variance(typical)[0])))
    return whole_counts(np.array([0.5, 0.3, 0.2]), n), tuple(protocols)


def one_cell(
    holders: int,
    n: Counts,
    protocols: tuple[PureProtocol, ...],
    repeats: int,
    rng: np.random.Generator,
    tilt: Floats | None = None,
) -> tuple[Levels, Floats]:
    """Level estimates of one value, (repeat, level, 1), and its true share, (repeat, 1)."""
    level_counts = draw_cell(holders, n, repeats, rng, tilt)
    support = draw_cell_support(level_counts, n, protocols, rng)
    estimates = np.stack([one.estimate(support[:, i], int(n[i])) for i, one in enumerate(protocols)], axis=-1)
    return Levels(estimates[..., None], n, protocols), level_counts.sum(axis=-1, keepdims=True) / n.sum()
