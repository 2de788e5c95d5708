"""What clients sent: every file of the inbox checked against the plan, all of them before any is taken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.channels.protocol import PureProtocol, Reports
from pldp.errors import SourceError
from pldp.estimate.honest import collision
from pldp.questions.plan import Plan
from pldp.tasks.inbox import MOST_BYTES, MOST_ROWS, NOTHING, Delivery, deliveries, open_delivery, printable

REPEATED = 1e-6
"""The chance that an inbox of honest reports is refused because two of its files are equal."""


@dataclass(frozen=True)
class Inbox:
    """One folder of what clients send: its columns, each the reports of one protocol."""

    attribute: str
    level: str | None
    columns: dict[str, PureProtocol]
    collision: float
    """Bound on the chance that two honest rows are equal."""

    @property
    def place(self) -> tuple[str, ...]:
        folder = (f"attribute={self.attribute}",)
        return folder if self.level is None else (*folder, f"level={self.level}")

    @property
    def widths(self) -> dict[str, int]:
        return {name: protocol.report_bytes for name, protocol in self.columns.items()}


def inboxes(plan: Plan) -> list[Inbox]:
    if plan.hidden is not None:
        told = plan.hidden.protocol
        return [
            Inbox(a.name, None, {"level": told, "report": a.protocols[0]}, max(map(collision, a.protocols)))
            for a in plan.attributes
        ]
    return [
        Inbox(a.name, level.level, {"report": level.protocol}, collision(level.protocol))
        for a in plan.attributes
        for level in a.levels
    ]


@dataclass(frozen=True)
class Sent:
    """All that clients sent, once it is known to be reports: files and rows in the order of the boxes."""

    boxes: list[Inbox]
    files: list[list[Delivery]]
    sizes: list[int]
    n_users: int


def read_sent(folder: Path, plan: Plan) -> Sent:
    """Look at every file, and at every row of it; the error names the first that is not as the plan says."""
    boxes = inboxes(plan)
    files = _by_box(deliveries(folder), boxes)
    sizes = _checked(files, boxes)
    totals = dict.fromkeys((a.name for a in plan.attributes), 0)
    for box, size in zip(boxes, sizes, strict=True):
        totals[box.attribute] += size
    n_users = max(totals.values())
    if n_users == 0:
        raise SourceError(f"{folder}: no reports. Check source.reports and its folders. {NOTHING}")
    return Sent(boxes, files, sizes, n_users)


def _by_box(sent: Iterable[Delivery], boxes: Sequence[Inbox]) -> list[list[Delivery]]:
    """The files of each box, in the order of the boxes; those of none are strangers."""
    files: dict[tuple[str, ...], list[Delivery]] = {box.place: [] for box in boxes}
    wanted = "attribute=<name>" if any(box.level is None for box in boxes) else "attribute=<name>/level=<level>"
    for one in sent:
        if one.place not in files:
            raise SourceError(
                f"{printable(one.path)}: reports must lie in {wanted} with names from the spec. {NOTHING}"
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
        sizes.append(0)
        for one in files:
            # Of the rows as they are unpacked: a copy may be packed in another way.
            digest, rows = hashlib.sha256(), 0
            for batch in batches(one, box):
                digest.update(batch.tobytes())
                rows += len(batch)
            sizes[-1] += rows
            earlier, chance = first.setdefault(digest.digest(), (one, box.collision))
            if earlier is not one and pairs * max(chance, box.collision) ** rows <= REPEATED:
                raise SourceError(
                    f"{printable(one.path)}: holds the same {rows:,} reports as {printable(earlier.path)}; honest "
                    f"noise does not repeat itself, so they would count twice. Remove one of the two. {NOTHING}"
                )
    return sizes


def _parquet(handle: IO[bytes], one: Delivery, box: Inbox) -> pq.ParquetFile:
    """The file of a handle, once its shape is known to be right."""
    file = pq.ParquetFile(handle)
    schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    shape = {name: pa.binary(width) for name, width in box.widths.items()}
    if schema.names != list(shape) or any(schema.field(name).type != kind for name, kind in shape.items()):
        raise _misshapen(one, box)
    most = min(MOST_ROWS, MOST_BYTES // sum(box.widths.values()))
    if rows > most:
        raise SourceError(
            f"{printable(one.path)}: has {rows:,} rows; a file of such reports has at most {most:,}. "
            f"Cut it into smaller ones. {NOTHING}"
        )
    return file


def _misshapen(one: Delivery, box: Inbox) -> SourceError:
    columns = " and ".join(f"`{name}` of {width} bytes a row" for name, width in box.widths.items())
    return SourceError(
        f"{printable(one.path)}: must be a whole Parquet file with one column {columns}, as the plan's "
        f"{box.columns['report'].name} makes them. {NOTHING}"
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


def batches(one: Delivery, box: Inbox) -> Iterator[Reports]:
    """A file's rows, all columns side by side, each checked against what its protocol can make."""
    row = 0
    for batch in _records(one, box):
        parts = []
        for name, protocol in box.columns.items():
            column = batch.column(name)
            reports = as_reports(column)
            invalid = protocol.invalid(reports)
            if column.null_count or invalid.size:
                where = f", row {row + int(invalid[0]) + 1}" if invalid.size else ""
                kind = f"is not a report that {protocol.name} can make"
                raise SourceError(f"{printable(one.path)}{where}, column {name}: {kind}. {NOTHING}")
            parts.append(reports)
        row += batch.num_rows
        yield np.concatenate(parts, axis=1)


def as_reports(column: pa.FixedSizeBinaryArray) -> Reports:
    """A column's own bytes, (user, byte), without a copy."""
    width = column.type.byte_width
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return data[column.offset * width : (column.offset + len(column)) * width].reshape(len(column), width)
