"""Numbers of a release beside the same numbers computed another way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pldp.channels.protocol import Floats

NEAR = 1e-6
"""What formulas leave out of an error or of an interval, as a share of it: terms of one person among a million."""


@dataclass(frozen=True)
class Compared:
    """Numbers of the plan or of a table, beside the same computed another way, by what they are of."""

    what: str
    off: float
    """The largest difference beyond the slack, relative where it is of probabilities."""
    slack: float = 0.0
    """What a threshold's step and double precision alone may make of it: much where a budget is tiny."""

    @classmethod
    def between(cls, what: str, these: Any, those: Any, slack: float = 0.0) -> Compared:
        apart: Floats = np.abs(np.asarray(these, dtype=np.float64) - np.asarray(those, dtype=np.float64))
        largest = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))
        return cls(what, max(largest - slack, 0.0), slack)


def errors_between(what: str, stated: Any, expected: Any, slack: float = 0.0) -> Compared:
    """Variances times people, to `NEAR`, in which a slack is too; one is added, because without noise there is none."""
    apart = np.abs((np.asarray(stated, dtype=np.float64) + 1) / (np.asarray(expected, dtype=np.float64) + 1) - 1)
    return Compared.between(what, np.maximum(apart - NEAR, 0), 0.0, max(slack - NEAR, 0.0))
