"""Perturb: vault to reports. The last stage that reads the vault."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

import polars as pl

from pldp.questions.question import Columns, Question, Sheet
from pldp.questions.shuffle import shuffle
from pldp.tasks.partitions import read_partition
from pldp.tasks.reports import columns_of, commit_reports, read_reports
from pldp.tasks.run import Run
from pldp.tasks.stage import stage

_UNDER_WAY = 3
"""Files that wait for the disk at a time: with fewer, whoever draws waits too; each holds a copy of its reports."""


class Commits:
    """Commits of report files by a thread of their own: the disk is waited for while the next file is drawn.

    A few files are under way at a time, and all of them are committed when the block ends.
    """

    def __init__(self) -> None:
        self.reports = 0
        """How many were committed."""
        self._pool = ThreadPoolExecutor(1)
        self._under_way: deque[Future[int]] = deque()

    def __enter__(self) -> Self:
        return self

    def add(self, path: Path, columns: Columns) -> None:
        """Begin to commit a file; what went wrong with an earlier one is raised here."""
        self._settle(_UNDER_WAY - 1)
        kept = {name: column.copy() for name, column in columns.items()}  # whoever draws works on in that memory
        self._under_way.append(self._pool.submit(commit_reports, path, kept))

    def _settle(self, left: int) -> None:
        """Wait until no more than so many are under way."""
        while len(self._under_way) > left:
            self.reports += self._under_way.popleft().result()

    def __exit__(self, failure: type[BaseException] | None, *rest: object) -> None:
        self._pool.shutdown()
        if failure is None:
            self._settle(0)


@stage()
def perturb(run: Run, phase: int, choice: str | None, batch: Sequence[int]) -> int:
    """Draw the reports of the people who chose `choice` (None: of everybody together) in a batch of partitions.

    Drawn once: a file that is committed is never drawn again, and a second writer that lost the race leaves what is
    there. How many reports were drawn now.
    """
    return _draw(run, [(q, s) for q, s in run.plan.sheets if s.choice == choice and s.phase == phase], batch)


@stage()
def perturb_together(run: Run, phase: int, batch: Sequence[int]) -> int:
    """The same of everybody, whatever they chose: for workers who read the vault over a network, a partition once."""
    return _draw(run, [(q, s) for q, s in run.plan.sheets if s.phase == phase], batch)


def _draw(run: Run, asked: Sequence[tuple[Question, Sheet]], batch: Sequence[int]) -> int:
    with Commits() as commits:
        for partition in batch:
            missing = [
                (question, sheet)
                for question, sheet in asked
                if sheet.covers(partition) and not run.report_file(sheet, partition).exists()
            ]
            if missing:
                draw_partition(run, partition, missing, commits)
    return commits.reports


def draw_partition(run: Run, partition: int, missing: Sequence[tuple[Question, Sheet]], commits: Commits) -> None:
    """Read a partition of the vault once and commit a report file of it for each of these sheets.

    What stands beside a sheet's reports is committed before them: a rerun repeats it instead of drawing it anew.
    """
    fields = dict.fromkeys(field for _, sheet in missing for field in sheet.needed)
    people = read_partition(run, partition, list(fields))
    chosen: dict[tuple[str | None, int | None], Columns] = {}
    for question, sheet in missing:
        who = (sheet.choice_field, sheet.code)
        if who not in chosen:
            chosen[who] = columns_of(_who_chose(people, sheet))
        rows = chosen[who]
        beside: Columns = {}
        if sheet.beside is not None:
            path = run.report_file(sheet.beside, partition)
            if not path.exists():
                stream = run.stream(*sheet.beside.labels, partition)
                commit_reports(path, question.draw(sheet.beside, rows, stream, None))
            beside = read_reports(path)
        adapted = run.adapted.read_bytes() if sheet.phase else None
        stream = run.stream(*sheet.labels, partition)
        reports = question.draw(sheet, rows, stream, adapted)
        if sheet.shuffled and not run.evaluation:  # an evaluation compares reports with the truth, row by row
            reports = shuffle(reports, stream)
        commits.add(run.report_file(sheet, partition), {**beside, **reports})


def _who_chose(people: pl.DataFrame, sheet: Sheet) -> pl.DataFrame:
    return people if sheet.choice_field is None else people.filter(pl.col(sheet.choice_field) == sheet.code)
