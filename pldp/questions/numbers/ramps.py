"""Intervals of quantiles from square-wave reports that hold people's own quantiles, wherever people lie.

Edges e_0 … e_R cut the bounds evenly. A *ramp* h_j is 1 up to e_{j−s}, 0 from e_j on and falls evenly between, so that

    F(e_{j−s}) ≤ mean of h_j over people ≤ F(e_j)

whatever lies inside the bins. Weighted sums of bucket counts estimate the mean of a ramp: Σ_c Σ_b g_cb N_cb has the
mean Σ_c n_c Σ_b g_cb Pr_c[b | x] for somebody at x, which is made h_j(x) at all edges with the least variance
(generalised least squares). Between edges Pr_c[b | x] bends; by how much the sum leaves [1{x ≤ e_{j−s}}, 1{x < e_j}]
anywhere is computed and added to the reach. The quantile lies between e_k and e_{k+1}, F(e_k) < p ≤ F(e_{k+1}). So the
first ramp that is not below p for certain is at most j = k + 1 + s, the last not above p for certain at least j = k.

If choices may depend on values every class of reports estimates the ramp by itself, a level is the mean of its reports,
and levels weigh as much as they have people: right however people choose. Else all classes share one sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Floats
from pldp.channels.numeric.window import Window

Counts = NDArray[np.int64]

LENGTHS = (1, 2, 4, 8, 16, 32)
"""Of ramps, in bins: a longer one has less noise and tells less exactly where people are."""
_FINER = 4  # places between edges at which a sum is compared with its ramp
_RIDGE = 1e-9
"""Relative to the information's mean: keeps directions apart that no report tells. What it bends is computed too."""


@dataclass(frozen=True)
class Class:
    """Reports of one mechanism at one level: how many in each bucket."""

    level: int
    mechanism: Window
    counts: Counts

    @property
    def n(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True)
class Ramps:
    """Estimated means of the ramps that end at e_0 … e_{R+s}, their standard errors, and what they may be off beside
    noise."""

    length: int
    mean: Floats
    standard_error: Floats
    excess: Floats


def law(mechanism: Window, resolution: int, finer: int = 1) -> Floats:
    """Pr[bucket | place], (bucket, place): buckets as wide as bins, places at all edges and `finer` − 1 between."""
    width = mechanism.steps // resolution
    ends = np.minimum(np.arange(0, mechanism.cells + width, width), mechanism.cells).astype(np.float64)
    places = np.linspace(0, mechanism.steps, resolution * finer + 1)
    return np.diff(mechanism.below(ends[:, None], places[None, :]), axis=0)


def ramp(resolution: int, length: int, finer: int = 1) -> Floats:
    """h_j at every place, (j, place), j = 0 … R + s."""
    place = np.arange(resolution * finer + 1) / finer
    return np.clip((np.arange(resolution + length + 1)[:, None] - place) / length, 0, 1)


def _solved(classes: Sequence[Class], resolution: int, pilot: Floats) -> list[Floats]:
    """What makes sums of some classes' counts, (edge, bucket) of each: `wanted` @ this has the means wanted at every
    edge, and the least variance if people are spread as in the pilot."""
    laws = {one.mechanism: law(one.mechanism, resolution) for one in classes}
    scores = {mechanism: table.T / np.maximum(table @ pilot, 1e-300) for mechanism, table in laws.items()}
    information = np.sum([one.n * (scores[one.mechanism] @ laws[one.mechanism]) for one in classes], axis=0)
    information += _RIDGE * np.trace(information) / len(information) * np.eye(len(information))
    inverse = np.linalg.inv(information)
    return [inverse @ scores[one.mechanism] for one in classes]


