"""Files of reports by the path of their sheet, for tests that look into them."""

from __future__ import annotations

from pathlib import Path

from pldp.channels.protocol import PureProtocol, Reports
from pldp.channels.words import from_words
from pldp.questions.plan import Plan
from pldp.questions.question import Columns, Sheet
from pldp.tasks.reports import read_reports
from pldp.tasks.run import Run
from tests.people import histograms_of


def sheet_at(plan: Plan, path: str) -> Sheet:
    return next(sheet for _, sheet in plan.sheets if sheet.path == path)


def file_at(run: Run, path: str, partition: int = 0) -> Path:
    return run.report_file(sheet_at(run.plan, path), partition)


def columns_at(run: Run, path: str, partition: int = 0) -> Columns:
    return read_reports(file_at(run, path, partition))


def protocol_at(run: Run, path: str) -> PureProtocol:
    """The protocol of a sheet of histograms; of the first level where levels are hidden."""
    plan = histograms_of(run)
    attribute, level = plan.places[path]
    return plan.attributes[attribute].protocols[level or 0]


def rows_at(run: Run, path: str, partition: int = 0) -> Reports:
    """The reports of a histogram as rows of bytes."""
    return from_words(columns_at(run, path, partition), protocol_at(run, path).report_bytes)
