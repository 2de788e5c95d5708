"""Made-up users of films, and a pipeline in memory that takes them through the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.totals import AggregatesResult
from pldp.questions.gate import Among, Between, Gate, Present
from pldp.questions.question import ANSWER, Columns, Evidence, Partitions, Repeats, Sheet, Tallies
from tests.pldp.questions.aggregates.world import ATTRIBUTES


def vault(n_users: int, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Three users in ten are shy; aggregates are skewed, and some users have none."""
    rng = np.random.default_rng(seed)
    rows: dict[str, NDArray[Any]] = {"profile": (rng.random(n_users) < 0.3).astype(np.uint16)}
    for i, mean in enumerate((9.0, 2.0, 0.4)):
        rows[f"a_{i}"] = rng.poisson(mean, n_users).astype(np.int64)
    return rows


def parts_of(rows: Columns, edges: Sequence[int]) -> list[dict[str, NDArray[Any]]]:
    """Partitions that begin at these rows."""
    bounds = [*edges, len(rows["profile"])]
    return [{name: column[start:end] for name, column in rows.items()} for start, end in pairwise(bounds)]


def reader(partitions: Sequence[Columns]) -> Partitions:
    def people(names: Sequence[str]) -> Iterator[Columns]:
        for rows in partitions:
            yield {name: rows[name] for name in names}

    return people


@dataclass(frozen=True)
class Files:
    """Committed reports, in memory: by the path of their sheet, one file per partition."""

    by_sheet: Mapping[str, Sequence[Columns]]
    adapted: None = field(default=None)
    reference: None = field(default=None)

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        return iter(self.by_sheet[sheet.path])

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        raise NotImplementedError("aggregates ask nothing")

    def generator(self, label: str) -> np.random.Generator:
        raise NotImplementedError("aggregates simulate nothing")


def draw(question: Aggregates, partitions: Sequence[Columns], seed: int) -> Files:
    """Every file, by the streams that a seeded evaluation has."""
    return Files(
        {
            sheet.path: [
                question.draw(sheet, rows, Keystream.seeded(seed, *sheet.labels, number), None)
                for number, rows in enumerate(partitions)
            ]
            for sheet in question.sheets()
        }
    )


def count(question: Aggregates, files: Files) -> Tallies:
    return {
        sheet.path: reduce(add, (question.tally(sheet, reports) for reports in files.columns(sheet)))
        for sheet in question.sheets()
    }


def conclude(question: Aggregates, files: Files) -> AggregatesResult:
    tallies = count(question, files)
    estimates = {method: question.combine(method, tallies, files) for method in question.methods}
    assert list(estimates) == [ANSWER]
    return question.conclude(tallies, estimates)


def evidence(question: Aggregates, result: AggregatesResult, n_users: int, truth: Units | None = None) -> Evidence:
    return Evidence(n_users, result, question.tables(result), truth)


def repeats(files: Files | None, seed: int) -> Repeats:
    return Repeats(None, seed, False, lambda label: Keystream.seeded(seed, label), reports=files)


def true_totals(rows: Columns) -> list[int]:
    return [int(rows[f"a_{i}"].sum()) for i in range(len(ATTRIBUTES))]


def failed(gates: Sequence[Gate]) -> set[str]:
    """The gates that refuse, by the plain meaning of their rules."""
    return {gate.name for gate in gates if not all(_holds(gate, rule) for rule in gate.rules)}


def _holds(gate: Gate, rule: Between | Among | Present) -> bool:
    values = gate.rows[rule.column]
    if isinstance(rule, Present):
        return len(values) > 0 and all(value is not None for value in values)
    if isinstance(rule, Among):
        return len(values) > 0 and all(value in rule.values for value in values)
    return len(values) > 0 and all(
        (rule.low is None or (value > rule.low if rule.above else value >= rule.low))
        and (rule.high is None or (value < rule.high if rule.below else value <= rule.high))
        for value in values
        if value is not None
    )
