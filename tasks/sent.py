"""What clients sent: every file of the inbox checked against the plan, all of them before any is taken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.errors import SourceError
from pldp.questions.plan import Plan
from pldp.questions.question import Columns, Question, Sheet
from pldp.tasks.inbox import MOST_BYTES, MOST_ROWS, NOTHING, Delivery, deliveries, open_delivery, printable
from pldp.tasks.reports import columns_of

REPEATED = 1e-6
"""The chance that an inbox of honest reports is refused because two of its files are equal."""


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


def _arrow(kind: str) -> pa.DataType:
    """From a type as questions state it: u1 … u8, i8, or `u8 × m` for a list of m numbers."""
    plain, _, length = kind.partition(" × ")
    element = pa.from_numpy_dtype(np.dtype(plain))
    return pa.list_(element, int(length)) if length else element


@dataclass(frozen=True)
class Sent:
    """All that clients sent, once it is known to be reports: files and rows in the order of the boxes."""

    boxes: list[Inbox]
    files: list[list[Delivery]]
    sizes: list[int]
    n_users: int


def read_sent(folder: Path, plan: Plan) -> Sent:
    """Look at every file, and at every row of it; the error names the first that is not as the plan says."""
    boxes = [Inbox(question, sheet) for question, sheet in plan.sheets]
    files = _by_box(deliveries(folder), boxes)
    sizes = _checked(files, boxes)
    rows = {box.sheet.path: size for box, size in zip(boxes, sizes, strict=True)}
    n_users = max(question.people(rows) for question in plan.questions)
    if n_users == 0:
        raise SourceError(f"{folder}: no reports. Check source.reports and its folders. {NOTHING}")
    return Sent(boxes, files, sizes, n_users)


def _by_box(sent: Iterable[Delivery], boxes: Sequence[Inbox]) -> list[list[Delivery]]:
    """The files of each box, in the order of the boxes; those of none are strangers."""
    files: dict[tuple[str, ...], list[Delivery]] = {box.place: [] for box in boxes}
    example = "/".join(part.partition("=")[0] + "=<…>" if "=" in part else part for part in boxes[0].place)
    for one in sent:
        if one.place not in files:
            raise SourceError(
                f"{printable(one.path)}: reports must lie in {example} with names from the spec. {NOTHING}"
            )
        files[one.place].append(one)
    return [files[box.place] for box in boxes]


def _checked(sent: Sequence[Sequence[Delivery]], boxes: Sequence[Inbox]) -> list[int]:
    """How many rows each box has, once every one of them is known to be a report, and no file the copy of another."""
    n_files = sum(map(len, sent))
    pairs = n_files * (n_files - 1) / 2
    first: dict[bytes, tuple[Delivery, float]] = {}
    sizes = []
    for box, files in zip(boxes, sent, strict=True):
        chance = box.question.collision(box.sheet)
        sizes.append(0)
        for one in files:
            # Of the rows as they are unpacked: a copy may be packed in another way.
            digest, rows = hashlib.sha256(), 0
            for batch in batches(one, box):
                for column in batch.values():
                    digest.update(np.ascontiguousarray(column).tobytes())
                rows += len(next(iter(batch.values())))
            sizes[-1] += rows
            earlier, of_earlier = first.setdefault(digest.digest(), (one, chance))
            if earlier is not one and pairs * max(of_earlier, chance) ** rows <= REPEATED:
                raise SourceError(
                    f"{printable(one.path)}: holds the same {rows:,} reports as {printable(earlier.path)}; honest "
                    f"noise does not repeat itself, so they would count twice. Remove one of the two. {NOTHING}"
                )
    return sizes


def _parquet(handle: IO[bytes], one: Delivery, box: Inbox) -> pq.ParquetFile:
    """The file of a handle, once its shape is known to be right."""
    file = pq.ParquetFile(handle)
    schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    # The element of a list may be called anything.
    types = {name: _bare(schema.field(name).type) for name in schema.names}
    if schema.names != list(box.shape) or types != box.shape:
        raise _misshapen(one, box)
    most = min(MOST_ROWS, MOST_BYTES // box.row_bytes)
    if rows > most:
        raise SourceError(
            f"{printable(one.path)}: has {rows:,} rows; a file of such reports has at most {most:,}. "
            f"Cut it into smaller ones. {NOTHING}"
        )
    return file


def _bare(kind: Any) -> Any:
    return pa.list_(kind.value_type, kind.list_size) if pa.types.is_fixed_size_list(kind) else kind


def _misshapen(one: Delivery, box: Inbox) -> SourceError:
    columns = ", ".join(f"`{name}` of {kind}" for name, kind in box.shape.items())
    return SourceError(
        f"{printable(one.path)}: must be a whole Parquet file with exactly the columns {columns}, as the plan's "
        f"channel makes them. {NOTHING}"
    )


def _records(one: Delivery, box: Inbox) -> Iterator[pa.RecordBatch]:
    try:
        with open_delivery(one) as handle:
            file, rows = _parquet(handle, one, box), 0
            for batch in file.iter_batches():
                rows += batch.num_rows
                if rows > file.metadata.num_rows:
                    break
                yield batch
            if rows == file.metadata.num_rows:
                return
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise _misshapen(one, box)


def batches(one: Delivery, box: Inbox) -> Iterator[Columns]:
    """A file's rows, each checked against what the plan's channel can make."""
    row = 0
    for batch in _records(one, box):
        frame = pl.DataFrame(pl.from_arrow(batch))
        columns = {} if sum(frame.null_count().row(0)) else columns_of(frame)
        invalid = box.question.invalid(box.sheet, columns) if columns else np.empty(0, dtype=np.intp)
        if not columns or invalid.size:
            where = f", row {row + int(invalid[0]) + 1}" if invalid.size else ""
            raise SourceError(
                f"{printable(one.path)}{where}: is not a report that the plan's channel can make. {NOTHING}"
            )
        row += batch.num_rows
        yield columns
