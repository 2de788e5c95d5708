"""A cross-tab as a grid: rows and columns are the values of its parts, darker cells hold more users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pldp.page import words
from pldp.page.blocks import Cell, Column, Shaded, Table, Text
from pldp.page.published import Published, Row
from pldp.questions.histograms.spec import Binned

MOST_ROWS, MOST_COLUMNS = 60, 16
"""Beyond them a grid is no picture any more, and the largest combinations are drawn as bars."""

CROSS = " × "


def crosstab_grid(page: Published, name: str, rows: Sequence[Row]) -> tuple[Table, Text] | None:
    """The grid of an attribute and how to read it; None where it is no cross-tab, too large, or its parts are unknown.

    Of two parts the one with fewer values is across, so that a phone can show it; of more, the last one.
    """
    parts = _parts(page, name)
    if len(parts) < 2 or [CROSS.join(cell) for cell in product(*parts.values())] != [row["value"] for row in rows]:
        return None
    names, values = list(parts), list(parts.values())
    across = min((1, 0), key=lambda place: len(values[place])) if len(parts) == 2 else len(parts) - 1
    down = [place for place in range(len(parts)) if place != across]
    if len(values[across]) > MOST_COLUMNS or len(rows) > MOST_ROWS * len(values[across]):
        return None
    cells = {tuple(cell): row for cell, row in zip(product(*values), rows, strict=True)}
    largest = max(row["frequency"] for row in rows)
    digits = words.decimals(max(row["standard_error"] for row in rows))

    def text(place: int, value: str) -> str:
        return page.wording.value(names[place], value)

    def cell(beside: Sequence[str], value: str) -> Shaded:
        at = dict(zip(down, beside, strict=True)) | {across: value}
        return _cell(cells[tuple(at[place] for place in range(len(parts)))], largest, digits)

    lines: tuple[tuple[Cell, ...], ...] = tuple(
        (
            (CROSS.join(text(place, value) for place, value in zip(down, beside, strict=True)),),
            *(cell(beside, value) for value in values[across]),
        )
        for beside in product(*(values[place] for place in down))
    )
    corner: Text = (CROSS.join(page.wording.attribute(names[place]) for place in down),)
    columns = (Column(corner), *(Column((text(across, value),)) for value in values[across]))
    read: Text = (
        f" Share of all {page.n_users:,} users ± standard error, {page.wording.attribute(names[across])} across. The "
        "darker a cell, the more users; ◦ is not reliable.",
    )
    return Table(f"Grid of {page.wording.attribute(name)}", columns, lines, look="grid"), read


def _cell(row: Row, largest: float, digits: int) -> Shaded:
    share, error = (words.percent(row[field], digits) for field in ("frequency", "standard_error"))
    depth = max(0.0, row["frequency"] / largest) if largest > 0 else 0.0
    return Shaded(share, f"± {error.removesuffix(' %')}", depth, row["reliable"])


def _parts(page: Published, name: str) -> dict[str, tuple[str, ...]]:
    """By the name of each part of a cross-tab its values, as the stored spec declares them."""
    declared: Mapping[str, Any] = {
        part["name"]: part for part in page.stated("attributes") or () if isinstance(part, Mapping)
    }
    crossed = declared.get(name, {}).get("of") or ()
    return {part: _values(declared[part]) for part in crossed if part in declared}


def _values(part: Mapping[str, Any]) -> tuple[str, ...]:
    return Binned.model_validate(part).values if part.get("kind") == "binned" else tuple(part["values"])
