"""The rules of pldp.questions.cells as expressions of the database: the same positions, for everybody at once."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from duckdb import CaseExpression as Case
from duckdb import CoalesceOperator as Coalesce
from duckdb import ColumnExpression as Column
from duckdb import ConstantExpression as Constant
from duckdb import Expression
from duckdb import FunctionExpression as Function

from pldp.questions.cells import (
    LARGEST_WEIGHT,
    NO_MISSING,
    NO_OTHER,
    Bins,
    Choice,
    Codes,
    Declared,
    Importance,
    Product,
    Single,
)
from pldp.tasks.query import identifier, statement

EMPTY, UNDECLARED = 1, 2
"""Why a choice is not stated: the cell is empty, or holds what the spec does not declare."""


class Positions:
    """Rules that a connection can execute. Lists of values become types of its database, bound as data."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._codes: dict[tuple[str, ...], str] = {}
        for name in ("10_cell_number", "10_cell_weight"):
            connection.execute(statement(name))

    def raw(self, rule: Single | Importance, cell: Expression) -> Expression:
        """What is computed of a cell once, before `place` looks at it: a code or a number, null where it has none."""
        if isinstance(rule, Declared):
            return Function(self._code(rule.values), cell)
        if isinstance(rule, Choice):
            return Function(self._code(rule.levels), cell)
        return Function("cell_weight" if isinstance(rule, Importance) else "cell_number", cell)

    def _code(self, values: tuple[str, ...]) -> str:
        """The function that finds a text among the values."""
        if values not in self._codes:
            code, domain = f"code_{len(self._codes)}", f"domain_{len(self._codes)}"
            self._connection.execute(statement("10_cell_domain", domain=identifier(domain)), {"values": list(values)})
            self._connection.execute(statement("10_cell_code", code=identifier(code), domain=identifier(domain)))
            self._codes[values] = code
        return self._codes[values]


def place(rule: Single, cell: Expression, raw: Expression, *, faults: bool = False) -> Expression:
    """The position of a cell; where the rule has none for it null, or, with `faults`, which of both faults it is."""
    no_missing, no_other = (NO_MISSING, NO_OTHER) if faults else (None, None)
    if isinstance(rule, Choice):
        return Coalesce(raw, Constant(rule.default))
    missing = Constant(no_missing if rule.missing is None else rule.missing)
    if isinstance(rule, Declared):
        other = Constant(no_other if rule.other is None else rule.other)
        if not faults and rule.missing is None and rule.other is None:
            return raw
        return Coalesce(raw.cast("INTEGER"), Case(is_empty(cell), missing).otherwise(other))
    position = _bin(raw, rule.cuts[1:-1], 0) if isinstance(rule, Bins) else _code(raw, rule)
    return Case(raw.isnull(), missing).otherwise(position)


def combine(rule: Product, placed: Sequence[Expression]) -> Expression:
    """The position of several cells together, from theirs; null where one of them has none."""
    position = placed[0].cast("INTEGER")
    for part, at in zip(rule.parts[1:], placed[1:], strict=True):
        position = position * Constant(part.size) + at
    return position


def matters(rule: Importance, raw: Expression) -> Expression:
    """How much an attribute matters."""
    some = Function("isfinite", raw) & (raw > Constant(0.0))
    weight = Constant(1.0) if rule.truth else Function("least", raw, Constant(LARGEST_WEIGHT))
    return Case(some, weight.cast("FLOAT")).otherwise(Constant(0.0).cast("FLOAT"))


def unstated(cell: Expression, raw: Expression) -> Expression:
    """Why a choice is not stated; 0 where it is."""
    why = Case(raw.isnotnull(), Constant(0)).when(is_empty(cell), Constant(EMPTY)).otherwise(Constant(UNDECLARED))
    return why.cast("UTINYINT")


def is_empty(cell: Expression) -> Expression:
    """Whether a cell is null or has no characters, as an expression of DuckDB's."""
    return cell.isnull() | (cell == Constant(""))


def filled(cell: Expression) -> Expression:
    """The cell's text, null where it is empty."""
    return Case(cell == Constant(""), Constant(None).cast("VARCHAR")).otherwise(cell)


def column(name: str) -> Expression:
    """A column by its name, as an expression: DuckDB quotes it, nobody else does."""
    return Column(name)


def _code(value: Expression, rule: Codes) -> Expression:
    """In the order of pldp.questions.cells.position: doubles are rounded alike."""
    inside = Function("least", Function("greatest", value, Constant(rule.low)), Constant(rule.high))
    scaled = (inside - Constant(rule.low)) / Constant(rule.high - rule.low) * Constant(float(rule.grid))
    return Function("round_even", scaled, Constant(0)).cast("BIGINT")


def _bin(value: Expression, inner: Sequence[float], first: int) -> Expression:
    """The bin by halving: a number is compared with the logarithm of the edges, not with all of them."""
    if not inner:
        return Constant(first)
    middle = len(inner) // 2
    below, above = _bin(value, inner[:middle], first), _bin(value, inner[middle + 1 :], first + middle + 1)
    return Case(value < Constant(inner[middle]), below).otherwise(above)
