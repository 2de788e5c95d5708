"""Eight exact Bernoulli bits at a time, looked up: a fifth of the random bytes that comparing every bit takes.

A byte of eight independent bits, each one with probability q = t / 2^64, is v with the chance q^s (1 − q)^(8 − s),
where s is the number of ones in v: a whole number over 2^512. Sixteen random digits name one of 2^16 equally likely
cells. Byte v has as many whole cells as fit into its chance, and a table tells whose a cell is. What is left of all
chances is laid end to end over the last cells, at most 255: who meets one of these draws more digits, up to 512 in all,
which decide.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import BITS, SCALE
from pldp.channels.randomness import Keystream
from pldp.channels.scratch import scratch

_CELLS = 1 << 16
_CHUNK = 1 << 17  # bytes drawn at a time, so that their places stay in the cache
_DIGITS = 8 * BITS - 16  # of a place within a cell, all that there are
_FIRST = 56  # of them are drawn first; with the number of the cell they fill a word


class Octets:
    """The table of one threshold t: `values` by cell, and how what is left lies over the cells after them.

    `ends` are where the part of every byte ends, in cells and 2^-496 of a cell; `firsts` are their first digits.
    """

    def __init__(self, threshold: int) -> None:
        if not 0 <= threshold <= SCALE:
            raise ValueError("a threshold lies between 0 and 2^64")
        ones = [threshold**s * (SCALE - threshold) ** (8 - s) for s in range(9)]
        chances = [ones[value.bit_count()] for value in range(256)]
        cells = [chance >> _DIGITS for chance in chances]
        self.values = np.repeat(np.arange(256, dtype=np.uint8), cells)
        self.ends = list(accumulate(chance & ((1 << _DIGITS) - 1) for chance in chances))
        self.firsts = np.array([end >> (_DIGITS - _FIRST) for end in self.ends[:-1]], dtype=np.uint64)

    def draw(self, out: NDArray[np.uint8], stream: Keystream) -> None:
        """Fill `out`."""
        left = []
        for start in range(0, out.size, _CHUNK):
            part = out[start : start + _CHUNK]
            words = stream.words(-(-part.size // 4)).view(np.uint16)[: part.size]
            places, beyond = scratch("places", part.size, np.intp), scratch("beyond", part.size, np.bool_)
            np.copyto(places, words)
            # mode="clip" skips a check of bounds; those beyond the table are drawn below.
            self.values.take(places, mode="clip", out=part)
            if self.values.size < _CELLS:
                where = np.flatnonzero(np.greater_equal(words, self.values.size, out=beyond))
                left.append((where + start, places[where] - self.values.size))
        if left:  # all together: few cost as much as many
            where, cells = (np.concatenate(parts) for parts in zip(*left, strict=True))
            out[where] = self._settle(cells, stream)

    def _settle(self, cells: NDArray[np.intp], stream: Keystream) -> NDArray[np.uint8]:
        """Bytes of places in what is left, of which the cell is known."""
        begun = stream.copy(cells.size) >> np.uint64(BITS - _FIRST)
        begun |= cells.astype(np.uint64) << np.uint64(_FIRST)
        values = np.searchsorted(self.firsts, begun, side="right")
        for tied in np.flatnonzero((values > 0) & (self.firsts[values - 1] == begun)):
            values[tied] = self._unroll(int(begun[tied]), stream)
        return values.astype(np.uint8)

    def _unroll(self, begun: int, stream: Keystream) -> int:
        """The byte of a place that begins as an end does: by all its digits."""
        rest = _DIGITS - _FIRST
        more = int.from_bytes(stream.copy(-(-rest // BITS)).tobytes(), "little")
        return bisect_right(self.ends, begun << rest | more & ((1 << rest) - 1))


@lru_cache(maxsize=1 << 7)
def _octets(threshold: int) -> Octets:
    return Octets(threshold)


def bernoulli_octets(threshold: int, n_bytes: int, stream: Keystream) -> NDArray[np.uint8]:
    """`n_bytes` of packed bits, each one with probability exactly threshold / 2^64, all independent."""
    out = np.empty(n_bytes, dtype=np.uint8)
    _octets(threshold).draw(out, stream)
    return out
