"""Published rows, put together from parts: lists for what differs from row to row, single values for what does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pldp.questions.parts import Rows


def stacked(parts: Sequence[Mapping[str, Any]]) -> Rows:
    """One table of all parts, which have the same columns. A part's lists are of one length, and repeat its values."""
    columns: dict[str, list[Any]] = {}
    for part in parts:
        height = next((len(column) for column in part.values() if _is_list(column)), 1)
        for name, column in part.items():
            values = list(column) if _is_list(column) else [column] * height
            if len(values) != height:
                raise ValueError(f"column {name} has {len(values)} rows where others have {height}")
            columns.setdefault(name, []).extend(values)
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("parts of a table have different columns")
    return columns


def joined(tables: Sequence[Rows]) -> Rows:
    """Rows of several questions in one table; a column that one of them does not have is null there."""
    names = list(dict.fromkeys(name for table in tables for name in table))
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for table in tables:
        height = len(next(iter(table.values()), ()))
        for name in names:
            columns[name].extend(table[name] if name in table else [None] * height)
    return columns


def without(rows: Rows, column: str, left_out: Collection[str]) -> Rows:
    """The rows whose cell of a column is none of these; a table without that column stays as it is."""
    if not left_out or column not in rows:
        return rows
    kept = [i for i, cell in enumerate(rows[column]) if cell not in left_out]
    return {name: [cells[i] for i in kept] for name, cells in rows.items()}


def beside(rows: Rows | dict[str, Any], estimate: str, truth: Sequence[float]) -> Rows:
    """What an evaluation shows of means or quantiles: rows of a published table, their `estimate` beside the truth."""
    columns = ("attribute", "probability", "method", "estimate", "standard_error", "ci_low", "ci_high", "n_reports")
    complete: dict[str, Any] = {**rows, "estimate": rows[estimate]}
    return {**{name: complete[name] for name in columns}, "truth": truth}


def height(rows: Rows) -> int:
    """How many rows a table has."""
    return len(next(iter(rows.values()), ()))


def _is_list(column: Any) -> bool:
    return isinstance(column, list | tuple | np.ndarray) and not (isinstance(column, np.ndarray) and column.ndim == 0)


def coverage_row(
    attribute: str, method: str, choice: str, name: str, covered: Mapping[str, float], repeats: int
) -> dict[str, Any]:
    """One class of cells in an evaluation's table `coverage`: how often the intervals of a method held in so many
    repetitions, by cell. `choice` says how levels were dealt."""
    worst = min(covered, key=lambda cell: covered[cell])
    rate = sum(covered.values()) / len(covered)
    # Cells of one class share the dealing of people: at worst all of them go together.
    return {
        "attribute": [attribute],
        "method": method,
        "choice": choice,
        "class": name,
        "values": len(covered),
        "coverage": rate,
        "monte_carlo_error": monte_carlo_error(rate, repeats),
        "worst": worst,
        "least": covered[worst],
        "least_error": monte_carlo_error(covered[worst], repeats),
        "repeats": repeats,
    }


def monte_carlo_error(rate: float, repeats: int) -> float:
    """What chance leaves open about a rate; never quite zero, as a rate of 1 is not certain either."""
    return float((max(rate * (1 - rate), 1 / repeats) / repeats) ** 0.5)
