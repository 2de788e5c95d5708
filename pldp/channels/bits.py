"""Reports that are packed vectors of bits, one a value: drawing, counting and checking them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import BITS, SCALE
from pldp.channels.protocol import Bits, Counts, PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream, bernoulli_bits
from pldp.channels.scratch import scratch

_BLOCK_ROWS = 1 << 17  # users whose own bits are set at a time; see scratch
_STRIPE_BYTES = 1 << 10  # so that all stripes stay in the cache
_FOLDS = (  # field width, stripes whose fields add up without carry in twice the width, mask of every other field
    (np.uint64(1), 3, np.uint64(0x5555_5555_5555_5555)),
    (np.uint64(2), 5, np.uint64(0x3333_3333_3333_3333)),
    (np.uint64(4), 17, np.uint64(0x0F0F_0F0F_0F0F_0F0F)),
)
_STRIPES = 3 * 5 * 17


def coins(threshold: int, count: int, stream: Keystream) -> Bits:
    """One zero or one a user; a one has probability threshold / 2^64."""
    if threshold == SCALE // 2:
        packed = stream.copy(-(-count // BITS)).view(np.uint8)  # a random bit is a fair coin
    else:
        packed = bernoulli_bits(threshold, -(-count // 8), stream)
    return np.unpackbits(packed, count=count, bitorder="little")


class BitVectors(PureProtocol):
    """Value j stands in bit j mod 8 of byte j // 8; padding bits are zero."""

    @property
    def report_bytes(self) -> int:
        return -(-self.domain_size // 8)

    def members(self, reports: Reports) -> Bits:
        return np.unpackbits(reports, axis=1, count=self.domain_size, bitorder="little")

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        padding = np.uint8(0xFF) << np.uint8(self.domain_size % 8) if self.domain_size % 8 else np.uint8(0)
        return np.flatnonzero(reports[:, -1] & padding)

    def support(self, reports: Reports) -> Counts:
        width = self.report_bytes
        # A stripe is a multiple of 8 rows, whole words at any width; equal blocks leave little to pad.
        eights = max(-(-len(reports) // (8 * _STRIPES)), 1)
        blocks = -(-8 * eights * width // _STRIPE_BYTES)
        rows = 8 * -(-eights // blocks)
        block = _STRIPES * rows
        totals = np.zeros((8, rows * width), dtype=np.int64)
        for start in range(0, len(reports), block):
            part = reports[start : start + block]
            if len(part) < block:
                part = np.concatenate([part, np.zeros((block - len(part), width), dtype=np.uint8)])
            # Bits of 3 stripes add up in 2-bit fields, those of 5 in 4-bit fields, those of 17 in bytes.
            fields = np.ascontiguousarray(part).reshape(1, -1).view(np.uint64)
            for shift, stripes, mask in _FOLDS:
                stacked = fields.reshape(len(fields), stripes, -1)
                halves = np.empty((2, *stacked.shape), dtype=np.uint64)
                np.bitwise_and(stacked, mask, out=halves[0])
                np.bitwise_and(stacked >> shift, mask, out=halves[1])
                fields = np.add.reduce(halves, axis=2).reshape(2 * len(fields), -1)
            totals += fields.view(np.uint8)
        return totals.reshape(8, -1, width).sum(axis=1).T.reshape(-1)[: self.domain_size]

    def _noise(
        self, threshold: int, values: Values, stream: Keystream, draw: Callable[..., Reports] = bernoulli_bits
    ) -> Reports:
        """One row a user of bits that are one with probability threshold / 2^64, packed as `draw` has them."""
        self._check(values)
        n, width = values.size, self.report_bytes
        reports = draw(threshold, n * width, stream).reshape(n, width)
        padding = 8 * width - self.domain_size
        if padding:
            reports[:, -1] &= np.uint8(0xFF >> padding)
        return reports

    @property
    def _number(self) -> np.dtype[np.unsignedinteger] | None:
        """Rows of 1, 2, 4 or 8 bytes are single numbers, whose bits are faster shifted than looked up."""
        return np.dtype(f"<u{self.report_bytes}") if self.report_bytes in (1, 2, 4, 8) else None

    def _flip_own(self, reports: Reports, values: Values, flips: Bits | None = None) -> None:
        """Flip everybody's own bit, or only where `flips` is one."""
        number = self._number
        for start in range(0, values.size, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            held, part = values[rows], reports[rows]
            if number:
                bits, whole = scratch("bits", held.size, number), part.view(number)[:, 0]
                np.copyto(bits, held, casting="unsafe")
                np.left_shift(number.type(1) if flips is None else flips[rows], bits, out=bits)
                np.bitwise_xor(whole, bits, out=whole)
            else:
                cells = part.reshape(-1)
                starts = _starts(self.report_bytes)[: held.size]
                where = np.add(starts, held >> np.uint16(3), out=scratch("places", held.size, np.intp))
                shift = (held & np.uint16(7)).astype(np.uint8)
                bit = np.left_shift(np.uint8(1) if flips is None else flips[rows], shift)
                # mode="clip" skips the bounds check already made.
                cells[where] = cells.take(where, mode="clip") ^ bit


@lru_cache(maxsize=1 << 4)
def _starts(width: int) -> NDArray[np.intp]:
    """Where the bytes of a block's rows begin."""
    starts = np.arange(0, _BLOCK_ROWS * width, width)
    starts.flags.writeable = False  # threads share it
    return starts
