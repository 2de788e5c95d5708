"""Bytes of a text file by whole lines, and the signs between them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pldp.tasks.sources.csvfaults import LONGEST, CsvFault

LF, CR, SPACE = b"\n\r "
Positions = NDArray[np.intp]
Truths = NDArray[np.bool_]

_CHUNK = 1 << 22
_BOM = b"\xef\xbb\xbf"
_SPACES = 64
"""Spaces beside a quote that are looked past."""


def open_bytes(path: Path) -> BinaryIO | gzip.GzipFile:
    """A file's bytes as they are before compression."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def chunks(handle: BinaryIO | gzip.GzipFile, too_long: Callable[[], CsvFault]) -> Iterator[bytes]:
    """Whole lines with their ends, so that neither a character nor what stands beside a quote is cut."""
    rest = handle.read(len(_BOM)).removeprefix(_BOM)
    while piece := handle.read(_CHUNK):
        rest += piece
        # A carriage return at the very end may belong to a line feed that is not read yet.
        cut = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, -1)) + 1
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        if len(rest) > LONGEST:
            raise too_long()
    if rest:
        yield rest if rest.endswith((b"\n", b"\r")) else rest + b"\n"


def past_spaces(text: NDArray[np.uint8], at: Positions, step: int) -> Positions:
    """The first byte from there on that is no space."""
    at = at.copy()
    for _ in range(_SPACES):
        inside = (at >= 0) & (at < text.size)
        spaces = inside & (text[np.clip(at, 0, text.size - 1)] == SPACE)
        if not spaces.any():
            break
        at[spaces] += step
    return at


def halves(text: NDArray[np.uint8], ends: Positions) -> Truths:
    """Carriage returns that a line feed follows: half of one line end."""
    follows = np.minimum(ends + 1, text.size - 1)
    return (text[ends] == CR) & (text[follows] == LF)


def line_ends(text: bytes) -> int:
    """How many lines end in these bytes, whichever of the three conventions they follow."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
