"""Errors and intervals of supports that the proof expects of its made-up people, by docs/items.md, sections 6 and 9.

Levels are pooled, Σ w_g² v_g/n_g + S² (Σ w_g²/n_g − 1/n), with the noise v_g of one report of a level at the
supports that its people have; people hold items independently of each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.channels.protocol import Floats
from pldp.proof.compared import NEAR, Compared, errors_between
from pldp.proof.laws import ROUNDING, support_law
from pldp.questions.items.padding import Lengths, held_sets_at_most
from pldp.questions.items.reports import read_candidates
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Phase, Sampled
from pldp.questions.question import Rows

if TYPE_CHECKING:
    from pldp.questions.items.plan import ItemLevel
    from pldp.questions.items.question import Items


def phase_epsilon(phase: Phase, epsilon: float) -> float:
    """What the protocol may spend on one of ℓ places: k-RR reports support one value, which sampling hides."""
    return math.log1p(phase.length * math.expm1(min(epsilon, 700.0))) if phase.mechanism == "krr" else epsilon


def value_chances(channel: OneValue) -> tuple[Floats, Floats]:
    """How likely each value is drawn anew, and to be what is then told."""
    redraw = np.array([each / SCALE for each in channel.redraw])
    return redraw, np.array([each / sum(channel.mass) for each in channel.mass])


def value_matrix(channel: OneValue) -> Floats:
    """The probability of each reported value (columns) under each value held (rows), for the channel of one value."""
    redraw, mass = value_chances(channel)
    return np.asarray(np.diag(1 - redraw) + np.outer(redraw, mass))


@dataclass(frozen=True)
class Noise:
    """Of one report of a level, by set: at the supports its people have, and what weights are made for; of those who
    do not hold the set, and of those who do; how far a report moves an estimate, times the reports."""

    there: Floats
    planned: Floats
    without: Floats
    whole: Floats
    moves: Floats


def errors(
    plan: Items, rows: Rows, held: Sequence[Floats], people: Sequence[int], adapted: bytes | None, slack: float
) -> Iterator[Compared]:
    """Of every set that is shown, by length; `held` are the supports of single items by level."""
    if plan.level_weight_cap is not None and plan.combination == "oc+" and len(plan.levels) > 1:
        return  # such weights have no formula here
    position = {name: place for place, name in enumerate(plan.items)}
    lengths = np.array([len(items) for items in rows["items"]])
    for length in dict.fromkeys(lengths.tolist()):
        at = np.flatnonzero(lengths == length)
        sets = np.array([[position[item] for item in rows["items"][row]] for row in at.tolist()])
        stated = {name: np.asarray(rows[name], dtype=np.float64)[at] for name in _COLUMNS}
        shares, n = [each[sets].prod(axis=1) for each in held], np.array(people, dtype=np.float64)[:, None]
        pooled = np.average(shares, axis=0, weights=people)
        noises = [
            _noise(plan, level, sets, each, adapted, pooled) for level, each in zip(plan.levels, held, strict=True)
        ]
        planned = np.stack([one.planned for one in noises]) + plan.minimum_support * (1 - plan.minimum_support)
        raw = n if plan.combination == "sum" else n / np.maximum(planned, 1e-150)
        weights = raw / raw.sum(axis=0) * np.ones(len(sets))
        yield from _compared(plan, length, stated, weights, n, noises, np.stack(shares), slack)


_COLUMNS = ("support", "standard_error", "ci_low", "ci_high", "understatement")


def _compared(
    plan: Items,
    length: int,
    stated: dict[str, Floats],
    weights: Floats,
    n: Floats,
    noises: Sequence[Noise],
    shares: Floats,
    slack: float,
) -> Iterator[Compared]:
    users, parts = float(n.sum()) * plan.phases, weights**2 / n
    share = (weights * shares).sum(axis=0)
    apart = np.maximum(parts.sum(axis=0) - 1 / users, 0) * users / (users - 1) + plan.population / users
    variance = (parts * np.stack([one.there for one in noises])).sum(axis=0) + apart * share * (1 - share)
    error, what = stated["standard_error"], f"sets of {length}"
    yield errors_between(f"errors of {what}", error**2 * users, variance * users, 8 * slack)
    z = NormalDist().inv_cdf(0.5 + plan.confidence / 2)
    seen = stated["support"]
    low, high = seen - stated["ci_low"], stated["ci_high"] - stated["understatement"] - seen
    if length > 1 and isinstance(plan.levels[0].channel, Bits):
        # Of those that were looked at some are shown, whose intervals fail less often: all alike, and never shorter.
        there, distances = error * users > 1, np.stack([low, high])
        lengths = distances[:, there] / error[there]
        off = np.abs(lengths - lengths.max(initial=z)) - NEAR - ROUNDING / error[there]
    else:
        without, whole, moves = (np.stack([getattr(one, part) for one in noises]) for part in _ENDS)
        step, off = (weights * moves / n).max(axis=0) / 2, np.zeros(0)
        whole = without + (whole - without) * _crowded(parts * (whole - without), n, plan.dependence)
        for distance, side in ((low, -1), (high, 1)):
            end = seen + side * distance
            at_end = (parts * (without + (whole - without) * end)).sum(axis=0) + apart * end * (1 - end)
            reach = z * np.sqrt(np.maximum(at_end, 0)) + step
            # An end is the root of a quadratic, whose own rounding is more than that of people so many.
            reach = np.maximum(reach, 1 / users)
            off = np.append(off, np.abs(distance - reach) / reach - NEAR - ROUNDING * np.maximum(end / reach, 1) ** 2)
    yield Compared.between(f"intervals of {what}", np.maximum(off, 0), 0.0, max(8 * slack - NEAR, 0.0))


_ENDS = ("without", "whole", "moves")


def _crowded(noise: Floats, n: Floats, dependence: float | None) -> Floats:
    """How much more frequent holders are at a level than at large, (level, set), where they make most noise: 1/Γ times
    at every level, and what is left at the noisiest ones, up to Γ times."""
    if dependence == 1:
        return np.ones_like(noise)
    least, most = (0.0, np.inf) if dependence is None else (1 / dependence, dependence)
    shares = n[:, 0] / n.sum()
    out = np.full(noise.shape, least)
    for column, by_level in enumerate(noise.T):
        left = 1 - least
        for level in np.argsort(-by_level / shares, kind="stable"):
            more = min(most - least, left / shares[level])
            out[level, column] += more
            left -= more * shares[level]
    return out


def _noise(
    plan: Items, level: ItemLevel, sets: NDArray[np.int64], held: Floats, adapted: bytes | None, pooled: Floats
) -> Noise:
    channel, least = level.channel, plan.minimum_support
    match channel:
        case Bits():
            return _of_bits(channel, sets, held, least)
        case OneValue():
            return _of_values(channel, sets[:, 0], held, pooled)
    return _of_places(plan, level, channel, held[sets].prod(axis=1), sets.shape[1], adapted)


def _of_bits(channel: Bits, sets: NDArray[np.int64], held: Floats, least: float) -> Noise:
    """An item's (bit − q)/gap has the mean square `absent` of those without it, `present` of those with it."""
    q = np.array([(SCALE - zero) / SCALE for zero in channel.keep_zero])
    gap = np.array(
        [(zero + one - SCALE) / SCALE for zero, one in zip(channel.keep_zero, channel.keep_one, strict=True)]
    )
    p = q + gap
    absent, present = q * (1 - q) / gap**2, 1 + p * (1 - p) / gap**2
    square = (held * present + (1 - held) * absent)[sets].prod(axis=1)
    without, whole = absent[sets].prod(axis=1), present[sets].prod(axis=1) - 1
    planned = least * whole + (1 - least) * without
    return Noise(square - held[sets].prod(axis=1), planned, without, whole, (1 / gap)[sets].prod(axis=1))


