"""Every level's own estimate of every item, with bounds of its noise that need no data: what gates look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts
from pldp.questions.items.checks import agreement, bernstein
from pldp.questions.items.levels import Floats
from pldp.questions.items.plan import ItemsPlan


@dataclass(frozen=True)
class Singles:
    """(item, level); levels nobody chose are left out."""

    support: Floats
    noise: Floats
    """The most that the noise of one report can be, whatever the user holds."""
    largest: Floats
    """The most that one report can be away from its mean."""
    n: Counts

    def outside(self) -> float:
        """Least tail of an estimate outside 0 … 1, times the number of estimates."""
        away = np.maximum(np.maximum(-self.support, self.support - 1), 0)
        tails = bernstein(away, self.noise / self.n, self.largest / self.n)
        return float(min(1.0, tails.min() * tails.size))

    def agree(self) -> float:
        """Least tail of a level's estimates against those of the others, times their number."""
        return agreement(self.support, self.noise, self.largest, self.n)


def level_singles(plan: ItemsPlan, counts: Counts, n: Counts) -> Singles:
    """From raw support, (level, value)."""
    there = np.flatnonzero(n > 0)
    columns = [plan.levels[level].channel.singles(counts[level], int(n[level])) for level in there]
    support, noise, largest = (np.stack(column, axis=1) for column in zip(*columns, strict=True))
    return Singles(support, noise, largest, n[there])
