"""From messages to files of reports: rows by box, each box shuffled and written with only its own rows in memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.client.plan import Plan
from pldp.client.questions import Box
from pldp.questions.question import Columns
from pldp.questions.shuffle import shuffle
from pldp.tasks.reports import commit_reports, read_reports

_SPOOL = ".spool"
_HELD = 1 << 16
"""Rows of all boxes in memory before they go to the spool."""
_ROWS = 1 << 22
"""Of a file of reports: one may hold four times as many."""


def write_boxes(folder: Path, plan: Plan, contents: Iterable[bytes]) -> int:
    """Files of every box of the plan; how many messages they are of."""
    choices = [choice for question in plan.questions.values() for choice in question.choices.values()]
    boxes = {box.path: box for choice in choices for box in choice.boxes}
    spool = _Spool(folder / _SPOOL, boxes)
    people = 0
    for content in contents:
        people += 1
        spool.add(json.loads(content))
    spool.flush()
    stream = Keystream.secure()
    for path, box in boxes.items():
        # The order of keys is random already; a shuffle owes nothing to how clients drew their ids.
        rows = shuffle(spool.read(box), stream)
        n = len(next(iter(rows.values())))
        for number, start in enumerate(range(0, max(n, 1), _ROWS)):
            part = {name: column[start : start + _ROWS] for name, column in rows.items()}
            commit_reports(folder / path / f"reports-{number:03d}.parquet", part)
    shutil.rmtree(spool.folder, ignore_errors=True)
    return people


class _Spool:
    """Rows as they are met, some ten thousand at a time, in a file per box."""

    def __init__(self, folder: Path, boxes: dict[str, Box]) -> None:
        self.folder, self._boxes = folder, boxes
        self._numbers = {path: number for number, path in enumerate(boxes)}
        self._rows: dict[str, list[Any]] = {}
        self._held = self._flushes = 0

    def add(self, rows: Sequence[tuple[str, Any]]) -> None:
        for path, row in rows:
            self._rows.setdefault(path, []).append(row)
        self._held += len(rows)
        if self._held >= _HELD:
            self.flush()

    def flush(self) -> None:
        for path, rows in self._rows.items():
            commit_reports(self._place(path) / f"{self._flushes:06d}.parquet", _columns(self._boxes[path], rows))
        self._rows, self._held, self._flushes = {}, 0, self._flushes + 1

    def read(self, box: Box) -> Columns:
        parts = [read_reports(path) for path in sorted(self._place(box.path).glob("*.parquet"))]
        empty = _columns(box, [])
        return {name: np.concatenate([part[name] for part in (empty, *parts)]) for name in empty}

    def _place(self, path: str) -> Path:
        return self.folder / str(self._numbers[path])


def width(kind: str) -> int:
    """How many numbers of a row a column of this type takes."""
    length = kind.partition(" × ")[2]
    return int(length) if length else 1


def _columns(box: Box, rows: Sequence[Any]) -> Columns:
    columns, at = {}, 0
    for name, kind in box.columns:
        plain, _, length = kind.partition(" × ")
        taken = width(kind)
        cells = np.array([row[at : at + taken] for row in rows], dtype=plain).reshape(len(rows), taken)
        columns[name] = cells if length else cells[:, 0]
        at += taken
    return columns
