"""The share of a group of values: its levels combined as those of one merged category.

A group G of g values has the level estimates Σ_{j∈G} f̂_τj. The noise of such a sum is that of the number of members
which one report supports, and this has one law for users inside the group and one for those outside. Where a protocol
flips every bit on its own it is v_τ(G) = Σ_{j∈G} v_τj. Between users, a group is a category like any other:
S² = F(1−F)·n/(n−1) of its whole share F. With these two, weights and variance are those of pldp/estimate/combine.py
(docs/methods.md, Groups of values).
sql/65_publish_group_estimate.sql says the same in SQL, for analysts; tests/sql/test_group_estimate.py compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pldp.channels.protocol import Floats, PureProtocol
from pldp.estimate.combine import Combined, Levels, linear_variance, linear_weights, spread
from pldp.estimate.score import ContrastNoise, Interval, contrast_noise
from tests.pldp.scores import contrast_interval, linear_curve, score_interval

_LEAST = 1e-200


def combine_group(method: str, levels: Levels, members: Sequence[int]) -> Combined:
    """`sum`, `oc` or `oc+` of the group of these cells; arrays lose the dimension of values.

    One group gets one set of weights, where its values, each on its own, have one set each. Every step is that of
    `combine_linear`, noise at the same shares included: a group of one value is that value. Noise at each level's own
    estimate would be nearer to the data, and weights that follow them are biased.
    """
    cells = sorted(set(members))
    if not cells:
        raise ValueError("a group needs at least one value")
    merged = levels.frequencies[..., cells].sum(axis=-1, keepdims=True)
    edge = 1 / max(levels.n_reports, 2)
    even = np.full(1, len(cells) / levels.frequencies.shape[-1])
    between = spread(even, levels.n_reports)
    first = linear_weights("oc+", levels.n, group_noise(levels.protocols, len(cells), even), between)
    pilot = np.clip((first * merged).sum(axis=-2), edge, 1 - edge)
    noise = group_noise(levels.protocols, len(cells), pilot)
    weights = linear_weights(method, levels.n, noise, spread(pilot, levels.n_reports))
    frequency = (weights * merged).sum(axis=-2)
    inside = np.clip(frequency, edge, 1 - edge)
    noise = group_noise(levels.protocols, len(cells), inside)
    variance = linear_variance(weights, levels.n, noise, spread(inside, levels.n_reports))
    return Combined(frequency[..., 0], np.sqrt(variance[..., 0]), weights[..., 0])


def group_interval(
    combined: Combined, levels: Levels, n_values: int, z: float, *, population: bool = False, dependent: bool = False
) -> Interval:
    """The shares of a group of so many values that a test with their own noise does not reject.

    `dependent`: its members may be at any level, so they are taken to be where they are noisiest.
    """
    member, stranger = np.array([_variances(protocol, n_values) for protocol in levels.protocols]).T
    if dependent:
        member = stranger + (member - stranger).max()
    curve = linear_curve(combined.weights[..., None], levels.n, member, stranger, population=population)
    return score_interval(combined.frequency[..., None], curve, z)


def combine_difference(
    method: str, levels: Levels, first: Sequence[int], second: Sequence[int], z: float, *, dependent: bool = False
) -> tuple[Combined, Interval]:
    """F_A − F_B by one set of weights, with the interval of its score test; every step as for a group."""
    size, n = levels.frequencies.shape[-1], levels.n_reports
    edge, g, h = 1 / max(n, 2), len(first), len(second)
    noises = tuple(contrast_noise(protocol, g, h) for protocol in levels.protocols)
    a, b = (levels.frequencies[..., list(group)].sum(axis=-1, keepdims=True) for group in (first, second))

    def noise(away: Floats, both: Floats) -> Floats:
        parts = [(both + away) / 2 * one.first + (both - away) / 2 * one.second for one in noises]
        rest = [(1 - both) * one.neither for one in noises]
        return np.maximum(np.stack([x + y for x, y in zip(parts, rest, strict=True)], axis=-2), _LEAST)

    def shares(weights: Floats) -> tuple[Floats, Floats]:
        away = (weights * (a - b)).sum(axis=-2)
        both = np.maximum(np.clip((weights * (a + b)).sum(axis=-2), edge, 1), np.abs(np.clip(away, -1, 1)))
        return away, np.ones_like(both) if g + h == size else both

    finite = n / max(n - 1, 1)
    even = np.full(1, (g - h) / size), np.full(1, (g + h) / size)
    pass_one = linear_weights("oc+", levels.n, noise(*even), (even[1] - even[0] ** 2) * finite)
    away, both = shares(pass_one)
    away = np.clip(away, -1, 1)
    between = np.maximum(both - away**2, edge) * finite
    weights = linear_weights(method, levels.n, noise(away, both), between)
    away, both = shares(weights)
    inside = np.clip(away, -1, 1)
    variance = linear_variance(weights, levels.n, noise(inside, both), (both - inside**2) * finite)
    if dependent:
        most = [max(getattr(one, part) - one.neither for one in noises) for part in ("first", "second")]
        noises = tuple(ContrastNoise(one.neither + most[0], one.neither + most[1], one.neither) for one in noises)
    ends = contrast_interval(away, both, weights, levels.n, noises, z)
    return Combined(away[..., 0], np.sqrt(variance[..., 0]), weights[..., 0]), ends


def group_noise(protocols: Sequence[PureProtocol], n_values: int, share: Floats) -> Floats:
    """v_τ(G) of one report, (…, level, 1), where a group of so many values has this share, (…, 1)."""
    variances = [_variances(protocol, n_values) for protocol in protocols]
    noise = np.stack([share * member + (1 - share) * stranger for member, stranger in variances], axis=-2)
    # Where all reports support equally many of the group there is no noise; weights still divide by it.
    return np.maximum(noise, _LEAST)


def _variances(protocol: PureProtocol, g: int) -> tuple[float, float]:
    """Of the number of members supported, over (p − q)²: for a user who holds one of them, and for any other."""
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    single, pair = q * (1 - q), others - q * q
    member = p * (1 - p) + (g - 1) * (single + 2 * (own - p * q) + (g - 2) * pair)
    # Nobody is outside a group of all values.
    stranger = g * (single + (g - 1) * pair) if g < protocol.domain_size else member
    return float(member / (p - q) ** 2), float(stranger / (p - q) ** 2)
