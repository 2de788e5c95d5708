"""What a report reveals about a hidden level, exactly.

ε_p bounds what the level report says about the level; the value report says something too. The leak is the worst

    Pr[z, b | x, i] / Pr[z, b | x, i′]   over levels i ≠ i′, values x, value reports z and level reports b,

as a rational: the product of a ratio of value reports and the level report's, which for k-RR is its worst ratio for
every pair of levels. Attributes ruled by one level leak about the same pair, so their ratios multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

from pldp.channels.krr import KRR
from pldp.channels.protocol import PureProtocol
from pldp.channels.unary import Unary


def value_leak(one: PureProtocol, other: PureProtocol) -> Fraction | None:
    """max over x, z of Pr[z | x, one] / Pr[z | x, other]; None where no bound exists.

    Bits of a unary report are independent, so each takes its own worst case: the own bit at p, the k − 1 others at q.
    A k-RR report is the own value or another. Protocols whose alphabet or parameters depend on the level give it away.
    """
    if type(one) is not type(other) or one.domain_size != other.domain_size or not one.level_free:
        return None
    if isinstance(one, Unary):
        held = _bit_ratio(one.exact_p, other.exact_p)
        return held * _bit_ratio(one.exact_q, other.exact_q) ** (one.domain_size - 1)
    if isinstance(one, KRR):
        kept = one.exact_p / other.exact_p
        return kept if one.domain_size == 1 else max(kept, one.exact_q / other.exact_q)
    return None


def level_leak(attributes: Sequence[Sequence[PureProtocol]], level_report: PureProtocol | None) -> Fraction | None:
    """The worst ratio over pairs of levels of all attributes ruled by one level, with the level report (once).

    `attributes` holds each attribute's protocols by level. None means that the leak has no bound. Without a level
    report (levels are never sent) only the value reports count. A single level leaks nothing.
    """
    n_levels = {len(protocols) for protocols in attributes}
    if len(n_levels) != 1:
        raise ValueError("attributes ruled by one choice must have the same levels")
    worst = Fraction(1)
    for i, j in permutations(range(n_levels.pop()), 2):
        ratio = Fraction(1)
        for protocols in attributes:
            part = value_leak(protocols[i], protocols[j])
            if part is None:
                return None
            ratio *= part
        worst = max(worst, ratio * (level_report.worst_ratio if level_report else 1))
    return worst


def _bit_ratio(one: Fraction, other: Fraction) -> Fraction:
    return max(one / other, (1 - one) / (1 - other))
