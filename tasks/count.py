"""Count: reports to tallies. Only committed files are counted, each by name, so that none counts twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.tasks.drafts import replace as replace_file
from pldp.tasks.reports import read_reports
from pldp.tasks.run import Run
from pldp.tasks.stage import stage


@dataclass(frozen=True)
class Counted:
    """What the files of one sheet in a batch of partitions add up to, and which they are."""

    sheet: str
    partitions: tuple[int, ...]
    tally: Any


@stage(retries=2)
def count(run: Run, phase: int | None, batch: Sequence[int]) -> list[Counted]:
    """Tallies of every sheet (of one phase, or of all) over a batch: one per partition would grow with the data."""
    counted = []
    for question, sheet in run.plan.sheets:
        if phase not in (None, sheet.phase):
            continue
        partitions = tuple(partition for partition in batch if sheet.covers(partition))
        total: Any = None
        for partition in partitions:
            tally = question.tally(sheet, read_reports(run.report_file(sheet, partition)))
            total = tally if total is None else total + tally
        if partitions:
            counted.append(Counted(sheet.path, partitions, total))
    return counted


def add_up(counted: Iterable[Counted]) -> dict[str, Any]:
    """The tally of every sheet. Whole numbers, so batches add up to the same in any order."""
    tallies: dict[str, Any] = {}
    for one in counted:
        tallies[one.sheet] = one.tally if one.sheet not in tallies else tallies[one.sheet] + one.tally
    return tallies


@stage(retries=2)
def ask(run: Run, number: int, method: str, arrays: str, batch: Sequence[int]) -> NDArray[np.int64]:
    """Σ of what a question finds in every file of the first phase, given arrays that lie in a file of this name."""
    question = run.answered.questions[number]
    wanted = np.load(run.reports / arrays, mmap_mode="r", allow_pickle=False)
    look = getattr(question, method)
    return np.sum(
        [
            look(sheet, read_reports(run.report_file(sheet, partition)), wanted)
            for sheet in question.sheets()
            for partition in batch
            if sheet.phase == 0 and sheet.covers(partition)
        ],
        axis=0,
    )


def record_counted(run: Run, counted: Iterable[Counted]) -> None:
    """Keep which partitions the tallies are of, beside the plan. The gates see the same list; this is for later."""
    partitions: dict[str, list[int]] = {}
    for one in counted:
        partitions.setdefault(one.sheet, []).extend(one.partitions)
    replace_file(run.folder / "counted.json", json.dumps(partitions).encode(), mode=0o644)
