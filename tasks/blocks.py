"""The reports of an attribute as a likelihood reads them: a table of distinct ones, or file by file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pldp.estimate.likelihood import Block, Blocks, report_block, table_blocks
from pldp.questions.histograms.plan import AttributePlan
from pldp.tasks.count import Support
from pldp.tasks.perturb import read_reports
from pldp.tasks.run import Run

_BLOCK_CELLS = 1 << 22
"""Cells (reports × values) held at a time, so that memory depends on neither."""


def blocks_of(run: Run, attribute: AttributePlan, support: Support, partitions: int) -> Blocks:
    """Every call of the result reads the same reports again, in the same order."""
    if support.tables is not None:
        return table_blocks(attribute.protocols, support.tables)
    return lambda: _stream(run, attribute, partitions)


def _stream(run: Run, attribute: AttributePlan, partitions: int) -> Iterator[Block]:
    rows = max(1, _BLOCK_CELLS // len(attribute.values))
    for partition in range(partitions):
        if run.plan.hidden is not None:
            path = run.report_file(attribute.name, None, partition)
            reports, told = read_reports(path), read_reports(path, "level")[:, 0].astype(np.intp)
            for start in range(0, len(reports), rows):
                part = slice(start, start + rows)
                yield report_block(attribute.protocols[0], reports[part], told[part])
            continue
        for code, level in enumerate(attribute.levels):
            reports = read_reports(run.report_file(attribute.name, level.level, partition))
            for start in range(0, len(reports), rows):
                yield report_block(level.protocol, reports[start : start + rows], code)