@dataclass(frozen=True)
class Design:
    """How counts become estimates; all of it follows from the numbers of reports and the pilot."""

    classes: tuple[Class, ...]
    resolution: int
    pilot: Floats
    solved: tuple[Floats, ...]
    together: bool
    parts: tuple[float, ...]
    """What a class counts for where classes estimate a ramp by themselves."""

    @classmethod
    def of(
        cls, classes: Sequence[Class], users: Sequence[int], resolution: int, pilot: Floats, *, independent: bool
    ) -> Design:
        """`users` by level, `pilot` the shares of people at the edges, (R + 1,)."""
        reports = np.bincount([one.level for one in classes], [one.n for one in classes], len(users))
        answering = sum(n for n, m in zip(users, reports, strict=True) if m)
        parts = tuple(float(users[one.level] / answering * one.n / reports[one.level]) for one in classes)
        if independent:
            solved = _solved(classes, resolution, pilot)
        else:
            alone = {one.mechanism: _solved([one], resolution, pilot)[0] * one.n for one in classes}
            solved = [alone[one.mechanism] * part / one.n for one, part in zip(classes, parts, strict=True)]
        return cls(tuple(classes), resolution, pilot, tuple(solved), independent, parts)

    @cached_property
    def laws(self) -> dict[Window, Floats]:
        return {one.mechanism: law(one.mechanism, self.resolution, _FINER) for one in self.classes}

    def excess(self, sums: Sequence[Floats], ends: Counts, length: int) -> Floats:
        """How far the mean of a sum leaves what lies between the two steps, at the worst place, (j,)."""
        place = np.arange(self.resolution * _FINER + 1) / _FINER
        least, most = place <= ends[:, None] - length, place < ends[:, None]
        means = [one.n * (g @ self.laws[one.mechanism]) for g, one in zip(sums, self.classes, strict=True)]

        def beyond(mean: Floats) -> Floats:
            return np.maximum(np.maximum(least - mean, mean - most).max(axis=-1), 0.0)

        if self.together:
            return beyond(np.sum(means, axis=0))
        return np.sum([part * beyond(mean / part) for part, mean in zip(self.parts, means, strict=True)], axis=0)

    def expected(self) -> list[Counts | Floats]:
        """Counts if people were spread as in the pilot."""
        return [one.n * (self.laws[one.mechanism][:, ::_FINER] @ self.pilot) for one in self.classes]

    def ramps(self, length: int, n_users: int | None) -> tuple[Ramps, Ramps]:
        """What is to be expected of the pilot, and what was seen; of errors the larger one: where a few reports count
        for much and none of them was seen, neither an estimate that is too low nor its error tells of them."""
        wanted = ramp(self.resolution, length)
        sums = [wanted @ solved for solved in self.solved]
        excess = self.excess(sums, np.arange(len(wanted)), length)
        both = self.expected(), [one.counts for one in self.classes]
        first, second = (Ramps(length, *self._moments(wanted, sums, counts, n_users), excess) for counts in both)
        return first, replace(second, standard_error=np.maximum(first.standard_error, second.standard_error))

    def _moments(
        self, wanted: Floats, sums: Sequence[Floats], counts: Sequence[Counts | Floats], n_users: int | None
    ) -> tuple[Floats, Floats]:
        """Means and standard errors for the n users, so that who was sampled counts and who exists does not; without
        `n_users` for a population."""
        mean, variance = np.zeros(len(wanted)), np.zeros(len(wanted))
        for g, seen, one in zip(sums, counts, self.classes, strict=True):
            added = g @ seen
            mean += added
            variance += np.maximum((g**2) @ seen - added**2 / one.n, 0.0) * one.n / max(one.n - 1, 1)
        if n_users is not None and self.together:
            # A ramp is at least as large as at the next edge: no more between users than there surely is.
            after = np.append(wanted[:, 1:], wanted[:, -1:], axis=1)
            between = np.maximum(after**2 @ self.pilot - (wanted @ self.pilot) ** 2, 0.0)
            variance = np.maximum(variance - between / n_users, variance / 100)
        return mean, np.sqrt(variance)


def estimate_ramps(design: Design, n_users: int | None) -> dict[int, tuple[Ramps, Ramps]]:
    """By length: what is to be expected of the pilot, and what was seen."""
    return {length: design.ramps(length, n_users) for length in LENGTHS if length <= design.resolution // 2}


def quantile_bins(
    ramps: dict[int, tuple[Ramps, Ramps]], p: float, resolution: int, z: float, floor: float = 0.0
) -> tuple[int, int]:
    """Edges that the interval runs from and to, by the ramp that makes it shortest if people were as in the pilot.

    No standard error is below `floor`: if p lies below an edge, that much chance there is in who was sampled.
    """

    def ends(ramps: Ramps) -> tuple[int, int]:
        reach = z * np.maximum(ramps.standard_error, floor) + ramps.excess
        # Everybody lies below the last ramp's start and nobody below the first edge; p beyond is never reached.
        above, below = ramps.mean + reach >= p, ramps.mean - reach < p
        first = int(np.argmax(above)) if above.any() else resolution + ramps.length
        last = int(np.flatnonzero(below)[-1]) if below.any() else 0
        low = min(max(first - 1 - ramps.length, 0), resolution - 1)
        return low, min(max(last + 1, low + 1), resolution)

    def expected(length: int) -> int:
        low, high = ends(ramps[length][0])
        return high - low

    return ends(ramps[min(ramps, key=expected)][1])
