"""What is wanted of a channel for single values, and whether one keeps it: pairs of values with a bound of each.

Pairs are a million where values are a thousand, and different budgets few: what is looked at pair by pair is not
compared as fractions, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np

from pldp.channels.exact import exp_below
from pldp.questions.items.reconstruct import noise_covariance
from pldp.questions.items.values import ValueChannel


@dataclass(frozen=True)
class Demand:
    """What is wanted of a channel for k values: weights of their errors, assumed shares, bounds for every pair."""

    weights: tuple[float, ...]
    frequency: tuple[float, ...]
    bounds: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        k = len(self.weights)
        if k < 2 or len(self.frequency) != k or len(self.bounds) != k or any(len(row) != k for row in self.bounds):
            raise ValueError("weights, assumed frequencies and bounds must be given for each of at least 2 values")
        if not all(0 <= weight < np.inf for weight in self.weights) or not sum(self.weights):
            raise ValueError("weights must be ≥ 0 and finite, at least one of them above 0")
        if min(self.frequency) < 0 or abs(sum(self.frequency) - 1) > 1e-6:
            raise ValueError("assumed frequencies must be ≥ 0 and sum to one")
        if self.strictest <= 0 or tuple(zip(*self.bounds, strict=True)) != self.bounds:
            raise ValueError("bounds must be > 0 and the same for both orders of a pair")

    @classmethod
    def of(
        cls,
        weights: Sequence[float],
        budgets: Fraction | Sequence[Fraction],
        frequency: Sequence[float] | None = None,
    ) -> Demand:
        """One budget for all pairs, or one a value: then a pair has the smaller one (Gu et al.'s MinID)."""
        k = len(weights)
        promised = [budgets] * k if isinstance(budgets, Fraction) else list(budgets)
        shares = [1 / k] * k if frequency is None else list(frequency)
        order = sorted(set(promised))
        ranks = [order.index(budget) for budget in promised]
        bounds = {rank: tuple(order[min(rank, other)] for other in ranks) for rank in set(ranks)}
        return cls(tuple(weights), tuple(shares), tuple(bounds[rank] for rank in ranks))

    @cached_property
    def strictest(self) -> Fraction:
        pairs = (row[:x] + row[x + 1 :] for x, row in enumerate(self.bounds))
        return min({id(bound): bound for row in pairs for bound in row}.values())


def predicted_error(channel: ValueChannel, demand: Demand) -> float:
    """Σ_x w_x Var(f̂_x) of one report: divide by n."""
    noise = noise_covariance(channel.inverse, channel.matrix, np.array(demand.frequency))
    return float(np.array(demand.weights) @ np.diag(noise))


def keeps_bounds(channel: ValueChannel, demand: Demand) -> bool:
    """Every ordered pair's exact worst ratio against a rational below e^ε_xx′."""
    rows = list(zip(channel.redraw, channel.mass, strict=True))
    for x, z in kinds(rows, demand):
        ratio = channel.pair_ratio(x, z)
        if ratio is None or ratio > exp_below(demand.bounds[x][z]):
            return False
    return True


def kinds(rows: Sequence[Hashable], demand: Demand) -> Iterable[tuple[int, int]]:
    """One ordered pair of values for every kind there is: pairs with the same rows and bound have the same ratios."""
    numbers: dict[Hashable, int] = {}
    kind = [numbers.setdefault(row, len(numbers)) for row in rows]
    # A bound is known by where it lies.
    pairs = permutations(range(len(rows)), 2)
    return {(kind[x], kind[z], id(demand.bounds[x][z])): (x, z) for x, z in pairs}.values()
