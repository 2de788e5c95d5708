"""Collect: reports that clients perturbed themselves, into the run. There is no vault: raw values never came here.

The folder has the layout of our own reports, attribute=<name>/level=<level>/*.parquet, one column `report`, one row
a user, made with the plan that `pldp plan --json` hands out. Where levels are hidden there is no folder a level, and a
column `level` before `report` holds the report about the level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.errors import SourceError
from pldp.mechanisms.protocol import PureProtocol, Reports
from pldp.plan import Plan
from tasks.home import commit
from tasks.ingest import Ingested, n_partitions
from tasks.perturb import as_reports, write_reports
from tasks.run import Run
from tasks.specfile import SpecFile
from tasks.stage import stage

NOTHING = "Nothing was published."


@dataclass(frozen=True)
class Inbox:
    """One folder of what clients send: its columns, each the reports of one protocol."""

    attribute: str
    level: str | None
    columns: dict[str, PureProtocol]

    @property
    def place(self) -> tuple[str, ...]:
        folder = (f"attribute={self.attribute}",)
        return folder if self.level is None else (*folder, f"level={self.level}")

    @property
    def widths(self) -> dict[str, int]:
        return {name: protocol.report_bytes for name, protocol in self.columns.items()}

    def files(self, folder: Path) -> list[Path]:
        return sorted(folder.joinpath(*self.place).glob("*.parquet"))


def inboxes(plan: Plan) -> list[Inbox]:
    if plan.hidden is not None:
        told = plan.hidden.protocol
        return [Inbox(a.name, None, {"level": told, "report": a.protocols[0]}) for a in plan.attributes]
    return [Inbox(a.name, level.level, {"report": level.protocol}) for a in plan.attributes for level in a.levels]


@stage()
def collect(run: Run, file: SpecFile) -> Ingested:
    """Cut what clients sent into the run's partitions. A repeat finds committed ones and leaves them."""
    plan, folder = run.plan, file.source
    boxes = inboxes(plan)
    _refuse_strangers(folder, boxes)
    sizes = [sum(_rows(path, box) for path in box.files(folder)) for box in boxes]
    totals = dict.fromkeys((a.name for a in plan.attributes), 0)
    for box, size in zip(boxes, sizes, strict=True):
        totals[box.attribute] += size
    n_users = max(totals.values())
    if n_users == 0:
        raise SourceError(f"{folder}: no reports. Check source.reports and its folders. {NOTHING}")
    # Fixed by the first run: another memory on a rerun must not cut the rest differently.
    commit(run.folder / "partitions", str(n_partitions(n_users, plan, file.spec.runner)).encode())
    partitions = int((run.folder / "partitions").read_bytes())
    for box, size in zip(boxes, sizes, strict=True):
        bounds = [size * i // partitions for i in range(partitions + 1)]
        for partition, rows in enumerate(_cut(_batches(box.files(folder), box), np.diff(bounds), box)):
            # The order of arrival would tell who sent when.
            stream = run.stream("order", box.attribute, box.level or "", partition)
            shuffled = rows[np.argsort(stream.copy(len(rows)))]
            told = shuffled[:, : -box.widths["report"]] if box.level is None else None
            reports = shuffled[:, -box.widths["report"] :]
            write_reports(run.report_file(box.attribute, box.level, partition), reports, told)
    return Ingested(n_users, partitions)


def _refuse_strangers(folder: Path, boxes: Iterable[Inbox]) -> None:
    known = {box.place: box for box in boxes}
    wanted = (
        "attribute=<name>" if any(box.level is None for box in known.values()) else "attribute=<name>/level=<level>"
    )
    for path in sorted(folder.rglob("*.parquet")):
        if path.relative_to(folder).parts[:-1] not in known:
            raise SourceError(f"{path}: reports must lie in {wanted} with names from the spec. {NOTHING}")


def _rows(path: Path, box: Inbox) -> int:
    """How many reports a file holds, once its shape is known to be right."""
    try:
        schema = pq.read_schema(path)
        shape = {name: pa.binary(width) for name, width in box.widths.items()}
        if schema.names == list(shape) and all(schema.field(name).type == kind for name, kind in shape.items()):
            return int(pq.read_metadata(path).num_rows)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise _misshapen(path, box)


def _misshapen(path: Path, box: Inbox) -> SourceError:
    columns = " and ".join(f"`{name}` of {width} bytes a row" for name, width in box.widths.items())
    return SourceError(
        f"{path}: must be a whole Parquet file with one column {columns}, as the plan's "
        f"{box.columns['report'].name} makes them. {NOTHING}"
    )


def _records(path: Path, box: Inbox) -> Iterator[pa.RecordBatch]:
    try:
        yield from pq.ParquetFile(path).iter_batches()
        return
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise _misshapen(path, box)


def _batches(paths: Iterable[Path], box: Inbox) -> Iterator[Reports]:
    """Rows of all columns side by side, each checked against what its protocol can make."""
    for path in paths:
        row = 0
        for batch in _records(path, box):
            parts = []
            for name, protocol in box.columns.items():
                column = batch.column(name)
                reports = as_reports(column)
                invalid = protocol.invalid(reports)
                if column.null_count or invalid.size:
                    where = f", row {row + int(invalid[0]) + 1}" if invalid.size else ""
                    kind = f"is not a report that {protocol.name} can make"
                    raise SourceError(f"{path}{where}, column {name}: {kind}. {NOTHING}")
                parts.append(reports)
            row += batch.num_rows
            yield np.concatenate(parts, axis=1)


def _cut(batches: Iterator[Reports], sizes: Iterable[int], box: Inbox) -> Iterator[Reports]:
    """The same rows in parts of these sizes, holding no more than a part at a time."""
    rest = np.empty((0, sum(box.widths.values())), dtype=np.uint8)
    for size in sizes:
        parts = [rest]
        while sum(map(len, parts)) < size:
            parts.append(next(batches))
        rows = np.concatenate(parts)
        rest = rows[size:]
        yield rows[:size]
