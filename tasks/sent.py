"""What clients sent: every file of the inbox checked against the plan. What is no report is set aside and counted."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pldp.errors import Outcome, SourceError
from pldp.questions.plan import Plan
from pldp.questions.question import Columns, Question, Sheet
from pldp.questions.received import SetAside
from pldp.questions.rows import height
from pldp.tasks.collector.manifest import Manifest
from pldp.tasks.inbox import MOST_BYTES, MOST_ROWS, Delivery, Reason, deliveries, open_delivery
from pldp.tasks.reports import columns_of
from pldp.tasks.specfile import SpecFile

REPEATED = 1e-6
"""The chance that two honest files of an inbox are equal, and one of them is set aside."""


@dataclass(frozen=True)
class Inbox:
    """One folder of what clients send: the files of one sheet."""

    question: Question
    sheet: Sheet

    @property
    def place(self) -> tuple[str, ...]:
        return tuple(self.sheet.path.split("/"))

    @cached_property
    def shape(self) -> dict[str, pa.DataType]:
        """Its columns and their types."""
        return {name: _arrow(kind) for name, kind in self.question.report_types(self.sheet).items()}

    @property
    def row_bytes(self) -> int:
        return sum(kind.byte_width for kind in self.shape.values())

    @property
    def most_rows(self) -> int:
        return min(MOST_ROWS, MOST_BYTES // self.row_bytes)


def _arrow(kind: str) -> pa.DataType:
    """From a type as questions state it: u1 … u8, i8, or `u8 × m` for a list of m numbers."""
    plain, _, length = kind.partition(" × ")
    element = pa.from_numpy_dtype(np.dtype(plain))
    return pa.list_(element, int(length)) if length else element


@dataclass(frozen=True)
class Sent:
    """All that clients sent and the plan can use: files, rows and weights in the order of the boxes."""

    boxes: list[Inbox]
    files: list[list[Delivery]]
    sizes: list[int]
    weights: list[NDArray[np.int64]]
    set_aside: tuple[SetAside, ...]
    n_users: int


class _Unusable(Exception):
    """A file that is set aside as a whole."""

    def __init__(self, reason: Reason, rows: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.rows = reason, rows


@dataclass
class _Look:
    """What a look at all files finds, one after the other."""

    pairs: float
    files: Counter[str] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)
    seen: dict[bytes, float] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def leave(self, reason: Reason, files: int, reports: int, box: Inbox | None) -> None:
        """Names of files are whoever's who sent them: the folder, which the plan names, says enough."""
        self.files[reason] += files
        self.reports[reason] += reports
        if box is not None:
            columns = ", ".join(f"{name} {kind}" for name, kind in box.shape.items())
            shape = f": {columns}; by its room" if reason is Reason.SHAPE else ""
            self.first.setdefault(reason, box.sheet.path + shape)

    def at(self, one: Delivery, box: Inbox) -> tuple[int, NDArray[np.int64]]:
        """Usable rows of a file and their weights; those that are not are counted."""
        question, sheet = box.question, box.sheet
        digest, taken, unusable, total = hashlib.sha256(), 0, 0, None
        weights = np.empty(0, dtype=np.int64)
        for columns, wrong in _batches(one, box):
            unusable += wrong
            if wrong and question.several_rows:
                raise _Unusable(Reason.PARTIAL)
            for column in columns.values():  # as they are unpacked: a copy may be packed in another way
                digest.update(np.ascontiguousarray(column).tobytes())
            taken += height(columns)
            weights = _added(weights, question.report_weights(sheet, columns))
            if question.several_rows:
                tally = question.tally(sheet, columns)
                total = tally if total is None else total + tally
        if total is not None and not question.whole(sheet, total):
            raise _Unusable(Reason.PARTIAL, taken)
        chance, key = question.collision(sheet), digest.digest()
        if self.pairs * max(self.seen.get(key, 0.0), chance) ** max(taken, 1) <= REPEATED and key in self.seen:
            raise _Unusable(Reason.REPEATED, taken)
        self.seen.setdefault(key, chance)
        if unusable:
            self.leave(Reason.IMPOSSIBLE, 0, unusable, box)
        return taken, weights


def sent_of(file: SpecFile) -> Sent:
    """What clients sent, to a folder or to a collector: that has counted its people, and what it rejected."""
    collected = None if file.spec.source.inbox is None else Manifest.read(file.source)
    return read_sent(file.source, file.plan, collected)


