"""What intervals that invert a test share: their ends, and the noise of groups of values and of their differences."""

from __future__ import annotations

from dataclasses import dataclass

from pldp.channels.protocol import Floats, PureProtocol


@dataclass(frozen=True)
class Interval:
    low: Floats
    high: Floats


@dataclass(frozen=True)
class ContrastNoise:
    """Noise of one report's estimate of F_A − F_B, by what its person holds: a value of A, of B, or neither."""

    first: float
    second: float
    neither: float


def contrast_noise(protocol: PureProtocol, first: int, second: int = 0) -> ContrastNoise:
    """For disjoint groups of `first` and `second` values; with `second` = 0 it is the noise of one group.

    A report's estimate is (#supported in A − #supported in B)/(p − q). Two cells have the covariance a − pq if one
    is the person's own and b − q² if neither is, a and b the protocol's `exact_pairs`.
    """
    p, q = protocol.exact_p, protocol.exact_q
    held_pair, others = protocol.exact_pairs
    with_held, without = held_pair - p * q, others - q * q

    def others_only(a: int, b: int) -> float:
        pairs = a * (a - 1) + b * (b - 1) - 2 * a * b
        return float(((a + b) * q * (1 - q) + pairs * without) / (p - q) ** 2)

    def holder(a: int, b: int) -> float:
        """One of the `a` is the own value."""
        tied = 2 * (a - 1 - b) * with_held
        return float((p * (1 - p) + tied) / (p - q) ** 2) + others_only(a - 1, b)

    return ContrastNoise(holder(first, second), holder(second, first) if second else 0.0, others_only(first, second))
