"""Perturb, for numbers: vault to reports. One file a level and partition holds the reports on all questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.questions.numbers.plan import NumbersPlan
from pldp.questions.numbers.reports import NumberReports, report_numbers
from pldp.tasks.partitions import read_partition
from pldp.tasks.perturb import commit_columns
from pldp.tasks.run import Run
from pldp.tasks.stage import stage


@stage()
def perturb_numbers(run: Run, level: str, batch: Sequence[int]) -> int:
    """Draw which questions the users of a level answer, and their answers; how many were drawn now.

    Both are committed together: if a rerun drew the sample anew beside answers that are there, a user would answer more
    questions than the budget is for.
    """
    numbers = run.plan.numbers
    if numbers is None:
        return 0
    code = run.plan.levels.index(level)
    names = number_fields(numbers)
    drawn = 0
    for partition in batch:
        path = run.numbers_file(level, partition)
        if path.exists():
            continue
        found = read_partition(run, partition, ["level_0", *names])
        own = found["level_0"] == code
        columns = [found[name][own] for name in names]
        codes = np.stack(columns[: numbers.columns]).astype(np.uint32, copy=False)
        weights = np.stack(columns[numbers.columns :]) if len(columns) > numbers.columns else None
        stream = run.stream("numbers", level, partition)
        drawn += write_numbers(path, report_numbers(numbers, code, codes, weights, stream))
    return drawn


def number_fields(numbers: NumbersPlan) -> list[str]:
    """The vault's columns: a code an attribute, and where users say what matters to them a weight an attribute."""
    asked = range(numbers.columns)
    personal = numbers.importance in ("columns", "weights")
    return [*(f"number_{i}" for i in asked), *(f"weight_{i}" for i in asked if personal)]


def write_numbers(path: Path, reports: NumberReports) -> int:
    columns = {"question": reports.question, "class": reports.class_, "report": reports.report}
    return commit_columns(path, {name: pa.array(column) for name, column in columns.items()})


def read_numbers(path: Path) -> NumberReports:
    table = pq.read_table(path, columns=["question", "class", "report"], memory_map=False)
    question, class_, report = (table[name].to_numpy() for name in table.column_names)
    return NumberReports(question, class_, report)
