"""What the analyst's commands print: a table for people, CSV or JSON for programs."""

from __future__ import annotations

import csv
import json
import math
from datetime import datetime
from decimal import Decimal
from typing import Any, TextIO

from rich.console import Console
from rich.measure import Measurement

from pldp.flows.tables import Table
from pldp.tasks.analyst import Answer
from pldp.tasks.terminal import visible

_WIDEST = 100_000


def show_answer(out: Console, answer: Answer) -> None:
    """Print the rows of a query as a table, or one below the other where that is wider than the terminal."""
    table = Table()
    for place, column in enumerate(answer.columns):
        numeric = all(_is_number(row[place]) for row in answer.rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in answer.rows:
        table.add_row(*(_cell(value) for value in row))
    if Measurement.get(out, out.options.update(max_width=_WIDEST), table).maximum <= out.width:
        out.print(table)
    else:
        _show_records(out, answer)
    if not answer.whole:
        note = f"The first {len(answer.rows):,} rows; --limit shows more, --csv and --json give all."
        out.print(note, highlight=False)


def _show_records(out: Console, answer: Answer) -> None:
    """One line a column, for what is too wide to stand side by side."""
    for number, row in enumerate(answer.rows, start=1):
        record = Table(box=None, show_header=False, title=f"row {number}", title_justify="left")
        record.add_column(no_wrap=True)
        record.add_column(overflow="fold")
        for column, value in zip(answer.columns, row, strict=True):
            record.add_row(column, _cell(value))
        out.print(record)


def write_csv(stream: TextIO, answer: Answer) -> None:
    """Write the rows of a query as CSV to a stream, with a head and cells that no spreadsheet takes for formulas."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([visible(column) for column in answer.columns])
    writer.writerows([_csv_cell(value) for value in row] for row in answer.rows)


def _csv_cell(value: Any) -> Any:
    """Text is made harmless even here: CSV is looked at in terminals too. JSON has it exactly."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | dict):
        # As `pldp export` writes them: programs read JSON, and no other language reads Python's own form.
        return visible(json.dumps(as_plain(value), ensure_ascii=False, default=str))
    return value if _is_number(value) else visible(str(value))


def as_plain(value: Any) -> Any:
    """A value of DuckDB as JSON has it: JSON knows neither decimals nor NaN."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): as_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    return value


def show_group(out: Console, attribute: str, values: list[str], answer: dict[str, Any], confidence: float) -> None:
    """Print the share of a group of values, as `group_estimate` answers it: two lines with its error and interval."""
    share, error = f"{answer['frequency']:.3%}", f"{answer['standard_error']:.3%}"
    interval = f"{100 * confidence:g} % interval {answer['ci_low']:.3%} – {answer['ci_high']:.3%}"
    behind = f"{answer['n_reports']:,} reports, {answer['method']}"
    out.print(f"{attribute}: {', '.join(values)}", markup=False, highlight=False, soft_wrap=True)
    out.print(f"{share} ± {error}; {interval}; {behind}", highlight=False, soft_wrap=True)


def show_difference(
    out: Console, attribute: str, values: list[str], minus: list[str], answer: dict[str, Any], confidence: float
) -> None:
    """Print how far the share of `values` exceeds that of `minus`, as `difference_estimate` answers it, in points."""
    away, error = f"{100 * answer['difference']:+.3f}", f"{100 * answer['standard_error']:.3f}"
    ends = f"{100 * answer['ci_low']:+.3f} – {100 * answer['ci_high']:+.3f}"
    behind = f"{answer['n_reports']:,} reports, {answer['method']}"
    groups = f"{attribute}: {', '.join(values)} minus {', '.join(minus)}"
    out.print(groups, markup=False, highlight=False, soft_wrap=True)
    line = f"{away} ± {error} points; {100 * confidence:g} % interval {ends}; {behind}"
    out.print(line, highlight=False, soft_wrap=True)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case _:
            return str(value)
