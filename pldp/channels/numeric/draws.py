"""Exact draws that the numeric mechanisms need beyond Bernoulli bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import CHUNK
from pldp.channels.randomness import Keystream, Words, bernoulli_bits, uniform_below

_MOST = 1 << 17  # words a keystream gives at a time


def uniform_long(bound: int, count: int, stream: Keystream) -> Words:
    """Integers uniform on 0 … bound − 1, exactly, for bounds up to 2^63.

    Beyond 32 bits draws above the last whole multiple of the bound are drawn again.
    """
    if not 1 <= bound <= 1 << 63:
        raise ValueError(f"bound must lie between 1 and 2^63 (got {bound})")
    if bound <= 1 << 32:
        return uniform_below(bound, count, stream).astype(np.uint64)
    out = np.empty(count, dtype=np.uint64)
    last = np.uint64((1 << 64) // bound * bound - 1)  # up to here every residue occurs equally often
    done = 0
    while done < count:
        words = stream.words(min(count - done, _MOST))
        kept = words[words <= last]
        out[done : done + kept.size] = kept % np.uint64(bound)
        done += kept.size
    return out


def bernoulli(threshold: int, count: int, stream: Keystream) -> NDArray[np.uint8]:
    """`count` zeros and ones, one with probability threshold / 2^64 exactly."""
    return np.unpackbits(bernoulli_bits(threshold, -(-count // 8), stream), count=count)


def fair_bits(count: int, stream: Keystream) -> NDArray[np.uint8]:
    """So many bits, one per byte, each 1 with probability ½."""
    words = stream.copy(-(-count // 64))
    return np.unpackbits(words.view(np.uint8), count=count)


def bernoulli_exp(numerators: Words, denominator: int, stream: Keystream) -> NDArray[np.bool_]:
    """True with probability exp(−numerator / denominator) exactly, for numerators up to the denominator.

    von Neumann: draw successes of probability γ/1, γ/2, γ/3 … until the first failure; an even number of successes
    has probability e^{−γ}. Only uniform integers are compared.
    """
    even = np.ones(numerators.size, dtype=np.bool_)
    active = np.arange(numerators.size)
    round_ = 1
    while active.size:
        lucky = uniform_long(denominator * round_, active.size, stream) < numerators[active]
        active = active[lucky]
        even[active] ^= True
        round_ += 1
    return even


def sample_without_replacement(rows: int, among: int, size: int, stream: Keystream) -> NDArray[np.uint32]:
    """`size` different integers below `among` in each row, ascending: every subset equally likely.

    The i-th draw picks among the integers that are left; walking up past those already taken finds its place.
    """
    if not 0 <= size <= among:
        raise ValueError(f"cannot choose {size} of {among}")
    chosen = np.empty((rows, size), dtype=np.uint32)
    if size == among:
        chosen[:] = np.arange(among, dtype=np.uint32)
        return chosen
    for start in range(0, rows, CHUNK):
        part = chosen[start : start + CHUNK]
        columns: list[NDArray[np.uint32]] = []
        for i in range(size):
            drawn = uniform_below(among - i, len(part), stream)
            for taken in columns:
                drawn += drawn >= taken
            # Put it into its place: compare and exchange along the row.
            for j, taken in enumerate(columns):
                columns[j], drawn = np.minimum(taken, drawn), np.maximum(taken, drawn)
            columns.append(drawn)
        for i, column in enumerate(columns):
            part[:, i] = column
    return chosen
