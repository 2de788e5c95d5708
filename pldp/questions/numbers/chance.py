"""Intervals of means of levels that weigh as much as they have people, where those who were asked are a sample.

A few people far from all others may be missing among those who were asked: then nothing that was seen tells of them,
and an interval by what was seen is too short on their side. So the test of every mean takes the spread that people
would have if it is true (`unseen`), as that of the weighted mean does (docs/numeric.md, section 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pldp.questions.numbers.means import unseen

_HALVINGS = 50


@dataclass(frozen=True)
class Chance:
    """A mean, its error and S² by what was seen, in [−1, 1] terms; what S² counts for in its variance because only some
    users were asked (`sampled`), and because users are a sample of a population (`drawn`)."""

    mean: float
    error: float
    between: float
    sampled: float
    drawn: float
    scaled: bool
    """Of `scaled` sampling adds E[x²] in place of S²: also the number of those who were asked is left to chance."""

    def reach(self, hypothesis: float, z: float) -> float:
        """How far the estimate may lie from a mean in [−1, 1]: never less than by what was seen."""
        centre = float(np.clip(self.mean, -1, 1))
        spread = max(unseen(self.between, centre, hypothesis) - self.between, 0.0)
        asked = max(spread + hypothesis**2 - centre**2, 0.0) if self.scaled else spread
        return z * math.sqrt(self.error**2 + self.sampled * asked + self.drawn * spread)

    def interval(self, z: float) -> tuple[float, float]:
        """The means that are not rejected, by bisection from where they are not by what was seen; a mean beyond the
        bounds keeps the ends that it has by that."""
        low, high = (self._end(side, z) for side in (-1, 1))
        return low, high

    def _end(self, side: int, z: float) -> float:
        inside, outside = self.mean + side * z * self.error, float(side)
        if side * inside >= 1 or abs(inside) > 1 or self.sampled + self.drawn == 0:
            return inside
        if abs(self.mean - outside) <= self.reach(outside, z):
            return outside
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if abs(self.mean - middle) <= self.reach(middle, z):
                inside = middle
            else:
                outside = middle
        return inside
