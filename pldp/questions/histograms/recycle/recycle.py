"""Recycling (RCF): reports of a weak level perturbed once more, so that they keep a stricter promise.

An analyst cleared up to budget ε uses reports of at most ε as they are, and those of a larger budget after a second
perturbation, which needs the reports only. The result is a protocol of its own, whose exact ratio is at most the bound
of e^ε that every other protocol keeps. The first reports must stay away from that analyst.

Two recyclings of the same reports would add up. A smaller budget therefore starts from the reports of the next larger
one, never from the first again: whoever holds several then learns no more than the largest tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from pldp.channels.exact import SCALE, exp_below
from pldp.channels.krr import KRR
from pldp.channels.protocol import PureProtocol
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE
from pldp.questions.histograms.recycle.sets import RecycledKRR, RecycledSubset
from pldp.questions.histograms.recycle.unary import Recycled, RecycledBRR, RecycledOUE


def recycle(source: PureProtocol, epsilon: Fraction) -> Recycled:
    """The least further perturbation after which `source`'s reports keep the promise of ε exactly."""
    if source.worst_ratio <= exp_below(epsilon):
        raise ValueError(f"{source.name} reports already keep a budget of {float(epsilon):g}: use them as they are")
    recycled = _perturbed_again(source, epsilon)
    # The square of the bound of e^{ε/2} may pass that of e^ε in its last digit.
    while recycled.worst_ratio > exp_below(epsilon):
        recycled = replace(recycled, again=recycled.again - 1)
    if recycled.exact_p <= recycled.exact_q:
        raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
    return recycled


def _perturbed_again(source: PureProtocol, epsilon: Fraction) -> Recycled:
    """One more step, whose threshold solves p (or q) of the smaller budget for r, rounded towards more noise."""
    before = source.steps if isinstance(source, Recycled) else ()
    odds, p, q = exp_below(epsilon), source.exact_p, source.exact_q
    match source:
        case BRR() | RecycledBRR():
            half = exp_below(epsilon / 2)
            again = _floor((half / (1 + half) + p - 1) / (2 * p - 1) * SCALE)
            return RecycledBRR(source.domain_size, source.keep, again=again, before=before)
        case OUE() | RecycledOUE():
            again = _floor((1 - q - 1 / (1 + odds)) / (1 - 2 * q) * SCALE)
            return RecycledOUE(source.domain_size, source.flip, again=again, before=before)
        case KRR() | RecycledKRR():
            again = _floor((odds - 1) / (odds - 1 + source.domain_size) / (p - q) * SCALE)
            return RecycledKRR(source.domain_size, source.redraw, again=again, before=before)
        case Subset() | RecycledSubset():
            size, k = source.size, source.domain_size
            wanted = size * odds / (size * odds + k - size)
            again = _floor((wanted - Fraction(size, k)) / (p - Fraction(size, k)) * SCALE)
            return RecycledSubset(k, size, source.include, again=again, before=before)
    raise ValueError(f"{source.name} reports cannot be recycled: only brr, krr, oue and subset")


def clear(protocols: Sequence[PureProtocol], epsilon: Fraction) -> tuple[PureProtocol, ...]:
    """Each level's protocol as an analyst cleared up to ε sees it: as it is where it keeps ε."""
    bound = exp_below(epsilon)
    return tuple(protocol if protocol.worst_ratio <= bound else recycle(protocol, epsilon) for protocol in protocols)


def _floor(number: Fraction) -> int:
    return number.numerator // number.denominator
