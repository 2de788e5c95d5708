"""What speaks against the reports about items that clients sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.channels.words import from_words
from pldp.estimate.suspect import bounded_weight_tail, likeliest, weight_law, weight_tail
from pldp.questions.doubts import WEIGHTS, Doubt
from pldp.questions.items.gates import impossible
from pldp.questions.items.rowchannels import Bits, OneValue, RowChannel
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.question import Columns, Evidence

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

MOST_BITS = 1 << 14
"""Items up to which the law of a report's weight is added up bit by bit."""


def doubts(plan: Items, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """A third of the false alarms each: supports, weights, repeats."""
    part = alpha / 3
    return (
        *impossible(plan, evidence, part),
        *_weights(plan, evidence, part),
        *plan.repeated(evidence, part),
    )


def likeliest_row(channel: RowChannel, phase: int) -> float:
    """Bound on the probability of the likeliest report, whatever the row."""
    match channel:
        case Bits():
            kept = (max(zero, one) / SCALE for zero, one in zip(channel.keep_zero, channel.keep_one, strict=True))
            return float(np.prod(list(kept)))
        case OneValue():
            return float(channel.kernel.matrix.max())
        case Sampled():
            return likeliest(channel.asked[phase].sampling.protocol)
    return 1.0


def row_weights(channel: RowChannel, phase: int, reports: Columns) -> NDArray[np.int64]:
    """How many reports have 0, 1, 2 … bits; empty where that tells nothing."""
    match channel:
        case Bits() if len(channel.keep_zero) <= MOST_BITS:
            width, size = channel.report_bytes, len(channel.keep_zero)
        case Sampled() if weight_law(channel.asked[phase].sampling.protocol) is not None:
            protocol = channel.asked[phase].sampling.protocol
            width, size = protocol.report_bytes, protocol.domain_size
        case _:
            return np.empty(0, dtype=np.int64)
    bits = np.bitwise_count(from_words(reports, width)).sum(axis=1, dtype=np.int64)
    return np.bincount(bits, minlength=size + 1)


def weights_tail(channel: RowChannel, phase: int, weights: NDArray[np.int64]) -> float:
    """Bound on the probability of weights like these of honest people, whatever they hold."""
    if isinstance(channel, Bits):
        none = channel.kernel.false_one
        return bounded_weight_tail(weights, none, none + channel.kernel.gap)
    law = weight_law(channel.asked[phase].sampling.protocol) if isinstance(channel, Sampled) else None
    return 1.0 if law is None else weight_tail(weights, law)


def _weights(plan: Items, evidence: Evidence, alpha: float) -> Iterator[Doubt]:
    """One test per sheet."""
    if evidence.received is None:
        return
    part = alpha / len(plan.places)
    for path, (phase, level) in plan.places.items():
        weights = evidence.received.weights.get(path)
        if weights is None or not weights.sum():
            continue
        tail = weights_tail(plan.levels[level].channel, phase, weights)
        if tail < part:
            yield Doubt(plan.place, plan.level_names[level], WEIGHTS, tail, part, tail)
