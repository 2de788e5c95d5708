"""A release of items without any pipeline: people in memory, drawn, tallied and combined by the question alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.gate import Among, Between, Gate, Present
from pldp.questions.items.combine import ItemsResult
from pldp.questions.items.question import Items
from pldp.questions.items.resolve import make_plan
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.question import Columns, Evidence, Sheet, offsets

NAMES = ("bread", "milk", "beer", "wine", "fish", "tea")
CHANCES = np.array([0.45, 0.4, 0.3, 0.2, 0.12, 0.05])
SPEC: dict[str, Any] = {
    "kind": "items",
    "name": "baskets",
    "source": {"path": "rows.csv"},
    "items": list(NAMES),
    "budget": {"total": 12},
    "itemsets": {"minimum_support": 0.1, "length": 3},
    "levels": {"choices": {"high": "1/2", "low": 1}, "dependence": 1},
    "users": {"path": "users.csv", "level": "level"},
    "expected": {"users": 3000},
}
ONE = {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}, "budget": {"total": 3}}


def make_spec(**sections: Any) -> ItemsSpec:
    """The spec with whole sections replaced, or left out where they are None."""
    content = {key: value for key, value in {**deepcopy(SPEC), **sections}.items() if value is not None}
    return ItemsSpec.model_validate(content)


def make_question(**sections: Any) -> Items:
    spec = make_spec(**sections)
    assert isinstance(spec.items, tuple)
    declared = None if spec.sensitivity is None else spec.sensitivity.levels
    return make_plan(spec, spec.items, None if declared is None else tuple(declared[item] for item in spec.items))


def make_table(n_users: int, seed: int = 1) -> NDArray[np.bool_]:
    """Users × items: bread and milk go together, everything else by itself; some have nothing."""
    rng = np.random.default_rng(seed)
    table = rng.random((n_users, len(NAMES))) < CHANCES
    table[:, 1] |= table[:, 0] & (rng.random(n_users) < 0.5)
    return table


def make_people(table: NDArray[np.bool_], partitions: int = 2, levels: int = 2, seed: int = 1) -> list[Columns]:
    """Partitions as the vault has them: a level for everybody, and the items as a flat list with bounds."""
    chosen = np.random.default_rng(seed).choice(levels, len(table), p=[0.3, 0.7] if levels == 2 else None)
    out: list[Columns] = []
    for partition in range(partitions):
        rows = table[partition::partitions]
        bounds = np.concatenate([[0], np.cumsum(rows.sum(axis=1))]).astype(np.int64)
        out.append(
            {
                "level": chosen[partition::partitions].astype(np.uint8),
                "items": np.nonzero(rows)[1].astype(np.uint32),
                offsets("items"): bounds,
            }
        )
    return out


def one_value(table: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The first item of everybody; tea for those without any."""
    first = np.where(table.any(axis=1), table.argmax(axis=1), len(NAMES) - 1)
    return np.eye(len(NAMES), dtype=np.bool_)[first]


def of_choice(rows: Columns, sheet: Sheet) -> Columns:
    """The people of a sheet's level, as the pipeline hands them to `draw`."""
    chosen = rows["level"] == sheet.code
    sizes = np.diff(rows[offsets("items")])
    bounds = np.concatenate([[0], np.cumsum(sizes[chosen])])
    return {"items": rows["items"][np.repeat(chosen, sizes)], offsets("items"): bounds}


@dataclass
class Memory:
    """Reports by sheet and partition, in place of files; the committed reports that a question reads again."""

    question: Items
    files: dict[tuple[str, int], Columns] = field(default_factory=dict)
    adapted: bytes | None = None
    asked: list[int] = field(default_factory=list)
    """Lengths of the sets that mining asked about."""

    @property
    def reference(self) -> Mapping[tuple[str, str], float] | None:
        return None

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        return (reports for (path, _), reports in self.files.items() if path == sheet.path)

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        self.asked.append(arrays.shape[1])
        sheets = {sheet.path: sheet for sheet in self.question.sheets()}
        parts = [getattr(self.question, method)(sheets[path], one, arrays) for (path, _), one in self.files.items()]
        return np.sum(parts, axis=0)

    def generator(self, label: str) -> np.random.Generator:
        return np.random.default_rng(0)

    def draw(self, people: Sequence[Columns], seed: int, drawn_by: Items | None = None) -> None:
        """Both phases; `drawn_by` another question than the one that reads the reports."""
        client = drawn_by or self.question
        for phase in range(self.question.phases):
            if phase:
                self.adapted = self.question.adapt(self.tallies())
            for sheet in client.sheets():
                for partition, rows in enumerate(people):
                    if sheet.phase == phase and sheet.covers(partition):
                        stream = Keystream.seeded(seed, *sheet.labels, partition)
                        drawn = client.draw(sheet, of_choice(rows, sheet), stream, self.adapted)
                        self.files[sheet.path, partition] = drawn

    def tallies(self) -> dict[str, Any]:
        sums: dict[str, Any] = {}
        for sheet in self.question.sheets():
            for reports in self.columns(sheet):
                tally = self.question.tally(sheet, reports)
                sums[sheet.path] = tally if sheet.path not in sums else sums[sheet.path] + tally
        return sums

    def result(self) -> ItemsResult:
        tallies = self.tallies()
        (method,) = self.question.methods
        return self.question.conclude(tallies, {method: self.question.combine(method, tallies, self)})


def everybody(people: Sequence[Columns]) -> Any:
    return lambda fields: iter(people)


def released(question: Items, people: Sequence[Columns], seed: int = 2, drawn_by: Items | None = None) -> Evidence:
    """Everything up to the gates of an evaluation."""
    memory = Memory(question)
    memory.draw(people, seed, drawn_by)
    result = memory.result()
    n_users = sum(rows["level"].size for rows in people)
    return Evidence(n_users, result, question.tables(result), question.truth(everybody(people), result))


def passes(gate: Gate) -> bool:
    """As Great Expectations judges it: every rule of every row, and no rows is a failure."""
    rows = [dict(zip(gate.rows, values, strict=True)) for values in zip(*gate.rows.values(), strict=True)]
    return bool(rows) and all(_keeps(rule, row[rule.column]) for rule in gate.rules for row in rows)


def _keeps(rule: Between | Among | Present, value: Any) -> bool:
    if isinstance(rule, Present):
        return value is not None
    if value is None:
        return True  # what is missing is Present's to refuse
    if isinstance(rule, Among):
        return value in rule.values
    low, high = -np.inf if rule.low is None else rule.low, np.inf if rule.high is None else rule.high
    return bool((low < value if rule.above else low <= value) and (value < high if rule.below else value <= high))


def failed(question: Items, evidence: Evidence) -> set[str]:
    return {gate.name for gate in question.gates(evidence) if not passes(gate)}
