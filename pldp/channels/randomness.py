"""The only source of randomness: an AES-CTR keystream, exact Bernoulli bits and uniform integers made from it.

A release keys its stream from the kernel; an evaluation may key one from a seed. Everything else is the same code.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from pldp.channels.exact import BITS
from pldp.channels.scratch import scratch

Words = NDArray[np.uint64]

_KEY_BYTES = 16
_BUFFER_BYTES = 1 << 23  # fits the last-level cache; see scratch
_BLOCK_BYTES = 16
_DIGITS = 8  # decided at a time
_CHUNK_WORDS = _BUFFER_BYTES // 8 // _DIGITS
_TIED_CHUNKS = 64
_CHUNK_INTEGERS = 1 << 18  # so that their products stay in the cache
_FEW = 1 << 12  # of 2^16 words
_ZEROS = memoryview(bytes(_BUFFER_BYTES))
_NONE = np.empty(0, dtype=np.intp)
_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Keystream:
    """Random words from AES-128 in counter mode, through one reused buffer a thread.

    A stream belongs to the process that made it: a forked copy would repeat every draw, so it refuses to go on.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
        self._pid = os.getpid()

    @classmethod
    def secure(cls) -> Self:
        """A fresh stream from the kernel; the only kind a release may use."""
        return cls(os.urandom(_KEY_BYTES))

    @classmethod
    def seeded(cls, seed: int, *labels: str | int) -> Self:
        """A repeatable stream for evaluations and tests; labels keep streams of one seed apart."""
        material = repr((seed, labels)).encode()
        return cls(hashlib.sha256(material).digest()[:_KEY_BYTES])

    def words(self, count: int) -> Words:
        """`count` random words (at most one buffer), valid until the next call in this thread, of any stream."""
        if os.getpid() != self._pid:
            raise RuntimeError("a keystream was inherited through fork: make a fresh one in every process")
        size = 8 * count
        # update_into asks for one block of slack behind the output.
        buffer = scratch("words", _BUFFER_BYTES + _BLOCK_BYTES, np.uint8)
        self._cipher.update_into(_ZEROS[:size], buffer.data)
        return buffer[:size].view(np.uint64)

    def copy(self, count: int) -> Words:
        """`count` random words of one's own, any number."""
        out = np.empty(count, dtype=np.uint64)
        for start in range(0, count, _BUFFER_BYTES // 8):
            part = out[start : start + _BUFFER_BYTES // 8]
            part[:] = self.words(part.size)
        return out


def bernoulli_bits(threshold: int, n_bytes: int, stream: Keystream) -> NDArray[np.uint8]:
    """`n_bytes` of packed bits, each one with probability exactly threshold / 2^64.

    Each bit compares a 64-bit uniform with the threshold, most significant digit first, 64 bits a word operation:
    one random word decides one binary digit of 64 comparisons. Where the two first differ, the uniform is less exactly
    if the threshold's digit is 1. After eight digits 1 in 256 comparisons is still a tie; only words that hold a tie go
    on, so a bit costs about ten random bits instead of 64, and nothing is rounded.
    """
    out = np.zeros(-(-n_bytes // 8), dtype=np.uint64)
    ties: list[tuple[NDArray[np.intp], Words]] = []
    for start in range(0, out.size, _CHUNK_WORDS):
        less = out[start : start + _CHUNK_WORDS]
        where, tied = _still(_compare(threshold, 0, None, less, stream))
        part = less[where]
        still, tied = _still(_compare(threshold, _DIGITS, tied, part, stream))
        less[where] = part
        # One word in a thousand goes on: those of several chunks together, for few words cost as much as many.
        ties.append((where[still] + start, tied))
        if len(ties) == _TIED_CHUNKS:
            _finish(threshold, out, ties, stream)
            ties = []
    if ties:
        _finish(threshold, out, ties, stream)
    return out.view(np.uint8)[:n_bytes]


def _finish(threshold: int, out: Words, ties: list[tuple[NDArray[np.intp], Words]], stream: Keystream) -> None:
    """Decide words that are tied after two times eight digits, in place."""
    where, tied = (np.concatenate(parts) for parts in zip(*ties, strict=True))
    for digit in range(2 * _DIGITS, BITS, _DIGITS):
        if not where.size:
            return
        part = out[where]
        still, tied = _still(_compare(threshold, digit, tied, part, stream))
        out[where] = part
        where = where[still]
    if threshold & 1:
        out[where] ^= tied  # equal to the end is not less


def _still(tied: Words) -> tuple[NDArray[np.intp], Words]:
    """Which words hold a tie, and these words."""
    # Of booleans: twice as fast.
    where = np.flatnonzero(np.not_equal(tied, 0, out=scratch("tied", tied.size, np.bool_)))
    return where, tied[where]


def _compare(threshold: int, first: int, tied: Words | None, less: Words, stream: Keystream) -> Words:
    """Decide the next digits of the comparison uniform < threshold; returns what is still tied, None for everything.

    A random one means that the digits are equal, so ties only ever go, and `less` holds the threshold's current digit
    wherever there is a tie: it changes where that digit does, and stays as it is once the tie has gone.
    """
    words = stream.words(less.size * _DIGITS).reshape(_DIGITS, less.size)
    changes = threshold ^ (threshold >> 1)
    for digit, word in enumerate(words, start=first):
        if (changes >> (BITS - 1 - digit)) & 1:
            np.bitwise_xor(less, _ONES if tied is None else tied, out=less)
        tied = word if tied is None else np.bitwise_and(tied, word, out=word)
    return word


def uniform_below(bound: int, count: int, stream: Keystream, kind: Any = np.uint32) -> NDArray[Any]:
    """`count` integers of this kind, each exactly uniform below `bound`, from 1 to 2^32.

    Lemire's multiplication: a word x of b bits gives ⌊x · bound / 2^b⌋. Every result has ⌊2^b / bound⌋ words or one
    more; the surplus are the words whose product leaves a remainder below 2^b mod bound, and those are drawn again.
    """
    if not 1 <= bound <= 1 << 32:
        raise ValueError(f"bound must lie between 1 and 2^32 (got {bound})")
    # Words of 16 bits are cheaper, where few of them are drawn again.
    bits = 16 if (1 << 16) % bound < _FEW else 32
    surplus = (1 << bits) % bound
    out = np.empty(count, dtype=kind)
    for start in range(0, count, _CHUNK_INTEGERS):
        part = out[start : start + _CHUNK_INTEGERS]
        remainders = _multiply(bound, bits, part, stream)
        again = np.flatnonzero(remainders < surplus) if surplus else _NONE
        while again.size:
            redrawn = np.empty(again.size, dtype=kind)
            remainders = _multiply(bound, bits, redrawn, stream)
            part[again] = redrawn
            again = again[remainders < surplus]
    return out


def _multiply(bound: int, bits: int, out: NDArray[Any], stream: Keystream) -> NDArray[Any]:
    """Put ⌊x · bound / 2^bits⌋ of random words x into `out`; returns what the division leaves."""
    words = stream.words(-(-out.size * bits // 64)).view(f"u{bits // 8}")[: out.size]
    products, remainders = scratch("products", out.size, f"u{bits // 4}"), scratch("low", out.size, words.dtype)
    np.copyto(products, words)
    np.multiply(products, bound, out=products)
    np.copyto(remainders, products, casting="unsafe")
    np.right_shift(products, bits, out=products)
    np.copyto(out, products, casting="unsafe")
    return remainders
