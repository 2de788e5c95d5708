"""Uniform random sets of given sizes, as bits: unranked from tables of 16 positions, between which members are split.

An index that is uniform below C(m, w) and a list of all sets of w among m positions give a uniform set. More than 16
positions are halved, and halved again: how many members stand in which half is drawn exactly, and given that, the
halves are independent and uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream, Words
from pldp.channels.scratch import scratch
from pldp.channels.weighted import Weights, split

Masks = NDArray[np.uint16]
"""Sets of up to 16 positions, one per user: bit j is one where position j is a member."""

LEAF = 16
"""Positions that one table covers: 128 KiB, which stay in the cache."""
_BITS = 32  # of the words that indices are made from
_CHUNK = 1 << 18  # sets drawn by one call: few enough that numbers and tables stay in the last cache
_BLOCK_MASKS = 1 << 20
_FEWEST_ROWS = 1 << 15
_LOW = np.uint64((1 << _BITS) - 1)
_MOST = np.uint32(comb(LEAF, LEAF // 2))
_RANK_BITS = np.uint64(int(_MOST).bit_length())


def leaves(positions: int) -> int:
    """Numbers of 16 bits that a set of this many positions takes."""
    return -(-positions // LEAF)


def block_rows(positions: int) -> int:
    """Users to draw sets for at a time: few enough to stay in the cache, enough to hide what calls cost."""
    return min(max(_BLOCK_MASKS // leaves(positions), _FEWEST_ROWS), _CHUNK)


def uniform_sets(positions: int, sizes: Weights, stream: Keystream) -> Masks:
    """Sets of these sizes, each uniform among those of its size, and independent: (leaf, user), 16 positions a leaf.

    No size may pass the number of positions; ask for `block_rows` users at most. Valid until this thread's next call.
    """
    n = sizes.size
    sets = scratch("sets", leaves(positions) * n, np.uint16).reshape(-1, n)
    sets[0] = sizes
    halvings, ends = _halvings(positions)
    # A node's size stands in the row of its first leaf; all nodes of as many positions are drawn at once.
    for (left, right), nodes, others in halvings:
        for some, rest in zip(_chunks(nodes, n), _chunks(others, n), strict=True):
            size = sets[some]
            inside = split(left, right).draw(size.reshape(-1), stream).reshape(size.shape)
            sets[rest] = size - inside
            sets[some] = inside
    for width, nodes in ends:
        for some in _chunks(nodes, n):
            sizes = sets[some]
            sets[some] = _unranked(width, sizes.reshape(-1), stream).reshape(sizes.shape)
    return sets


def _chunks(nodes: list[int], n: int) -> Sequence[list[int] | int]:
    """So many nodes at a time that `n` users of each make one chunk; one node is a number, whose row is not copied."""
    most = max(_CHUNK // max(n, 1), 1)
    if most == 1:
        return nodes
    return [nodes[start : start + most] for start in range(0, len(nodes), most)]


@lru_cache(maxsize=1 << 8)
def _halvings(positions: int) -> tuple[list[tuple[tuple[int, int], list[int], list[int]]], list[tuple[int, list[int]]]]:
    """How a set is cut, largest parts first: positions left and right, the parts' first leaves, those of their right
    halves. Then the parts that are left: positions, and which leaves have as many.
    """
    halvings, parts = [], {positions: [0]}
    while (most := max(parts)) > LEAF:
        nodes = parts.pop(most)
        # A power of two at the left: everything below it is alike, and shares its tables.
        left = LEAF << (leaves(most) - 1).bit_length() - 1
        others = [node + left // LEAF for node in nodes]
        halvings.append(((left, most - left), nodes, others))
        for width, some in ((left, nodes), (most - left, others)):
            parts.setdefault(width, []).extend(some)
    return halvings, list(parts.items())


def _unranked(positions: int, sizes: Weights, stream: Keystream) -> Masks:
    """Lemire's multiplication, as in `uniform_below`, with a bound of each user's own."""
    masks, numbers = ranked(positions)
    n = sizes.size
    rows, bounds, products = (scratch(name, n, np.uint64) for name in ("rows", "bounds", "products"))
    np.copyto(rows, sizes)
    # mode="clip" skips a check of bounds.
    numbers.take(rows.view(np.intp), out=bounds, mode="clip")
    np.copyto(products, stream.words(-(-n * _BITS // 64)).view(np.uint32)[:n])
    np.multiply(products, bounds, out=products)
    low = scratch("low", n, np.uint32)
    np.copyto(low, products, casting="unsafe")
    # What is drawn again leaves less than its bound: hardly ever.
    again = np.flatnonzero(np.less(low, _MOST, out=scratch("near", n, np.bool_)))
    while again.size:
        again = again[products[again] & _LOW < (_LOW + np.uint64(1)) % bounds[again]]
        products[again] = (stream.words(again.size) >> np.uint64(_BITS)) * bounds[again]
    np.right_shift(products, np.uint64(_BITS), out=products)
    np.left_shift(rows, _RANK_BITS, out=rows)
    np.add(rows, products, out=rows)
    drawn: Masks = masks.take(rows.view(np.intp), out=scratch("masks", n, np.uint16), mode="clip")
    return drawn


@lru_cache(maxsize=LEAF + 1)
def ranked(positions: int) -> tuple[Masks, Words]:
    """All sets of up to 16 positions, by size and rank among those of that size; how many there are of each size."""
    every = np.arange(1 << positions, dtype=np.uint32)
    sizes = np.bitwise_count(every)
    numbers = np.array([comb(positions, size) for size in range(positions + 1)], dtype=np.uint64)
    masks = np.zeros((positions + 1, 1 << int(_RANK_BITS)), dtype=np.uint16)
    for size, row in enumerate(masks):
        row[: int(numbers[size])] = every[sizes == size]
    return masks, numbers
