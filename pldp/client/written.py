"""Numbers as a plan writes them, within bounds: no plan makes a client draw for ever, or fill its memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pldp.client.dice import HALF, SCALE

LONGEST = 1 << 26
"""Bytes of a signed plan."""
LARGEST = 1 << 22
"""Values of a domain, or places of a list: a draw may look at each of them."""
MOST_DIGITS = 64
"""Of the noise of totals."""
LARGEST_TAIL = HALF
"""Of that noise: it goes on no more often than it ends."""
IMPORTANCE = ("none", "stated", "columns", "weights")
"""Of numbers: nobody says what matters, the plan does, or people do, by yes and no or by weights."""
_WHOLE = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_RATIONAL = re.compile(r"[1-9][0-9]{0,199}(/[1-9][0-9]{0,199})?", re.ASCII)
_BOUNDS = {
    "domain_size": (1, LARGEST),
    "size": (0, LARGEST),
    "buckets": (1, 1 << 15),
    "bits": (1, 31),
    "window": (1, 1 << 32),
    "weight": (1, SCALE),
    "length": (1, 1 << 50),
}
"""By name; every other number of a mechanism is a threshold."""


def whole(written: Any, least: int = 0, most: int = SCALE) -> int:
    """The whole number of a decimal string; ValueError where it is none, or beyond its bounds."""
    if not isinstance(written, str) or not _WHOLE.fullmatch(written) or not least <= int(written) <= most:
        raise ValueError("no whole number within its bounds")
    return int(written)


def wholes(written: Sequence[Any]) -> tuple[int, ...]:
    """Several whole numbers as a plan writes them, each read by `whole`."""
    return tuple(whole(number) for number in written)


def parameters(part: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of a mechanism, by name."""
    return {name: whole(number, *_BOUNDS.get(name, (0, SCALE))) for name, number in part.items() if name != "mechanism"}


def rational(written: Any) -> Fraction:
    """A positive rational such as 3 or 1/3; a Fraction of any text would also take 1e999999999, and never end."""
    if not isinstance(written, str) or not _RATIONAL.fullmatch(written):
        raise ValueError("no positive rational")
    return Fraction(written)


def text(written: Any) -> str:
    """A text: a group of hidden levels without a name would be no group, and the level sent as if it were public."""
    if not isinstance(written, str):
        raise ValueError("no text")
    return written


def one_of(written: Any, *known: Any) -> Any:
    """What is written, if it is one of these; true is not 1."""
    if not any(type(written) is type(one) and written == one for one in known):
        raise ValueError("none of what may stand here")
    return written


def flags(written: Any) -> tuple[int, ...] | None:
    """True and false as 1 and 0; None where nothing is written."""
    return None if written is None else tuple(int(one_of(flag, True, False)) for flag in written)


def place(written: Any) -> int:
    """A place in a list, from 0."""
    if type(written) is not int or written < 0:
        raise ValueError("no place")
    return written


def cap(written: Any) -> int | None:
    """How often an item counts at most; None for as often as it occurs."""
    if written is not None and (isinstance(written, bool) or not isinstance(written, int) or written < 1):
        raise ValueError("a cap is a whole number from 1 on")
    return written
