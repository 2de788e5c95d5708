"""Exact draws for one person, from a stream of random bytes: whole numbers only, no floating point.

How many bytes a draw takes, and in which order, is part of the wire format (docs/wire.md): test vectors hold clients in
every language to the same report for the same bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

SCALE = 1 << 64
"""A chance is a threshold over this."""
HALF = 1 << 63

Bytes = Callable[[int], bytes]
"""So many random bytes, never the same again."""


class Dice:
    """Draws from random bytes; the operating system's unless a test hands out others."""

    def __init__(self, take: Bytes = secrets.token_bytes) -> None:
        self._take = take

    def word(self) -> int:
        """A uniform whole number below 2^64: eight bytes, the highest first."""
        return int.from_bytes(self._take(8), "big")

    def coin(self, threshold: int) -> bool:
        """True with probability threshold / 2^64; always one word."""
        return self.word() < threshold

    def below(self, bound: int) -> int:
        """A uniform whole number below the bound, at most 2^64.

        A word from the last whole multiple of the bound on is thrown away: else small numbers would come more often.
        """
        last = SCALE - SCALE % bound
        while (word := self.word()) >= last:
            pass
        return word % bound

    def choose(self, among: int, size: int) -> list[int]:
        """`size` of the numbers below `among`, rising, every such set alike: each in turn is taken with the chance that
        what is still wanted has among what is left. None is looked at once nothing is wanted, or all that is left."""
        chosen: list[int] = []
        for number in range(among):
            wanted, left = size - len(chosen), among - number
            if wanted == 0:
                break
            if wanted == left or self.below(left) < wanted:
                chosen.append(number)
        return chosen
