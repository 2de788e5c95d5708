"""How many members of a random set stand among the first positions, drawn exactly from integer weights.

A uniform number U of [0, 1) is unrolled digit by digit and only as far as its outcome needs: the outcome is the j with
S_j / T ≤ U < S_{j+1} / T, where S_j sums the weights before j and T sums them all. Twelve binary digits decide nearly
always, by a table of doubles whose error is bounded; 64 digits decide unless U is as near a threshold as that error,
one draw in a hundred million; then whole numbers of any length do.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from math import comb

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import BITS
from pldp.channels.randomness import Keystream, Words
from pldp.channels.scratch import scratch

Weights = NDArray[np.uint16]
"""How many members a set has, one per user."""

_GUIDE = 12  # digits that the table decides by
_WORD = 16  # digits drawn first
_UNDECIDED = np.uint16(0xFFFF)
_LAST = np.uint64((1 << BITS) - 1)
_BELOW_ONE = 1 - 2.0**-53
_APART = 32  # sizes without a row between tables that stay apart
_Tables = tuple[int, int, NDArray[np.uint16], Words]
"""The first and the last size that has a row, then guide and thresholds."""


class Split:
    """A uniform set of r among left + right positions has j among the left ones with weight C(left, j) C(right, r − j).

    Tables have a row for every r from a first to a last one: `guide` has the outcome by r and the first digits of U, or
    that they do not decide; `thresholds` has 2^64 S_j / T for j from 1 on, in order, filled up with 2^64 − 1, each no
    further than `blur` from the truth. So the outcome is the number of thresholds below U, unless U is as near one as
    that. Sizes that lie far apart, as those of strict and weak levels do, have tables of their own: all between would
    take hundreds of megabytes.
    """

    def __init__(self, left: int, right: int) -> None:
        self.left, self.right = left, right
        self.blur = blur(min(left, right))
        # Replaced whole, so that threads that share it never see one half of it.
        self._tables: tuple[_Tables, ...] = ()

    def draw(self, sizes: Weights, stream: Keystream) -> Weights:
        """How many of the members of each set, of which there are `sizes`, stand at the left."""
        if not sizes.size:
            return sizes.copy()
        first, guide, thresholds = self._tables_for(int(sizes.min()), int(sizes.max()))
        n = sizes.size
        words = stream.words(-(-n * _WORD // BITS)).view(np.uint16)[:n]
        places, known = scratch("places", n, np.intp), scratch("known", n, np.bool_)
        narrow, digits = scratch("narrow", n, np.uint32), scratch("digits", n, np.uint32)
        np.copyto(narrow, sizes)
        np.subtract(narrow, np.uint32(first), out=narrow)
        np.left_shift(narrow, np.uint32(_GUIDE), out=narrow)
        np.copyto(digits, words)
        np.right_shift(digits, np.uint32(_WORD - _GUIDE), out=digits)
        np.add(narrow, digits, out=narrow)
        np.copyto(places, narrow)
        # mode="clip" skips a check of bounds; the tables have been made for these sizes.
        drawn: Weights = guide.take(places, mode="clip")
        undecided = np.flatnonzero(np.equal(drawn, _UNDECIDED, out=known))
        if undecided.size:
            begun = words[undecided].astype(np.uint64) << np.uint64(BITS - _WORD)
            begun |= stream.words(undecided.size) >> np.uint64(_WORD)
            some = sizes[undecided]
            drawn[undecided] = self._settle(some, begun, thresholds[some - np.uint16(first)], stream)
        return drawn

    def _settle(self, sizes: Weights, digits: Words, thresholds: Words, stream: Keystream) -> Weights:
        """The outcomes of 64 digits each; a number as near a threshold as tables are exact is unrolled."""
        begun = digits[:, None]
        drawn = (thresholds <= begun).sum(axis=1, dtype=np.uint16)
        # Whole numbers of 64 digits run round: what is less than `blur` below the number is near it too.
        near = begun - thresholds + np.uint64(self.blur) <= np.uint64(2 * self.blur)
        for place in np.flatnonzero(near.any(axis=1)):
            drawn[place] = self._unroll(int(sizes[place]), int(digits[place]), stream)
        return drawn

    def _unroll(self, size: int, digits: int, stream: Keystream) -> int:
        """The outcome of a number that begins with these 64 digits: more of them until they decide."""
        sums = cumulated(self.left, self.right, size)
        shift = BITS
        while True:
            # U lies in [digits, digits + 1) / 2^shift; of whole numbers the S_j ≤ x are those ≤ ⌊x⌋.
            place = bisect_right(sums, digits * sums[-1] >> shift) - 1
            if (digits + 1) * sums[-1] <= sums[place + 1] << shift:
                return max(size - self.right, 0) + place
            digits, shift = digits << BITS | int(stream.words(1)[0]), shift + BITS

    def _tables_for(self, low: int, high: int) -> tuple[int, NDArray[np.uint16], Words]:
        """The first row's r, guide and thresholds; with rows for all r from low to high."""
        for first, last, guide, thresholds in self._tables:
            if first <= low and high <= last:
                return first, guide, thresholds
        apart = []
        for tables in self._tables:
            if min(high, tables[1]) + _APART < max(low, tables[0]):
                apart.append(tables)
            else:
                low, high = min(low, tables[0]), max(high, tables[1])
        made = self._made(low, high)
        self._tables = (*apart, made)
        return made[0], made[2], made[3]

    def _made(self, low: int, high: int) -> _Tables:
        thresholds, guides = zip(*(_row(self.left, self.right, size) for size in range(low, high + 1)), strict=True)
        filled = np.full((len(thresholds), max(map(len, thresholds))), _LAST)
        for row, some in zip(filled, thresholds, strict=True):
            row[: len(some)] = some
        return low, high, np.concatenate(guides), filled