def _of_values(channel: OneValue, values: NDArray[np.int64], held: Floats, pooled: Floats) -> Noise:
    """By the inverse of the channel; those without a value hold the others as often as people at large do."""
    matrix = value_matrix(channel)
    inverse = np.linalg.inv(matrix).T  # (value, report)
    by_held = inverse**2 @ matrix.T - np.eye(len(matrix))  # (value, value held)
    share, whole = np.empty(len(matrix)), np.diag(by_held)
    share[values] = pooled
    without = (by_held @ share - whole * share) / (share.sum() - share)
    moves = np.diag(inverse) - inverse.min(axis=1)
    planned = by_held.mean(axis=1)
    return Noise(*(column[values] for column in (by_held @ held, planned, without, whole, moves)))


def _of_places(
    plan: Items, level: ItemLevel, channel: Sampled, share: Floats, length: int, adapted: bytes | None
) -> Noise:
    """One of ℓ places goes through the protocol; what a longer row has is drawn less often, which adds noise."""
    phase = channel.asked[0 if length == 1 else -1]
    law = support_law(phase.sampling.protocol, phase_epsilon(phase, float(level.budget)))
    rows: Lengths = plan.row_lengths
    if length > 1:
        rows = held_sets_at_most(rows, [(sets.shape[1], len(sets)) for sets in read_candidates(adapted)])
    gap = law.gap / phase.length
    p = law.q + gap
    places = [(max(phase.length / longest, 0.5), people) for longest, people in rows if longest > phase.length]
    more = sum(people * place * (1 - place) for place, people in places)
    without, whole = law.q * (1 - law.q) / gap**2, p * (1 - p) / gap**2

    def between(at: Floats | float) -> Floats:
        return at * whole + (1 - at) * without + np.zeros(share.size)

    flat = np.zeros(share.size)
    planned = between(plan.minimum_support)
    return Noise(between(share) + more, planned, flat + without + more, flat + whole + more, flat + 1 / gap)
