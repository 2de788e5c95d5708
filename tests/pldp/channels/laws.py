"""Every protocol's channel by brute force, from its definition and not from its p and q."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.channels.krr import KRR
from pldp.channels.protocol import PureProtocol, Reports
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE

Law = dict[tuple[int, ...], list[Fraction]]
"""By the values a report supports, as zeros and ones: its probability given each value."""

ENUMERABLE: tuple[type[PureProtocol], ...] = (KRR, BRR, OUE, Subset)
"""All but local hashing, which has P³ g reports."""


def channel(protocol: PureProtocol) -> Law:
    return dict(_reports(protocol))


def _reports(protocol: PureProtocol) -> Iterator[tuple[tuple[int, ...], list[Fraction]]]:
    k = protocol.domain_size
    for bits in itertools.product((0, 1), repeat=k):
        match protocol:
            case KRR():
                if sum(bits) != 1:
                    continue
                redrawn = Fraction(protocol.redraw, SCALE)
                yield bits, [(1 - redrawn) * bits[x] + redrawn / k for x in range(k)]
            case BRR():
                keep = Fraction(protocol.keep, SCALE)
                chances = [[keep if bit == (j == x) else 1 - keep for j, bit in enumerate(bits)] for x in range(k)]
                yield bits, [_product(each) for each in chances]
            case OUE():
                q = Fraction(protocol.flip, SCALE)
                chances = [[q if bit else 1 - q for j, bit in enumerate(bits) if j != x] for x in range(k)]
                yield bits, [_product(each) / 2 for each in chances]
            case Subset():
                if sum(bits) != protocol.size:
                    continue
                own = Fraction(protocol.include, SCALE)
                inside, outside = own / comb(k - 1, protocol.size - 1), (1 - own) / max(comb(k - 1, protocol.size), 1)
                yield bits, [inside if bits[x] else outside for x in range(k)]
            case _:
                raise NotImplementedError(protocol.name)


def _product(chances: list[Fraction]) -> Fraction:
    result = Fraction(1)
    for chance in chances:
        result *= chance
    return result


def codes(protocol: PureProtocol, reports: Reports) -> NDArray[np.int64]:
    """Reports as numbers: those that support the same values have the same."""
    return protocol.members(reports).astype(np.int64) @ (1 << np.arange(protocol.domain_size))
