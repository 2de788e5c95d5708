"""The share of a group of values: its levels combined as those of one merged category.

A group G of g values has the level estimates Σ_{j∈G} f̂_τj. The noise of such a sum is that of the number of members
which one report supports, and this has one law for users inside the group and one for those outside. Where a protocol
flips every bit on its own it is v_τ(G) = Σ_{j∈G} v_τj. Between users, a group is a category like any other:
S² = F(1−F)·n/(n−1) of its whole share F. With these two, weights and variance are those of pldp/combine.py
(docs/methods.md, Groups of values).
sql/65_publish_group_estimate.sql says the same in SQL, for analysts; tests/flows/test_analyst.py compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pldp.combine import Combined, Levels, linear_variance, linear_weights, spread
from pldp.mechanisms.protocol import Floats, PureProtocol

_LEAST = 1e-200


def combine_group(method: str, levels: Levels, members: Sequence[int]) -> Combined:
    """`sum`, `oc` or `oc+` of the group of these cells; arrays lose the dimension of values.

    One group gets one set of weights, where its values, each on its own, have one set each: estimates of groups
    therefore add up exactly only under `sum` and `oc`.
    """
    cells = sorted(set(members))
    if not cells:
        raise ValueError("a group needs at least one value")
    merged = levels.frequencies[..., cells].sum(axis=-1, keepdims=True)
    noise = group_noise(levels, cells)
    pilot = (linear_weights("oc", levels.n, noise, merged[..., 0, :]) * merged).sum(axis=-2)
    weights = linear_weights(method, levels.n, noise, _spread_inside(pilot, levels.n_reports))
    frequency = (weights * merged).sum(axis=-2)
    variance = linear_variance(weights, levels.n, noise, _spread_inside(frequency, levels.n_reports))
    return Combined(frequency[..., 0], np.sqrt(variance[..., 0]), weights[..., 0])


def group_noise(levels: Levels, cells: Sequence[int]) -> Floats:
    """v_τ(G) of one report, (…, level, 1), at each level's own estimate of the group."""
    share = np.clip(levels.frequencies[..., cells].sum(axis=-1), 0, 1)
    member, stranger = np.array([_variances(protocol, len(cells)) for protocol in levels.protocols]).T
    # Where all reports support equally many of the group there is no noise; weights still divide by it.
    return np.maximum(share * member + (1 - share) * stranger, _LEAST)[..., None]


def _variances(protocol: PureProtocol, g: int) -> tuple[float, float]:
    """Of the number of members supported, over (p − q)²: for a user who holds one of them, and for any other."""
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    single, pair = q * (1 - q), others - q * q
    member = p * (1 - p) + (g - 1) * (single + 2 * (own - p * q) + (g - 2) * pair)
    # Nobody is outside a group of all values.
    stranger = g * (single + (g - 1) * pair) if g < protocol.domain_size else member
    return float(member / (p - q) ** 2), float(stranger / (p - q) ** 2)


def _spread_inside(frequency: Floats, n_users: int) -> Floats:
    """S², one user away from 0 and 1, as in `combine_linear`."""
    edge = 1 / max(n_users, 2)
    return spread(np.clip(frequency, edge, 1 - edge), n_users)
