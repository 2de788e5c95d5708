"""Perturb: vault to reports. The last stage that reads the vault."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.channels.protocol import PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream
from pldp.questions.histograms.plan import Plan
from pldp.tasks.durable import make_folder
from pldp.tasks.home import draft_of, link
from pldp.tasks.partitions import read_partition
from pldp.tasks.run import Run
from pldp.tasks.sent import as_reports
from pldp.tasks.stage import stage


@stage()
def perturb(run: Run, level: str, batch: Sequence[int]) -> int:
    """Draw the reports of one privacy level of a batch of partitions; how many were drawn now.

    Drawn once: a report file that is committed is never drawn again, and a second writer that lost the race leaves
    what is there.
    """
    plan = run.plan
    code = plan.levels.index(level)
    drawn = 0
    for partition, level_field, missing in _missing(run, plan, level, batch):
        levels, values = _rows(run, partition, level_field, missing)
        own = levels == code
        for i in missing:
            protocol = plan.attributes[i].levels[code].protocol
            stream = run.stream(plan.attributes[i].name, level, partition)
            reports = protocol.perturb(values[i][own], stream)
            drawn += write_reports(_file(run, plan, i, level, partition), reports)
    return drawn


@stage()
def perturb_hidden(run: Run, batch: Sequence[int]) -> int:
    """The same where levels are hidden: everybody of a partition at once, and beside each report one about the level.

    The report about the level is drawn once a user and committed before any value report: it stands beside the reports
    on all attributes that the level rules, and a rerun repeats it instead of drawing a second one.
    """
    plan = run.plan
    drawn = 0
    for partition, level_field, missing in _missing(run, plan, None, batch):
        levels, values = _rows(run, partition, level_field, missing)
        ruled = None if plan.one_level_for_all else plan.attributes[level_field].name
        told = _level_reports(run, ruled, partition, levels)
        for i in missing:
            attribute = plan.attributes[i]
            stream = run.stream(attribute.name, "hidden", partition)
            reports = perturb_mixed(attribute.protocols, levels, values[i], stream)
            drawn += write_reports(_file(run, plan, i, None, partition), reports, told)
    return drawn


def _missing(run: Run, plan: Plan, level: str | None, batch: Sequence[int]) -> Iterator[tuple[int, int, list[int]]]:
    """Partition, level field, and those of the field's attributes whose reports are not committed yet."""
    for partition in batch:
        for level_field, attributes in _by_level_field(plan).items():
            missing = [i for i in attributes if not _file(run, plan, i, level, partition).exists()]
            if missing:
                yield partition, level_field, missing


def _rows(run: Run, partition: int, level_field: int, attributes: Sequence[int]) -> tuple[Values, dict[int, Values]]:
    """Everybody's level and values, as positions in the plan."""
    level = f"level_{level_field}"
    columns = read_partition(run, partition, [level, *(f"value_{i}" for i in attributes)])
    return columns[level].astype(np.uint16), {i: columns[f"value_{i}"].astype(np.uint16) for i in attributes}


def _level_reports(run: Run, attribute: str | None, partition: int, levels: Values) -> Reports:
    path = run.level_file(attribute, partition)
    hidden = run.plan.hidden
    if not path.exists() and hidden is not None:
        write_reports(path, hidden.protocol.perturb(levels, run.stream("levels", attribute or "", partition)))
    return read_reports(path)


def perturb_mixed(protocols: Sequence[PureProtocol], levels: Values, values: Values, stream: Keystream) -> Reports:
    """Every user's value at that user's level, in the users' order; reports of all levels look alike."""
    reports = np.empty((values.size, protocols[0].report_bytes), dtype=np.uint8)
    for code, protocol in enumerate(protocols):
        own = np.flatnonzero(levels == code)
        reports[own] = protocol.perturb(values[own], stream)
    return reports


def _file(run: Run, plan: Plan, attribute: int, level: str | None, partition: int) -> Path:
    return run.report_file(plan.attributes[attribute].name, level, partition)


def _by_level_field(plan: Plan) -> dict[int, list[int]]:
    """Attributes by the level column that rules them, so that one query serves all that share it."""
    if plan.one_level_for_all:
        return {0: list(range(len(plan.attributes)))}
    return {i: [i] for i in range(len(plan.attributes))}


def write_reports(path: Path, reports: Reports, told: Reports | None = None) -> int:
    """Commit reports exclusively: one row a user, fixed width, nothing else. How many this call committed.

    `told` are the reports about hidden levels, which then stand beside them.
    """
    columns = {"report": _column(reports)} if told is None else {"level": _column(told), "report": _column(reports)}
    return commit_columns(path, columns)


def commit_columns(path: Path, columns: dict[str, pa.Array]) -> int:
    """Commit a file of reports exclusively; how many this call committed."""
    make_folder(path.parent)
    draft = draft_of(path)
    try:
        # Noise does not compress, and statistics or dictionaries of it tell nobody anything.
        table = pa.table(columns)
        pq.write_table(table, draft, compression="none", use_dictionary=False, write_statistics=False)
        with draft.open("rb") as handle:
            os.fsync(handle.fileno())
        return int(table.num_rows) if link(draft, path) else 0
    finally:
        draft.unlink(missing_ok=True)


def _column(reports: Reports) -> pa.FixedSizeBinaryArray:
    n, width = reports.shape
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), n, [None, pa.py_buffer(np.ascontiguousarray(reports))]
    )


def read_reports(path: Path, column: str = "report") -> Reports:
    """The reports of one committed file, (user, byte); `level` for those about hidden levels."""
    return as_reports(pq.read_table(path, columns=[column], memory_map=False)[column].combine_chunks())
