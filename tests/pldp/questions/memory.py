"""A release without any pipeline: people in memory, drawn, tallied, combined and judged by a question alone."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.gate import Among, Between, Gate, Present
from pldp.questions.question import Columns, Evidence, Partitions, Question, Repeats, Rows, Sheet
from pldp.questions.rows import height
from pldp.questions.tables import published_table

Shares = Mapping[tuple[str, str], float]


def size(rows: Columns) -> int:
    """How many people."""
    return next(iter(rows.values())).size


def parts_of(rows: Columns, *edges: int) -> list[Columns]:
    """Partitions that begin at these rows; the first at 0."""
    bounds = [0, *edges, size(rows)]
    return [{name: column[start:end] for name, column in rows.items()} for start, end in pairwise(bounds)]


def reader(partitions: Sequence[Columns]) -> Partitions:
    """Everybody's rows, for evaluations."""

    def people(names: Sequence[str]) -> Iterator[Columns]:
        for rows in partitions:
            yield {name: rows[name] for name in names}

    return people


def of_choice(rows: Columns, sheet: Sheet) -> Columns:
    """The people of a sheet's level, as the pipeline hands them to `draw`."""
    if sheet.choice_field is None:
        return {name: rows[name] for name in sheet.needed}
    chose = rows[sheet.choice_field] == sheet.code
    return {name: rows[name][chose] for name in sheet.needed}


@dataclass
class Memory:
    """Reports by sheet and partition, in place of files: the committed reports that a question reads again."""

    question: Question
    files: dict[tuple[str, int], Columns] = field(default_factory=dict)
    reference: Shares | None = None
    adapted: bytes | None = None

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        return (
            reports
            for (path, _), reports in sorted(self.files.items(), key=lambda one: one[0][1])
            if path == sheet.path
        )

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        raise NotImplementedError("nothing is asked of the reports again")

    def generator(self, label: str) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(label.encode()))

    def draw(self, partitions: Sequence[Columns], seed: int, drawn_by: Question | None = None) -> Memory:
        """Every file, by the streams that a seeded evaluation has; `drawn_by` another question than the reader."""
        client = drawn_by or self.question
        for sheet in client.sheets():
            for number, rows in enumerate(partitions):
                chosen = of_choice(rows, sheet)
                beside: Columns = {}
                if sheet.beside is not None:
                    told = Keystream.seeded(seed, *sheet.beside.labels, number)
                    beside = client.draw(sheet.beside, chosen, told, None)
                drawn = client.draw(sheet, chosen, Keystream.seeded(seed, *sheet.labels, number), None)
                self.files[sheet.path, number] = {**beside, **drawn}
        return self

    def tallies(self) -> dict[str, Any]:
        sums: dict[str, Any] = {}
        for sheet in self.question.sheets():
            for reports in self.columns(sheet):
                tally = self.question.tally(sheet, reports)
                sums[sheet.path] = tally if sheet.path not in sums else sums[sheet.path] + tally
        return sums

    def result(self) -> Any:
        tallies = self.tallies()
        estimates = {method: self.question.combine(method, tallies, self) for method in self.question.methods}
        return self.question.conclude(tallies, estimates)


def released(
    question: Question,
    partitions: Sequence[Columns],
    seed: int,
    drawn_by: Question | None = None,
    reference: Shares | None = None,
) -> Evidence:
    """Everything up to the gates of an evaluation."""
    result = Memory(question, reference=reference).draw(partitions, seed, drawn_by).result()
    truth = question.truth(reader(partitions), result)
    return Evidence(sum(map(size, partitions)), result, question.tables(result), truth)


def repeats(repeat: int, seed: int, **more: Any) -> Repeats:
    return Repeats(repeat, seed, False, lambda *labels: Keystream.seeded(seed, *labels), **more)


def where(rows: Rows, column: str, **fixed: object) -> list[Any]:
    """The values of a column in the rows whose other columns are these."""
    keys = [[rows[name][i] for name in fixed] for i in range(height(rows))]
    return [rows[column][i] for i, key in enumerate(keys) if key == list(fixed.values())]


def check_declared(tables: Mapping[str, Rows]) -> None:
    """Every table has the columns of its declaration, nothing null that must not be, and its key once."""
    for name, rows in tables.items():
        declared = {column.name: column for column in published_table(name).content}
        assert rows.keys() <= declared.keys(), name
        assert {column for column, one in declared.items() if not one.nullable} <= rows.keys(), name
        for column, values in rows.items():
            assert declared[column].nullable or all(value is not None for value in values), (name, column)
        keys = list(zip(*(rows[column] for column in published_table(name).key), strict=True))
        assert len(set(keys)) == len(keys) == height(rows), name


def failed(question: Question, evidence: Evidence) -> set[str]:
    return {gate.name for gate in question.gates(evidence) if not passes(gate)}


def passes(gate: Gate) -> bool:
    """By the plain meaning of its rules: every rule of every row, and no rows is a failure."""
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
