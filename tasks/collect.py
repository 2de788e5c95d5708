"""Collect: reports that clients perturbed themselves, into the run. There is no vault: raw values never came here.

The folder has the layout of our own reports, attribute=<name>/level=<level>/*.parquet, one column `report`, one row
a user, made with the plan that `pldp plan --json` hands out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.errors import SourceError
from pldp.plan import AttributePlan, LevelPlan, Plan
from pldp.protocol import Reports
from tasks.ingest import Ingested, n_partitions
from tasks.perturb import as_reports, write_reports
from tasks.run import Run
from tasks.specfile import SpecFile
from tasks.stage import stage

NOTHING = "Nothing was published."


@stage()
def collect(run: Run, file: SpecFile) -> Ingested:
    """Cut what clients sent into the run's partitions. A repeat finds committed ones and leaves them."""
    plan, folder = run.plan, file.source
    _refuse_strangers(folder, plan)
    sizes = {
        (attribute.name, level.level): sum(_rows(path, level) for path in _files(folder, attribute, level))
        for attribute in plan.attributes
        for level in attribute.levels
    }
    n_users = max(sum(sizes[a.name, level] for level in plan.levels) for a in plan.attributes)
    if n_users == 0:
        raise SourceError(f"{folder}: no reports. Check source.reports and its folders. {NOTHING}")
    partitions = n_partitions(n_users, plan)
    for attribute in plan.attributes:
        for level in attribute.levels:
            total = sizes[attribute.name, level.level]
            bounds = [total * i // partitions for i in range(partitions + 1)]
            parts = _cut(_batches(_files(folder, attribute, level), level), np.diff(bounds), level)
            for partition, reports in enumerate(parts):
                # The order of arrival would tell who sent when.
                order = np.argsort(run.stream("order", attribute.name, level.level, partition).copy(len(reports)))
                write_reports(run.report_file(attribute.name, level.level, partition), reports[order])
    return Ingested(n_users, partitions)


def _files(folder: Path, attribute: AttributePlan, level: LevelPlan) -> list[Path]:
    return sorted((folder / f"attribute={attribute.name}" / f"level={level.level}").glob("*.parquet"))


def _refuse_strangers(folder: Path, plan: Plan) -> None:
    known = {(f"attribute={a.name}", f"level={level}") for a in plan.attributes for level in plan.levels}
    for path in sorted(folder.rglob("*.parquet")):
        if path.relative_to(folder).parts[:-1] not in known:
            raise SourceError(
                f"{path}: reports must lie in attribute=<name>/level=<level> with names from the spec. {NOTHING}"
            )


def _rows(path: Path, level: LevelPlan) -> int:
    """How many reports a file holds, once its shape is known to be right."""
    width = level.protocol.report_bytes
    try:
        schema = pq.read_schema(path)
        if schema.names == ["report"] and schema.field("report").type == pa.binary(width):
            return int(pq.read_metadata(path).num_rows)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise _misshapen(path, level)


def _misshapen(path: Path, level: LevelPlan) -> SourceError:
    return SourceError(
        f"{path}: must be a whole Parquet file with one column `report` of {level.protocol.report_bytes} bytes a row, "
        f"as the plan's {level.mechanism} makes them. {NOTHING}"
    )


def _columns(path: Path, level: LevelPlan) -> Iterator[pa.FixedSizeBinaryArray]:
    try:
        for batch in pq.ParquetFile(path).iter_batches():
            yield batch.column("report")
        return
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise _misshapen(path, level)


def _batches(paths: Iterable[Path], level: LevelPlan) -> Iterator[Reports]:
    for path in paths:
        row = 0
        for column in _columns(path, level):
            reports = as_reports(column)
            invalid = level.protocol.invalid(reports)
            if column.null_count or invalid.size:
                where = f", row {row + int(invalid[0]) + 1}" if invalid.size else ""
                raise SourceError(f"{path}{where}: is not a report that {level.mechanism} can make. {NOTHING}")
            row += len(reports)
            yield reports


def _cut(batches: Iterator[Reports], sizes: Iterable[int], level: LevelPlan) -> Iterator[Reports]:
    """The same rows in parts of these sizes, holding no more than a part at a time."""
    empty = np.empty((0, level.protocol.report_bytes), dtype=np.uint8)
    rest = empty
    for size in sizes:
        parts = [rest]
        while sum(map(len, parts)) < size:
            parts.append(next(batches))
        rows = np.concatenate(parts)
        rest = rows[size:]
        yield rows[:size]
