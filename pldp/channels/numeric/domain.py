"""From numbers in declared bounds to codes on one fixed grid, and from codes to a mechanism's coarser grid.

A code q in 0 … 2^31 stands for x = q / 2^30 − 1 in [−1, 1]. The step, 2^−30, lies far below any noise, so this first
rounding is to the nearest. A mechanism works on 2^b steps (b = 15: reports of two bytes); there a rounding to the
nearest would bias means by up to 2^−15, which millions of users can see. So the second rounding is random and unbiased:
the expectation of the coarse index is the code itself, exactly. Both happen before the mechanism: its rows are mixed,
never changed, and a mixture of rows has no larger ratio than the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pldp.channels.randomness import Keystream

Floats = NDArray[np.float64]
Codes = NDArray[np.uint32]

CODE_BITS = 31
CODES = 1 << CODE_BITS
"""The code of the upper bound; 0 is the lower bound's."""

CHUNK = 1 << 14
"""Values worked on at a time, so that their arrays stay in the cache and memory stays bounded."""


@dataclass(frozen=True)
class Bounds:
    """Declared, public bounds of an attribute; values beyond them count as the bound."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and math.isfinite(self.upper - self.lower)):
            raise ValueError(f"bounds must be finite (got {self.lower} and {self.upper})")
        if not self.lower < self.upper:
            raise ValueError(f"the lower bound must lie below the upper one (got {self.lower} and {self.upper})")

    @property
    def half_width(self) -> float:
        return (self.upper - self.lower) / 2

    def encode(self, values: ArrayLike, missing: float | None = None) -> Codes:
        """Codes of the values, clipped; a missing value (nan) becomes the declared one."""
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
        codes = np.empty(numbers.shape, dtype=np.uint32)
        flat, out = numbers.reshape(-1), codes.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            part = flat[start : start + CHUNK].copy()
            gaps = np.isnan(part)
            if gaps.any():
                if missing is None or math.isnan(missing):
                    raise ValueError("a value is missing, and no value is declared to stand for it")
                part[gaps] = missing
            np.clip(part, self.lower, self.upper, out=part)
            part -= self.lower
            part /= self.upper - self.lower
            part *= CODES
            out[start : start + CHUNK] = np.rint(part, out=part)
        return codes

    def decode(self, x: float) -> float:
        """From [−1, 1] to the attribute's units; estimates beyond the bounds stay beyond them."""
        return self.lower + self.half_width * (x + 1)


def position(code: int) -> Fraction:
    """x of a code."""
    return Fraction(2 * code, CODES) - 1


def positions(codes: Codes) -> Floats:
    """Codes as numbers of [−1, 1]."""
    return codes.astype(np.float64) * (2 / CODES) - 1


def round_codes(codes: Codes, bits: int, stream: Keystream) -> Codes:
    """Indices 0 … 2^bits with expectation codes · 2^(bits − 31), exactly; at most a chunk at a time."""
    shift = CODE_BITS - bits
    if shift <= 16:
        dither = stream.words(-(-codes.size // 4)).view(np.uint16)[: codes.size]
        rounded = codes + (dither >> np.uint16(16 - shift))
    else:
        wide = stream.words(-(-codes.size // 2)).view(np.uint32)[: codes.size]
        rounded = codes + (wide >> np.uint32(32 - shift))
    rounded >>= np.uint32(shift)
    return rounded


def rounded_square(code: int, bits: int) -> Fraction:
    """E[x²] of a code after random rounding to 2^bits steps: what rounding adds to the second moment is in it."""
    shift = CODE_BITS - bits
    index, rest = code >> shift, Fraction(code & ((1 << shift) - 1), 1 << shift)
    low, high = (Fraction(2 * i, 1 << bits) - 1 for i in (index, index + 1))
    return (1 - rest) * low**2 + rest * high**2
