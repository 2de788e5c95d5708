"""Does the data contradict the declared Γ? A test for a release that states how far choices may depend on values.

If Γ holds, then for every level τ and value, f_τ the value's share at the level and f its share of all,

    f_τ ≤ Γ f,    f_τ ≥ f/Γ,    1 − f_τ ≤ Γ (1 − f),    1 − f_τ ≥ (1 − f)/Γ.

Each says that a linear combination of the levels' estimates has a mean of at most zero: of f̂_τ − Γ Σ π_σ f̂_σ, and so
on. The largest excess over all levels, values and four bounds is judged, times their number (Bonferroni). Only a large
departure from Γ = 1 can be seen (docs/intervals.md has figures): that nothing contradicts Γ does not show that it
holds, and the interval does not rest on this test.
"""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.checks import homogeneity
from pldp.estimate.combine import Levels, combine_linear
from pldp.estimate.distributions import norm
from pldp.estimate.guarded import Noise

_LEAST_HOLDERS = 3.0


def agreement(levels: Levels, dependence: float | None) -> Floats:
    """p-value of what the spec declares; where it is `unknown` there is nothing to contradict.

    At Γ = 1 the χ² that all levels estimate one histogram sees other departures than the largest excess, with few
    values more: both are looked at, each at half the level.
    """
    if dependence is None:
        return np.ones(levels.frequencies.shape[:-2])
    excess = contradiction(levels, dependence)
    if dependence > 1:
        return excess
    pooled = combine_linear("oc+", levels).frequency
    return np.minimum(1.0, 2 * np.minimum(excess, homogeneity(levels, pooled)))


def contradiction(levels: Levels, gamma: float) -> Floats:
    """The p-value of the declared Γ, for leading dimensions of repetitions: below α in at most a share α of releases in
    which Γ holds.

    A mean of sums of bounded terms has tails that are heavier than normal where reports are few: the excess D counts
    as z = D/√(V + M·D/3), M the most that one report can move it (the exponent of Bernstein's inequality).
    """
    if levels.n.size < 2:
        return np.ones(levels.frequencies.shape[:-2])
    share = levels.n / levels.n_reports
    edge = min(_LEAST_HOLDERS / levels.n_reports, 0.5)
    pooled = np.clip(combine_linear("oc+", levels).frequency, edge, 1 - edge)
    worst = [_scores(levels, share, pooled, gamma, *bound) for bound in ((1, 1), (-1, 1), (1, -1), (-1, -1))]
    scores = np.max(worst, axis=0)
    flat = scores.reshape(*scores.shape[:-2], -1)
    comparisons = 4 * flat.shape[-1]
    return np.minimum(1.0, comparisons * norm.sf(flat.max(axis=-1)))


def _scores(levels: Levels, share: Floats, pooled: Floats, gamma: float, side: int, holders: int) -> Floats:
    """z of one of the four bounds, (…, level, value): `side` 1 is the upper one, `holders` −1 that of the others."""
    n, noise = levels.n.astype(np.float64), Noise.of(levels.protocols)
    factor = gamma if side == 1 else 1 / gamma
    estimates = levels.frequencies if holders == 1 else 1 - levels.frequencies
    common = pooled if holders == 1 else 1 - pooled
    total = (share[:, None] * estimates).sum(axis=-2, keepdims=True)
    excess = side * (estimates - factor * total)
    # Variances under the bound itself: the level at Γ f, the others at f.
    at_level = np.clip(factor * common, 0, 1)

    def per_report(frequency: Floats) -> Floats:
        held = frequency if holders == 1 else 1 - frequency
        return noise.at(held[..., None, :]) + (held * (1 - held))[..., None, :]

    tested, other = per_report(at_level) / n[:, None], per_report(common) / n[:, None]
    level_variance = (1 - factor * share[:, None]) ** 2 * tested
    all_others = (factor * share[:, None]) ** 2 * other
    variance = level_variance + all_others.sum(axis=-2, keepdims=True) - all_others
    reach = 1 / (n * np.array([one.gap for one in levels.protocols]))
    tops = factor * share * reach
    largest = np.array([max(abs(1 - factor * share[i]) * reach[i], *np.delete(tops, i)) for i in range(n.size)])
    positive = np.maximum(excess, 0.0)
    return np.asarray(positive / np.sqrt(variance + largest[:, None] * positive / 3))
