"""What the pipeline knows of a frequency protocol: a frozen value with exact privacy and known variance."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pldp.randomness import Keystream

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Values = NDArray[np.uint16]
Reports = NDArray[np.uint8]
"""One row a user, `report_bytes` wide."""


class PureProtocol(Protocol):
    """A pure protocol: a report supports the user's own value with probability p, any other given one with q.

    All properties follow from the fields once; nobody else recomputes p or q. A meaning never changes:
    another mechanism is another class.
    """

    @property
    def domain_size(self) -> int: ...

    @property
    def p(self) -> float: ...

    @property
    def q(self) -> float: ...

    @property
    def gap(self) -> float:
        """p − q, computed without cancellation."""
        ...

    @property
    def worst_ratio(self) -> Fraction:
        """max over reports z and values x, x′ of Pr[z|x] / Pr[z|x′]: e to the exact ε, as a rational."""
        ...

    @property
    def report_bytes(self) -> int: ...

    @property
    def free_cells(self) -> int:
        """Rank of the covariance of one report's estimate: k for unary encodings, k − 1 where cells sum to one."""
        ...

    def covariance(self, frequency: Floats) -> tuple[Floats, Floats]:
        """Covariance of one report's estimate, its user drawn at random: diag(first) − second secondᵀ.

        Only the first `free_cells` cells count where the whole matrix is singular.
        """
        ...

    def total_law(self, n: int) -> tuple[tuple[int, float], ...]:
        """The sum of the support of n reports, as independent binomials (trials, probability)."""
        ...

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self: ...

    def noise_variance(self, frequency: Floats) -> Floats:
        """Variance that one report's noise adds to a cell of this frequency, the data being fixed."""
        ...

    def perturb(self, values: Values, stream: Keystream) -> Reports: ...

    def support(self, reports: Reports) -> Counts:
        """How many reports support each value; additive over any split of the reports."""
        ...

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        """Rows that no value can have led to; a client that sends them did not follow the plan."""
        ...

    def estimate(self, support: Counts, n: int) -> Floats:
        """Unbiased shares; may be negative or sum to something other than one."""
        ...

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """Support as `perturb` then `support` would give it, drawn from its exact distribution."""
        ...


def estimate_shares(support: Counts, n: int, q: float, gap: float) -> Floats:
    """f̂ = (c/n − q) / (p − q), the unbiased estimate of every pure protocol."""
    return (support / n - q) / gap
