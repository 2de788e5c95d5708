"""What the tests of the mathematics share: the paper's setting, simulated levels and bounds for random tests."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from pldp.channels.protocol import Counts, Floats
from pldp.channels.unary import BRR
from pldp.estimate.allocation import optimal_shares, split
from pldp.estimate.combine import Levels, estimate_levels
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.plan import AttributePlan, LevelPlan

ALPHA = 1e-6
"""Chance of one random test to fail on correct code: a hundred seeds of a hundred tests fail in 1 of 100 runs."""

PAPER_CELLS = (5, 10, 15, 20, 25)
SHARES = {"high": Fraction(1, 3), "mid": Fraction(1, 2), "low": Fraction(1)}

BUDGETS = st.one_of(
    st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**9),
    st.floats(min_value=1e-9, max_value=1e3).map(lambda x: Fraction(str(x))),
    st.floats(min_value=-9, max_value=3).map(lambda x: Fraction(str(10**x))),
)
"""Budgets as a spec may give them, small ones as often as large ones."""


def z_bound(cells: int = 1, alpha: float = ALPHA) -> float:
    """Two-sided normal bound for the largest of `cells` deviations (Bonferroni)."""
    return float(norm.isf(alpha / 2 / cells))


def to_bins(values: ArrayLike, edges: Sequence[float], missing: float | None = None) -> NDArray[np.uint16]:
    """The bin of each value: bin i holds edges[i] ≤ value < edges[i + 1], values beyond the ends go to the end bins."""
    numbers = np.array(values, dtype=np.float64, ndmin=1)
    if missing is not None:
        numbers[np.isnan(numbers)] = missing
    return np.searchsorted(np.asarray(edges)[1:-1], numbers, side="right").astype(np.uint16)


def zipf(size: int, power: float = 1.0) -> Floats:
    weights = np.arange(1, size + 1) ** -power
    return weights / weights.sum()


def thirds(n_users: int) -> Counts:
    return whole_counts(np.ones(3), n_users)


def attribute_plan(size: int, budget: Fraction) -> AttributePlan:
    """One attribute with the paper's three levels."""
    levels = []
    for level, share in SHARES.items():
        keep = BRR.for_budget(size, budget * share).keep
        parameters = {"domain_size": size, "keep": keep}
        levels.append(LevelPlan(level=level, budget=budget * share, mechanism="brr", parameters=parameters))
    return AttributePlan(
        name=f"of{size}",
        parts=(f"of{size}",),
        values=tuple(f"v{i}" for i in range(size)),
        budget=budget,
        levels=tuple(levels),
        assumed=(1 / size,) * size,
    )


def paper_attributes(total: Fraction) -> tuple[AttributePlan, ...]:
    """mpldp's experiment: five attributes, the total split by OBRR."""
    budgets = split(total, optimal_shares(float(total), PAPER_CELLS))
    return tuple(attribute_plan(size, budget) for size, budget in zip(PAPER_CELLS, budgets, strict=True))


def simulate(
    attribute: AttributePlan, frequency: Floats, n_users: int, repeats: int, rng: np.random.Generator
) -> tuple[Levels, Floats]:
    """Level estimates of equal groups that chose blindly, (repeat, level, value), and the truth."""
    counts, sizes = whole_counts(frequency, n_users), thirds(n_users)
    support = draw_support(draw_levels(counts, sizes, repeats, rng), attribute.protocols, rng)
    return estimate_levels(support, sizes, attribute.protocols), counts / n_users
