"""Uniform random sets of given sizes, as bits: unranked from tables of 16 positions, between which members are split.

An index that is uniform below C(m, w) and a list of all sets of w among m positions give a uniform set. More than 16
positions are halved, and halved again: how many members stand in which half is drawn exactly, and given that, the
halves are independent and uniform.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.channels.weighted import Weights, split

Masks = NDArray[np.uint16]
"""Sets of up to 16 positions, one per user: bit j is one where position j is a member."""

LEAF = 16
"""Positions that one table covers: 128 KiB, which stay in the cache."""
_BITS = 32  # of the words that indices are made from


def uniform_sets(positions: int, sizes: Weights, stream: Keystream) -> Iterator[Masks]:
    """Sets of these sizes, each uniform among those of its size and independent; LEAF positions at a time.

    The sizes must be at most `positions`. Each mask is an array of its own.
    """
    if positions <= LEAF:
        yield _unranked(positions, sizes, stream)
        return
    leaves = -(-positions // LEAF)
    # The largest power of two leaves fewer on the right: all that is at the left is alike, and shares its tables.
    left = LEAF << (leaves - 1).bit_length() - 1
    inside = split(left, positions - left).draw(sizes, stream)
    yield from uniform_sets(left, inside, stream)
    yield from uniform_sets(positions - left, sizes - inside, stream)


@lru_cache(maxsize=LEAF + 1)
def ranked(positions: int) -> tuple[Masks, NDArray[np.uint64], NDArray[np.int64]]:
    """All sets of up to 16 positions, ordered by size; by size, how many there are, and where they begin."""
    every = np.arange(1 << positions, dtype=np.uint32)
    order = np.argsort(np.bitwise_count(every), kind="stable")
    numbers = np.array([comb(positions, size) for size in range(positions + 1)], dtype=np.uint64)
    return every[order].astype(np.uint16), numbers, (np.cumsum(numbers) - numbers).astype(np.int64)


def _unranked(positions: int, sizes: Weights, stream: Keystream) -> Masks:
    """Lemire's multiplication, as in `uniform_below`, with a bound of each user's own."""
    masks, numbers, begins = ranked(positions)
    rows = sizes.astype(np.intp)
    bounds = numbers.take(rows, mode="clip")
    words = stream.words(-(-sizes.size * _BITS // 64)).view(np.uint32)[: sizes.size]
    products = words * bounds
    # A surplus lies below its bound, so hardly any remainder needs to be looked at.
    again = np.flatnonzero(products.astype(np.uint32) < numbers.max())
    while again.size:
        bound = bounds[again]
        again = again[products[again] & np.uint64(0xFFFF_FFFF) < np.uint64(1 << _BITS) % bound]
        products[again] = stream.words(again.size) >> np.uint64(_BITS)
        products[again] *= bounds[again]
    products >>= np.uint64(_BITS)
    places = products.view(np.int64)
    places += begins.take(rows, mode="clip")
    drawn: Masks = masks.take(places, mode="clip")
    return drawn
