"""Spending a profile's budgets: what each attribute's noise may spend, optimal and never above either promise.

Budgets are whole ticks of 2^-40, rounded down, so both promises are inequalities between integers:
rows · ticks ≤ ε (multiupp Eq. 5) and Δ_j · ticks_j ≤ t_j (Eq. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pldp.errors import BrokenRule
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.objectives import Floats, Objective
from pldp.questions.aggregates.solver import Solution, certificate, product, solve

TICK_BITS = 40
LEAST_TICKS = 1 << 8
"""The least spend of a grid unit, 2^-32: its noise still fits a machine word many million times over."""
MOST_SPENDS = 1 << 13
"""Different spends of a release, each a noise with thresholds of its own, up to which every tick is kept."""
COARSE_BITS = 12
"""Significant bits of a spend where there would be more of them: at most 2^-11 of it is given away."""
_MOST = 1 << (TICK_BITS + 10)  # above 1024 per item noise has long vanished
_WORKING_ROWS = 256
_ROUNDS = 100
_CHUNK_CELLS = 1 << 22
_Number = TypeVar("_Number", np.int64, np.float64)


class EpsilonTooSmall(ValueError):
    """A provider's ε leaves nothing to tell; the message begins with the field."""


@dataclass(frozen=True)
class Allocation:
    """What each profile spends on one grid unit of each attribute, in ticks, with its proof of optimality.

    `residual` is the largest violation of the Karush–Kuhn–Tucker conditions, each relative to the attribute's own part
    of the loss; `gap` is how far the loss can lie above the optimum, relative, by the dual. Both are those of the real
    solution; rounding it down to ticks loses at most a relative 2^-40 / x more. Closed forms have zeros.
    """

    ticks: Units
    residual: Floats
    gap: Floats
    steps: int = 0
    coarse: bool = False
    """Whether the spends were rounded down to few significant bits."""

    @property
    def spend(self) -> Floats:
        """x_j per grid unit: the noise has scale 1/x_j units. Exact: ticks have at most 50 bits."""
        return self.ticks.astype(np.float64) * 2.0**-TICK_BITS


