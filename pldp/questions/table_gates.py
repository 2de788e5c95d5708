"""Gates that follow from the declarations: they look at every table that is published, whatever the questions.

`published` are the rows as they will stand in the results; `computed` the same made again from the questions' results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pldp.channels.protocol import Floats
from pldp.questions.gate import Among, Gate
from pldp.questions.parts import Rows
from pldp.questions.rows import height
from pldp.questions.tables import published_table
from pldp.tables.declaration import Interval, Table, Type

ROUNDING = 1e-12
"""By how much of itself an end of an interval may miss an estimate that lies on it."""

Tables = Mapping[str, Rows]


def table_gates(published: Tables, computed: Tables, *, finite: bool = True) -> tuple[Gate, ...]:
    """`finite` is false of what may be evaluated and never released, such as items without noise."""
    tables = [(published_table(name), rows) for name, rows in published.items()]
    return (
        as_computed(published, computed),
        keys_unique(tables),
        *((cells_sound(tables), intervals_sound(tables)) if finite else ()),
    )


def as_computed(published: Tables, computed: Tables) -> Gate:
    """Row for row and value for value; a table that only one of them has differs in all rows."""
    off = [
        _different(published.get(name, {}), computed.get(name, {}), column.name)
        for name in dict.fromkeys((*computed, *published))
        for column in published_table(name).content
    ]
    off += [int(name not in computed or name not in published) for name in {*computed, *published}]
    return _none(
        "tables_as_computed",
        "Every published table has the rows of the questions' results, computed a second time: none more, none less, "
        "and every cell is equal.",
        off,
    )


def keys_unique(tables: Iterable[tuple[Table, Rows]]) -> Gate:
    """Of every published table: no two rows have the same declared key."""
    return _none(
        "keys_unique",
        "No two rows of a published table are about the same thing: its declared key is unique.",
        [_repeated(table, rows) for table, rows in tables],
    )


def cells_sound(tables: Iterable[tuple[Table, Rows]]) -> Gate:
    """Of every published table: no cell is missing that is declared, no number infinite, no standard error zero."""
    return _none(
        "cells_sound",
        "Every cell is there that its table declares, every published number is finite, and every standard error is "
        "positive.",
        [count for table, rows in tables for count in _unsound(table, rows)],
    )


def intervals_sound(tables: Iterable[tuple[Table, Rows]]) -> Gate:
    """Passes where nothing has an interval."""
    return _none(
        "intervals_sound",
        "Every interval begins before it ends, lies within its bounds and holds its estimate.",
        [0, *(_broken(interval, rows) for table, rows in tables for interval in table.intervals)],
    )


def _none(name: str, sentence: str, off: Sequence[int]) -> Gate:
    return Gate(name, sentence, {"off": list(off)}, (Among("off", (0,)),), observed=float(sum(off)), bound=0.0)


def _different(published: Rows, computed: Rows, column: str) -> int:
    """Cells that differ, and rows that only one of them has. A column that was left out is null."""
    these, those = _cells(published, column), _cells(computed, column)
    unequal = sum(not _equal(one, other) for one, other in zip(these, those, strict=False))
    return unequal + abs(len(these) - len(those))


def _cells(rows: Rows, column: str) -> list[Any]:
    cells = rows.get(column)
    if cells is None:
        return [None] * height(rows)
    return cells.tolist() if isinstance(cells, np.ndarray) else list(cells)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)


def _repeated(table: Table, rows: Rows) -> int:
    key = [[_hashable(cell) for cell in _cells(rows, column)] for column in table.key]
    return sum(times - 1 for times in Counter(zip(*key, strict=True)).values())


def _hashable(cell: Any) -> Any:
    return tuple(cell) if isinstance(cell, list) else cell


def _unsound(table: Table, rows: Rows) -> Iterator[int]:
    for column in table.content:
        cells = _cells(rows, column.name)
        present = [cell for cell in cells if cell is not None]
        yield 0 if column.optional else len(cells) - len(present)
        if column.type is Type.REAL:
            numbers = np.asarray(present, dtype=np.float64)
            yield int((~np.isfinite(numbers)).sum())
            yield int((numbers <= 0).sum()) if column.positive else 0


def _broken(interval: Interval, rows: Rows) -> int:
    """Rows whose interval is not one; a missing or infinite number is none that an interval has or holds."""
    low, high = _numbers(rows, interval.low), _numbers(rows, interval.high)
    fine = np.isfinite(low) & np.isfinite(high) & (low <= high)
    slack = np.where(fine, ROUNDING * np.maximum(np.abs(low), np.abs(high)), 0.0)
    held: Iterable[Floats] = (_numbers(rows, column) for column in interval.holds)
    if interval.bounds is not None:
        least, most = (
            _numbers(rows, end) if isinstance(end, str) else np.full_like(low, end) for end in interval.bounds
        )
        fine &= (low >= least) & (high <= most)
        held = (np.clip(numbers, least, most) for numbers in held)
    inside = [(numbers >= low - slack) & (numbers <= high + slack) for numbers in held]
    return int((~(fine & np.any(inside, axis=0) if inside else fine)).sum())


def _numbers(rows: Rows, column: str) -> Floats:
    return np.asarray([np.nan if cell is None else cell for cell in _cells(rows, column)], dtype=np.float64)
