"""Coverage of what a release publishes: draw → tally → combine → tables of small specs, in memory, without Prefect.

The same people every time; who chose which level is dealt anew for every repetition, and so is every report.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.coverage_report import Row, row
from pldp.channels.randomness import Keystream
from pldp.questions.histograms.evaluate import value_classes
from pldp.questions.people.spec import Spec
from pldp.questions.question import Columns, Question, Sheet
from pldp.questions.resolve import make_plan

REPEATS = 400
LEVELS = (0.5, 0.3, 0.2)
ATTRIBUTES = {
    "job": (0.455, 0.30, 0.20, 0.04, 0.0),
    "sex": (0.9, 0.1),
}
"""Shares of the values; one person more holds the last but one of the jobs."""
_HIDDEN = {"visibility": "hidden", "epsilon_p": 3, "max_leak": 60}
SPECS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "k-RR": {"mechanism": "krr"},
    "BRR": {"mechanism": "brr"},
    "OUE": {"mechanism": "oue"},
    "OLH": {"mechanism": "olh"},
    "Γ = 1.3": {"levels": {"dependence": 1.3}},
    "unknown dependence": {"levels": {"dependence": "unknown"}},
    "hidden levels, k-RR": {"levels": _HIDDEN, "mechanism": "krr"},
    "hidden levels, BRR": {"levels": _HIDDEN, "mechanism": "brr"},
}
SIZES = ((400, 6), (3_000, 12))
"""Users and the whole budget of both attributes."""


def question(sections: Mapping[str, Any], users: int, total: int) -> Question:
    """The plan of a spec as an author would write it."""
    content = {
        "name": "survey",
        "source": {"path": "people.csv", "user_id": "id"},
        "attributes": [
            {"name": name, "values": [f"v{i}" for i in range(len(shares))]} for name, shares in ATTRIBUTES.items()
        ],
        "budget": {"total": total},
        "expected": {"users": users},
        **sections,
        "levels": {"dependence": 1, "column": "level", **sections.get("levels", {})},
    }
    (histograms,) = make_plan(Spec.model_validate(content), None).questions
    return histograms


@dataclass
class Files:
    """Reports by sheet, in place of files."""

    files: dict[str, Columns] = field(default_factory=dict)
    reference: None = None
    adapted: None = None

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        yield self.files[sheet.path]

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        raise NotImplementedError("histograms ask nothing of the reports again")

    def generator(self, label: str) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(label.encode()))


def people(users: int) -> dict[str, NDArray[Any]]:
    """Columns of a vault, without the levels."""
    columns = {}
    for place, shares in enumerate(ATTRIBUTES.values()):
        counts = np.floor(np.array(shares) * users).astype(np.int64)
        if len(shares) > 2:
            counts[-2] = 1
        counts[0] += users - counts.sum()
        columns[f"value_{place}"] = np.repeat(np.arange(len(shares)), counts).astype(np.uint16)
    return columns


def release(asked: Question, rows: Columns, seed: int) -> Mapping[str, Any]:
    """All tables, as they would be published."""
    reports = Files()
    for sheet in asked.sheets():
        chosen = rows if sheet.choice_field is None else _of_level(rows, sheet)
        beside: Columns = {}
        if sheet.beside is not None:
            beside = asked.draw(sheet.beside, chosen, Keystream.seeded(seed, *sheet.beside.labels, 0), None)
        drawn = asked.draw(sheet, chosen, Keystream.seeded(seed, *sheet.labels, 0), None)
        reports.files[sheet.path] = {**beside, **drawn}
    tallies = {sheet.path: asked.tally(sheet, reports.files[sheet.path]) for sheet in asked.sheets()}
    estimates = {method: asked.combine(method, tallies, reports) for method in asked.methods}
    return asked.tables(asked.conclude(tallies, estimates))


def _of_level(rows: Columns, sheet: Sheet) -> Columns:
    mine = rows[sheet.choice_field or ""] == sheet.code
    return {name: column[mine] for name, column in rows.items()}


def measure(name: str, users: int, total: int) -> list[Row]:
    """Every class of values of both attributes; values of one class together."""
    asked, fixed = question(SPECS[name], users, total), people(users)
    rng = np.random.default_rng(zlib.crc32(f"{name}, {users}".encode()))
    sizes = np.array(LEVELS) * users
    levels = np.repeat(np.arange(len(LEVELS)), sizes.astype(np.int64)).astype(np.uint8)
    ends = []
    for seed in range(REPEATS):
        table = release(asked, fixed | {"level_0": rng.permutation(levels)}, seed)["histograms"]
        ends.append((np.array(table["ci_low"], dtype=float), np.array(table["ci_high"], dtype=float)))
    low, high = (np.stack(side) for side in zip(*ends, strict=True))
    rows, start = [], 0
    for place, (attribute, shares) in enumerate(ATTRIBUTES.items()):
        counts = np.bincount(fixed[f"value_{place}"], minlength=len(shares))
        for value, kind in enumerate(value_classes(counts)):
            setting = f"{name}, n {users:,}, ε {total}, {attribute}, value {value + 1} of {len(shares)}"
            at = start + value
            rows.append(row("published", setting, kind, counts[value] / users, low[:, at], high[:, at]))
        start += len(shares)
    return rows


def pieces() -> Iterator[tuple[str, Callable[[], list[Row]]]]:
    for users, total in SIZES:
        yield from ((f"{name}, n {users:,}", partial(measure, name, users, total)) for name in SPECS)


def rows() -> list[Row]:
    return [one for _, piece in pieces() for one in piece()]