def to_ticks(budget: Fraction) -> int:
    """The budget in ticks, rounded down; more than 1024 counts as 1024."""
    return min(budget.numerator * (1 << TICK_BITS) // budget.denominator, _MOST)


def profile_ticks(catalogue: Catalogue, budgets: Sequence[Sequence[Fraction]]) -> Units:
    """Per-attribute budgets t (profile × attribute) in ticks; a broken rule names row and column of that table."""
    table = np.empty((len(budgets), len(catalogue.attributes)), dtype=np.int64)
    for profile, row in enumerate(budgets):
        if len(row) != table.shape[1]:
            raise BrokenRule(f"must hold one budget for each of the {table.shape[1]} attributes", row=profile)
        for column, budget in enumerate(row):
            if budget.numerator <= 0:
                raise BrokenRule(
                    "must be > 0: an attribute that must not be told at all is left out of the release",
                    row=profile,
                    column=catalogue.attributes[column],
                    value=str(budget),
                )
            table[profile, column] = to_ticks(budget)
    return table


def distinct_profiles(ticks: Units) -> tuple[Units, NDArray[np.intp]]:
    """The distinct profiles and each one's number among them, so that every one is solved once."""
    profiles, index = np.unique(ticks, axis=0, return_inverse=True)
    return profiles, index.reshape(-1)


def caps(catalogue: Catalogue, budgets: Units) -> Units:
    """t_j/Δ_j in ticks per grid unit: what attribute j may spend at most (multiupp Eq. 4)."""
    most = budgets // catalogue.sensitivity
    _refuse_tiny(catalogue, most)
    return most


def turning_point(catalogue: Catalogue, budgets: Units) -> Units:
    """multiupp Theorem 2 in ticks: from this ε on, every attribute gets all that its own budget allows."""
    return _fullest(catalogue.rows, caps(catalogue, budgets))


def _fullest(rows: Units, ticks: Units) -> Units:
    """What each profile's worst item spends, in ticks."""
    worst = np.zeros(len(ticks), dtype=np.int64)
    for part in _row_chunks(rows, len(ticks)):
        np.maximum(worst, (ticks @ part.T).max(axis=1), out=worst)
    return worst


def equal_scaling(catalogue: Catalogue, budgets: Units, epsilon: int) -> Units:
    """multiupp's baseline: all budgets of a profile times ε over its turning point, if that is less than one."""
    most, turn = caps(catalogue, budgets), turning_point(catalogue, budgets)
    _check_epsilon(epsilon)
    # Python's integers: the product has 100 bits. Rounding down keeps every row below ε.
    ratios = [[int(cap) * min(epsilon, int(t)) // int(t) for cap in row] for row, t in zip(most, turn, strict=True)]
    scaled = np.array(ratios, dtype=np.int64).reshape(most.shape)
    _refuse_tiny(catalogue, scaled)
    return scaled


def allocate(catalogue: Catalogue, budgets: Units, epsilon: int, objective: Objective) -> Allocation:
    """The optimum of multiupp's programme (6) for every profile, in ticks, within both promises exactly."""
    _check_epsilon(epsilon)
    most = caps(catalogue, budgets)
    if catalogue.separable:
        # One attribute a row: the rows are further bounds on single attributes, and the loss falls in every x.
        best = Allocation(np.minimum(most, epsilon // catalogue.sensitivity), *np.zeros((2, len(most))))
    else:
        profiles, index = distinct_profiles(most)
        once = _allocate(catalogue, profiles, epsilon, objective)
        best = Allocation(once.ticks[index], once.residual[index], once.gap[index], once.steps)
    if best.ticks.min(initial=LEAST_TICKS) < LEAST_TICKS:
        column = int(np.argmin(best.ticks.min(axis=0)))
        raise EpsilonTooSmall(
            f"epsilon leaves less than 2^-32 for a grid unit of {catalogue.attributes[column]}, noise without any "
            "signal: raise it, or leave the attribute or the provider out"
        )
    return best


def _allocate(catalogue: Catalogue, most: Units, epsilon: int, objective: Objective) -> Allocation:
    """As above, of distinct profiles whose attributes share rows; `most` are their caps."""
    residual, gap = np.zeros((2, len(most)))
    ticks, turn = most.copy(), _fullest(catalogue.rows, most)
    tight = np.flatnonzero(turn > epsilon)
    if not tight.size:
        return Allocation(ticks, residual, gap)
    cap, ratio = most[tight].astype(np.float64), epsilon / turn[tight]
    # z = 1 is equal scaling: x = cap · ratio · z.
    scale, top = cap * (ratio / epsilon)[:, None], 1 / ratio
    weights = objective.unit_weights(cap * 2.0**-TICK_BITS, catalogue.grid)
    weights = weights * (cap / cap.max(axis=1, keepdims=True)) ** -objective.power
    solution, rows = _solve(catalogue.rows, scale, weights, objective.power, top)
    residual[tight], gap[tight] = certificate(rows, scale, weights, objective.power, top, solution)
    ticks[tight] = _round_down(catalogue.rows, cap * (ratio[:, None] * solution.z), most[tight], epsilon)
    return Allocation(ticks, residual, gap, solution.steps)


def share_spends(allocations: Sequence[Allocation]) -> list[Allocation]:
    """Every spend has a noise of its own. Where these would be too many, they are rounded down to 12 significant bits.

    Both promises still hold, and losses Σ w/x^m rise by a factor of (1 + 2^-11)^m at most.
    """
    if np.unique(np.concatenate([one.ticks for one in allocations])).size <= MOST_SPENDS:
        return list(allocations)
    return [replace(one, ticks=_coarse(one.ticks), coarse=True) for one in allocations]


def _coarse(ticks: Units) -> Units:
    surplus = np.maximum(np.frexp(ticks)[1] - COARSE_BITS, 0)
    rounded: Units = ticks >> surplus << surplus
    return rounded


def _solve(rows: Units, scale: Floats, weights: Floats, power: float, top: Floats) -> tuple[Solution, Floats]:
    """Solve with the rows that can bind; if they are many, with those that do, found by solving and looking.

    Returns the rows used too. A row left out is satisfied by every profile, so with a price of zero it is optimal.
    """
    can_bind = np.concatenate(
        [
            product(scale * top[:, None], part.T).max(axis=0) > 1
            for part in _row_chunks(rows.astype(np.float64), len(scale))
        ]
    )
    useful = rows[can_bind].astype(np.float64)
    if len(useful) <= _WORKING_ROWS:
        return solve(useful, scale, weights, power, top), useful
    worst, _ = _most_violated(useful, scale)
    chosen = np.unique(worst)
    for _ in range(_ROUNDS):
        solution = solve(useful[chosen], scale, weights, power, top)
        worst, excess = _most_violated(useful, scale * solution.z)
        if excess.max() <= 1 + 1e-12:
            return solution, useful[chosen]
        chosen = np.union1d(chosen, worst[excess > 1 + 1e-12])
    raise ArithmeticError("the catalogue's rows in force were not found; please report the catalogue")


def _most_violated(rows: Floats, spent: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Each profile's fullest row and how full it is."""
    worst, excess = np.zeros(len(spent), dtype=np.intp), np.zeros(len(spent))
    start = 0
    for part in _row_chunks(rows, len(spent)):
        full = product(spent, part.T)
        fullest = full.argmax(axis=1)
        value = full[np.arange(len(full)), fullest]
        worst = np.where(value > excess, fullest + start, worst)
        excess = np.maximum(excess, value)
        start += len(part)
    return worst, excess


def _round_down(rows: Units, ticks: Floats, most: Units, epsilon: int) -> Units:
    """Whole ticks, checked and if need be lowered until both promises hold as integers.

    Where the solution lies a hair below a whole tick, as it does at every bound in force, that tick is taken: with half
    a tick a row to give away, a row's whole sum exceeds ε by less than one, hence not at all.
    """
    hair = 0.5 / float(rows.sum(axis=1).max())
    whole = np.minimum(np.floor(ticks + hair).astype(np.int64), most)
    for part in _row_chunks(rows, len(whole)):
        while True:
            over = (whole @ part.T).max(axis=1) > epsilon
            if not over.any():
                break
            whole[over] -= (whole[over] >> 50) + 1
    return whole


def _row_chunks(rows: NDArray[_Number], profiles: int) -> list[NDArray[_Number]]:
    size = max(1, _CHUNK_CELLS // max(profiles, 1))
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _check_epsilon(epsilon: int) -> None:
    if epsilon <= 0:
        raise EpsilonTooSmall(f"epsilon must be at least 2^-{TICK_BITS}; leave the provider out instead")


def _refuse_tiny(catalogue: Catalogue, ticks: Units) -> None:
    if ticks.size and int(ticks.min()) < LEAST_TICKS:
        profile, column = (int(index[0]) for index in np.nonzero(ticks < LEAST_TICKS))
        raise BrokenRule(
            "leaves less than 2^-32 for a grid unit, noise without any signal",
            row=profile,
            column=catalogue.attributes[column],
            remedy="Raise the budget, or leave the attribute out.",
        )