@lru_cache(maxsize=1 << 12)
def split(left: int, right: int) -> Split:
    """The split of these two numbers of positions; its tables are made once in a process."""
    return Split(left, right)


def cumulated(left: int, right: int, size: int) -> list[int]:
    """0, S_1, S_2, … T: sums of C(left, j) C(right, size − j) over the j that are possible."""
    least, most = max(size - right, 0), min(size, left)
    terms = [comb(left, least) * comb(right, size - least)]
    for j in range(least, most):
        terms.append(terms[-1] * (left - j) * (size - j) // ((j + 1) * (right - size + j + 1)))
    return [0, *accumulate(terms)]


def blur(steps: int) -> int:
    """How far from 2^64 S_j / T a threshold may be: every step from weight to weight rounds twice, every sum once, both
    of S_j and of T, each time by 2^−53 of what it is at the most."""
    return (6 * steps + 16) << BITS - 53


def rounded(left: int, right: int, size: int) -> Words:
    """2^64 S_j / T for the j from 1 on, 0 for outcomes that are impossible, from weights relative to the largest."""
    least, most = max(size - right, 0), min(size, left)
    j = np.arange(least, most)
    more, less = (left - j) * (size - j), (j + 1) * (right - size + j + 1)
    rising = int(np.count_nonzero(more > less))  # they rise to the largest weight, and fall from there
    before = np.cumprod((less[:rising] / more[:rising])[::-1])[::-1]
    after = np.cumprod(more[rising:] / less[rising:])
    sums = np.cumsum(np.concatenate([before, [1.0], after]))
    shares = np.minimum(sums[:-1] / sums[-1], _BELOW_ONE) * 2.0**BITS
    return np.concatenate([np.zeros(least, dtype=np.uint64), shares.astype(np.uint64)])


@lru_cache(maxsize=1 << 12)
def _row(left: int, right: int, size: int) -> tuple[Words, NDArray[np.uint16]]:
    """Thresholds and guide of one r."""
    thresholds, near = rounded(left, right, size), np.uint64(blur(min(left, right)))
    cells = np.arange(1 << _GUIDE, dtype=np.uint64) << np.uint64(BITS - _GUIDE)
    low, high = cells - near, cells + (np.uint64((1 << BITS - _GUIDE) - 1) + near)
    low[0], high[-1] = 0, _LAST
    before = np.searchsorted(thresholds, low, side="left")
    upto = np.searchsorted(thresholds, high, side="right")
    guide = upto.astype(np.uint16)
    # An impossible outcome's zero is in the first cell, which is not decided then.
    guide[before != upto] = _UNDECIDED
    return thresholds, guide