def read_sent(folder: Path, plan: Plan, collected: Manifest | None = None) -> Sent:
    """Look at every file, and at every row of it, before any is taken."""
    boxes = [Inbox(question, sheet) for question, sheet in plan.sheets]
    arrived = deliveries(folder)
    look = _Look(len(arrived) * (len(arrived) - 1) / 2)
    places = {box.place: number for number, box in enumerate(boxes)}
    files: list[list[Delivery]] = [[] for _ in boxes]
    sizes, weights = [0] * len(boxes), [np.empty(0, dtype=np.int64) for _ in boxes]
    for one in arrived:
        number = places.get(one.place)
        try:
            if one.problem is not None:
                raise _Unusable(one.problem)
            if number is None:
                raise _Unusable(Reason.PLACE)
            taken, weight = look.at(one, boxes[number])
        except _Unusable as why:
            box = None if number is None else boxes[number]
            room = one.size // (8 if box is None else box.row_bytes)
            look.leave(why.reason, 1, max(1, room if why.rows is None else why.rows), box)
            continue
        files[number].append(one)
        sizes[number] += taken
        weights[number] = _added(weights[number], weight)
    set_aside = tuple(
        SetAside(reason, look.files[reason], n, look.first.get(reason, ""))
        for reason, n in sorted(look.reports.items())
    )
    people = 0
    if collected is not None:
        set_aside, people = (*set_aside, *collected.set_aside(sum(sizes))), collected.people
    rows = {box.sheet.path: size for box, size in zip(boxes, sizes, strict=True)}
    _require_answers(folder, plan, rows, set_aside)
    n_users = max(people, *(question.people(rows) for question in plan.questions))
    return Sent(boxes, files, sizes, weights, set_aside, n_users)


def _require_answers(folder: Path, plan: Plan, rows: dict[str, int], set_aside: Sequence[SetAside]) -> None:
    """Somebody answered something, and every part of a question that is estimated as a whole."""
    left = "".join(f"; set aside: {one.reports:,} ({one.reason})" for one in set_aside)
    if not any(rows.values()):
        raise SourceError(
            f"no reports{left}", Outcome.NOTHING_PUBLISHED, file=folder, remedy="Check source.reports and its folders."
        )
    there = plan.answered([path for path, n in rows.items() if n]).questions
    answered = {(number, q.subject(s)) for number, q in enumerate(there) for s in q.sheets() if rows[s.path]}
    for number, question in enumerate(there):
        for sheet in question.sheets():
            if (number, question.subject(sheet)) not in answered:
                raise SourceError(
                    f"nobody answered {question.subject(sheet)}{left}",
                    Outcome.NOTHING_PUBLISHED,
                    file=folder,
                    remedy=f"Take it out of the spec, or wait for reports in {sheet.path}.",
                )


def _parquet(handle: Any, box: Inbox) -> pq.ParquetFile:
    """The file of a handle, once its shape is known to be right."""
    file = pq.ParquetFile(handle)
    schema = file.schema_arrow
    # The element of a list may be called anything.
    types = {name: _bare(schema.field(name).type) for name in schema.names}
    if schema.names != list(box.shape) or types != box.shape:
        raise _Unusable(Reason.SHAPE)
    if int(file.metadata.num_rows) > box.most_rows:
        raise _Unusable(Reason.LARGE)
    return file


def _bare(kind: Any) -> Any:
    return pa.list_(kind.value_type, kind.list_size) if pa.types.is_fixed_size_list(kind) else kind


def _records(one: Delivery, box: Inbox) -> Iterator[pa.RecordBatch]:
    try:
        with open_delivery(one) as handle:
            file, rows = _parquet(handle, box), 0
            for batch in file.iter_batches():
                rows += batch.num_rows
                if rows > file.metadata.num_rows:
                    break
                yield batch
            if rows == file.metadata.num_rows:
                return
    except PermissionError:
        raise _Unusable(Reason.UNREADABLE) from None
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise _Unusable(Reason.SHAPE)


def _batches(one: Delivery, box: Inbox) -> Iterator[tuple[Columns, int]]:
    """A file's usable rows, batch by batch, and how many are not."""
    for batch in _records(one, box):
        frame = pl.DataFrame(pl.from_arrow(batch))
        whole = frame.drop_nulls()
        columns = columns_of(whole)
        wrong = box.question.invalid(box.sheet, columns)
        if wrong.size:
            columns = {name: np.delete(column, wrong, axis=0) for name, column in columns.items()}
        yield columns, frame.height - whole.height + wrong.size


def batches(one: Delivery, box: Inbox) -> Iterator[Columns]:
    """The usable rows of a file that was looked at before."""
    return (columns for columns, _ in _batches(one, box))


def _added(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return other if one.size == 0 else one if other.size == 0 else one + other
