"""The share of a group of values: its levels combined as those of one merged category.

A group G of g values has the level estimates Σ_{j∈G} f̂_τj. Unary encodings flip every bit on its own, so their noise
adds: v_τ(G) = Σ_{j∈G} v_τj. Between users, a group is a category like any other: S² = F(1−F)·n/(n−1) of its whole
share F. With these two, weights and variance are those of pldp/combine.py (docs/methods.md, Groups of values).
sql/65_publish_group_estimate.sql says the same in SQL, for analysts; tests/flows/test_analyst.py compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pldp.combine import Combined, Levels, linear_variance, linear_weights, spread
from pldp.protocol import Floats


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
    """v_τ(G) of one report, (…, level, 1), at each level's own estimate: what `level_estimates` publishes."""
    if any(protocol.free_cells != protocol.domain_size for protocol in levels.protocols):
        raise ValueError("the noise of these values is not independent: their variances do not add up")
    inside = np.clip(levels.frequencies, 0, 1)
    per_cell = [protocol.noise_variance(inside[..., i, :]) for i, protocol in enumerate(levels.protocols)]
    return np.stack(per_cell, axis=-2)[..., cells].sum(axis=-1, keepdims=True)


def _spread_inside(frequency: Floats, n_users: int) -> Floats:
    """S², one user away from 0 and 1, as in `combine_linear`."""
    edge = 1 / max(n_users, 2)
    return spread(np.clip(frequency, edge, 1 - edge), n_users)
