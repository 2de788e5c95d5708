"""How cells become numbers in the vault: codes within the declared bounds, and how much an attribute matters."""

from __future__ import annotations

from pldp.numeric.domain import CODES
from pldp.spec_numbers import Number

NO_NUMBER = -1
"""The code of a cell that is no number where the spec has no `missing`."""


def code(cell: str, number: Number) -> str:
    """The code of a cell, as pldp.numeric.domain.Bounds.encode makes it (tests/tasks/test_numbers.py compares them).

    A double is written as text: the database would read 0.1 as a decimal, and round twice.
    """
    low, high = number.bounds
    given = f"TRY_CAST({cell} AS DOUBLE)"
    missing = NO_NUMBER if number.missing is None else int(number.range.encode(number.missing)[0])
    inside = f"least(greatest({given}, {_double(low)}), {_double(high)})"
    scaled = f"round_even(({inside} - {_double(low)}) / {_double(high - low)} * {CODES}::DOUBLE, 0)"
    # The database takes nan and inf for numbers; nobody's income is either.
    return f"CASE WHEN isfinite({given}) THEN CAST({scaled} AS BIGINT) ELSE {missing} END"


def weight(cell: str, *, truth: bool) -> str:
    """How much an attribute matters: a number, or yes and no; whatever else stands there means that it does not."""
    given = f"coalesce(TRY_CAST({cell} AS DOUBLE), CAST(TRY_CAST({cell} AS BOOLEAN) AS DOUBLE))"
    some = f"isfinite({given}) AND {given} > 0"
    return f"CASE WHEN {some} THEN {'1::FLOAT' if truth else f'CAST(least({given}, 1e30) AS FLOAT)'} ELSE 0::FLOAT END"


def _double(number: float) -> str:
    return f"'{float(number)!r}'::DOUBLE"
