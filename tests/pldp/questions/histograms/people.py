"""Made-up people with a job, a sex and an age, and the questions about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Bounds
from pldp.questions.histograms.question import Histograms
from tests.pldp.specs import HIDDEN, histograms

JOBS = ("farmer", "nurse", "smith", "clerk", "other")
SHARES = np.array([0.45, 0.25, 0.15, 0.1, 0.05])
SECTIONS: dict[str, Any] = {
    "attributes": [
        {"name": "job", "values": list(JOBS)},
        {"name": "sex", "values": ["female", "male"]},
        {"name": "age", "kind": "binned", "edges": [0, 20, 40, 60, 100], "quantiles": [0.25, 0.5]},
    ],
    "budget": {"total": 9},
    "expected": {"users": 3000},
}
TOLD = {**HIDDEN, "max_leak": 40}


def question(**sections: Any) -> Histograms:
    return histograms(**{**SECTIONS, **sections})


def hidden(**sections: Any) -> Histograms:
    return question(**{"levels": TOLD, **sections})


def vault(n_users: int, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Skewed values; levels chosen without regard to them."""
    rng = np.random.default_rng(seed)
    rows: dict[str, NDArray[Any]] = {
        "level_0": rng.choice(3, n_users, p=[0.5, 0.3, 0.2]).astype(np.uint8),
        "value_0": rng.choice(5, n_users, p=SHARES).astype(np.uint16),
        "value_1": rng.choice(2, n_users, p=[0.3, 0.7]).astype(np.uint16),
        "value_2": rng.choice(4, n_users, p=[0.4, 0.3, 0.2, 0.1]).astype(np.uint16),
    }
    # Ages as evaluations know them: everybody at the first year of the bin.
    return {**rows, "exact_2": Bounds(0, 100).encode(np.array([0, 20, 40, 60])[rows["value_2"]])}


def partial_to_value(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The same people, farmers hiding and everybody else careless: the choice of a level tells the value."""
    return {**rows, "level_0": np.where(rows["value_0"] == 0, 0, 2).astype(np.uint8)}


def repeated(rows: dict[str, NDArray[Any]], attribute: int, size: int) -> NDArray[np.int64]:
    """How many people hold each value at each level, (level, value)."""
    place = rows["level_0"].astype(np.intp) * size + rows[f"value_{attribute}"]
    return np.bincount(place, minlength=3 * size).reshape(3, size).astype(np.int64)
