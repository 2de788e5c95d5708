"""How cells become numbers in the vault: codes within declared bounds or bins, and how much an attribute matters."""

from __future__ import annotations

from collections.abc import Sequence

from pldp.channels.numeric.domain import CODES
from pldp.questions.histograms.spec import Binned
from pldp.questions.numbers.quantiles import to_bins
from pldp.questions.numbers.spec import Number

NO_NUMBER = -1
"""The position of a cell that is no number where the spec has no `missing`."""


def position(cell: str, asked: Number | Binned) -> str:
    """A number's code or bin; what is no finite number becomes the declared one.

    The database takes nan and inf for numbers; nobody's income is either.
    """
    given = f"TRY_CAST({cell} AS DOUBLE)"
    found, missing = _code(given, asked) if isinstance(asked, Number) else _bin(given, asked)
    return f"CASE WHEN isfinite({given}) THEN {found} ELSE {missing} END"


def _code(given: str, number: Number) -> tuple[str, int]:
    """As pldp.numeric.domain.Bounds.encode makes it (tests/tasks/test_numbers.py compares them), and the missing one.

    A double is written as text: the database would read 0.1 as a decimal, and round twice.
    """
    low, high = number.bounds
    inside = f"least(greatest({given}, {_double(low)}), {_double(high)})"
    scaled = f"round_even(({inside} - {_double(low)}) / {_double(high - low)} * {CODES}::DOUBLE, 0)"
    missing = NO_NUMBER if number.missing is None else int(number.range.encode(number.missing)[0])
    return f"CAST({scaled} AS BIGINT)", missing


def _bin(given: str, binned: Binned) -> tuple[str, int]:
    """As pldp.numeric.quantiles.to_bins finds it (tests/tasks/test_binned.py compares them), and the missing one."""
    missing = NO_NUMBER if binned.missing is None else int(to_bins(binned.missing, binned.cuts)[0])
    return _halved(given, binned.cuts[1:-1], 0), missing


def _halved(given: str, inner: Sequence[float], first: int) -> str:
    """The bin by halving: a cell is compared with the logarithm of the edges, not with all of them."""
    if not inner:
        return str(first)
    middle = len(inner) // 2
    below, above = _halved(given, inner[:middle], first), _halved(given, inner[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {given} < {_double(inner[middle])} THEN {below} ELSE {above} END"


def weight(cell: str, *, truth: bool) -> str:
    """How much an attribute matters: a number, or yes and no; whatever else stands there means that it does not."""
    given = f"coalesce(TRY_CAST({cell} AS DOUBLE), CAST(TRY_CAST({cell} AS BOOLEAN) AS DOUBLE))"
    some = f"isfinite({given}) AND {given} > 0"
    return f"CASE WHEN {some} THEN {'1::FLOAT' if truth else f'CAST(least({given}, 1e30) AS FLOAT)'} ELSE 0::FLOAT END"


def _double(number: float) -> str:
    return f"'{float(number)!r}'::DOUBLE"
