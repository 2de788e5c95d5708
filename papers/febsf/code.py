"""febsf as its published code computes it, where that differs from its text.

Seen in the code: level reports are SUE bits, not k-RR; estimated level shares are set to zero where negative and scaled
to one, and so are frequencies, of a whole sample and of every level's; the EM runs on each bit alone and maximises a
sum over levels of log-likelihoods, each level with the same weight, so that neither the level reports nor the start
matter; the results are scaled to one. The experiments with two budgets use k-RR for the values. PPDA is not in it:
`ppda_by_report` was found from the printed numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.comparators import APLDP_CHOICES, summed_variance
from pldp.estimate.hidden import level_report
from pldp.estimate.postprocess import rescale
from pldp.estimate.simulate import draw_support
from pldp.papers.febsf.draw import BUDGETS, TWO_BUDGETS, Errors, deal, errors_of

CODE = ", as run"
"""Behind the panels that show what the published code computes, on what was read."""
FULL_JOB = ", all rows"
SHAPES = "Figures 7 and 8"
"""Where the ratios of their numbers stand."""
KRR_LEVELS = "AUEM, k-RR levels"
"""AUEM with the level reports of the text, its estimate scaled as the code does."""
TWICE = ", exponent doubled"
"""Behind a method's name: users spread over the levels by the power law with twice its exponent."""
_LEAST = 1e-6
"""The code's lower bound of a frequency."""
_HALVINGS = 40
_ADAPTIVE = APLDP_CHOICES[:2]
"""k-RR and SUE: febsf says that APLDP chose among these."""


def as_published(
    counts: Counts, shares: Floats, epsilon_p: Fraction, repeats: int, rng: np.random.Generator
) -> dict[str, Errors]:
    k, n_users, truth = counts.size, int(counts.sum()), counts / counts.sum()
    protocols: tuple[PureProtocol, ...] = tuple(BRR.for_budget(k, budget) for budget in BUDGETS)
    dealt = deal(counts, shares, repeats, rng)
    by_level = draw_support(dealt, protocols, rng)
    support, sizes = by_level.sum(axis=-2), dealt.sum(axis=-1)
    bits = BRR.for_budget(len(BUDGETS), epsilon_p)
    reported = bits.sample_support(sizes, rng)
    guessed = rescale(bits.estimate(reported, n_users))
    report = level_report(len(BUDGETS), epsilon_p)
    unbiased = report.estimate(report.sample_support(sizes, rng), n_users)
    adaptive = tuple(min((kind.for_budget(k, budget) for kind in _ADAPTIVE), key=summed_variance) for budget in BUDGETS)
    again = draw_support(dealt, adaptive, rng)
    estimates = {
        "AUEM": rescale(_ratio(support, n_users, protocols, guessed)),
        KRR_LEVELS: rescale(_ratio(support, n_users, protocols, unbiased)),
        "EMOA": em_by_bits(support, n_users, protocols),
        "RCF": _weighted(by_level, sizes, protocols),
        "APLDP": _weighted(again, sizes, adaptive),
    }
    return {name: errors_of(estimate, truth) for name, estimate in estimates.items()}


def with_two_budgets(
    counts: Counts, shares: Floats, epsilon_p: Fraction, repeats: int, rng: np.random.Generator
) -> dict[str, Errors]:
    """Figures 5 and 6: k-RR for values and levels; PBP's public shares are drawn at random."""
    k, n_users, truth = counts.size, int(counts.sum()), counts / counts.sum()
    protocols: tuple[PureProtocol, ...] = tuple(KRR.for_budget(k, budget) for budget in TWO_BUDGETS)
    report = level_report(len(TWO_BUDGETS), epsilon_p)
    dealt = deal(counts, shares, repeats, rng)
    support = draw_support(dealt, protocols, rng).sum(axis=-2)
    reported = report.sample_support(dealt.sum(axis=-1), rng)
    guessed = rescale(report.estimate(reported, n_users))
    public = rng.random((repeats, 1))
    estimates = {
        "AUEM": rescale(_ratio(support, n_users, protocols, guessed)),
        "EMOA": em_by_bits(support, n_users, protocols),
        "PBP": rescale(_ratio(support, n_users, protocols, np.concatenate([public, 1 - public], axis=-1))),
    }
    return {name: errors_of(estimate, truth) for name, estimate in estimates.items()}


def ppda_by_report(counts: Counts, shares: Floats, repeats: int, rng: np.random.Generator, kept: float = 0.5) -> Errors:
    """Every report calibrated by its own number s of ones, as if E s = own + (k − 2·own) q: q̂ = (s − own)/(k − 2·own).

    Its estimate is (b − q̂) / (1 − 2q̂), which goes with 1 / (k − 2s); reports with s = k/2 are left out, the mean is
    scaled to one. With two values only reports of two equal bits are left: exactly an even split.
    """
    k, n_users = counts.size, int(counts.sum())
    q = np.array([BRR.for_budget(k, budget).q for budget in BUDGETS])
    values = np.repeat(np.arange(k), counts)
    users = np.arange(n_users)
    estimates = np.zeros((repeats, k))
    for i in range(repeats):
        flip = q[rng.choice(q.size, size=n_users, p=shares)]
        bits = rng.random((n_users, k)) < flip[:, None]
        bits[users, values] = rng.random(n_users) >= flip
        ones = bits.sum(axis=1)
        apart = k - 2 * ones
        weight = np.divide(1.0, apart, out=np.zeros(n_users), where=apart != 0)
        estimates[i] = (k - 2 * kept) * (weight @ bits) - weight @ (ones - kept)
    return errors_of(estimates / estimates.sum(axis=1, keepdims=True), counts / n_users)


def em_by_bits(support: Counts, n_users: int, protocols: tuple[PureProtocol, ...]) -> Floats:
    """Per value the maximum over x of Σ_l c log(q_l + x d_l) + (n − c) log(1 − q_l − x d_l): concave, so bisected."""
    share = (support / n_users)[..., None]
    q = np.array([protocol.q for protocol in protocols])
    d = np.array([protocol.gap for protocol in protocols])
    low, high = np.full(support.shape, _LEAST), np.ones(support.shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        chance = q + middle[..., None] * d
        rising = (d * (share / chance - (1 - share) / (1 - chance))).sum(axis=-1) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    estimate = (low + high) / 2
    return estimate / estimate.sum(axis=-1, keepdims=True)


def _ratio(support: Counts, n_users: int, protocols: tuple[PureProtocol, ...], shares: Floats) -> Floats:
    """Eq. 5 with these level shares, (repeat, level)."""
    q = shares @ np.array([protocol.q for protocol in protocols])
    gaps = np.array([protocol.gap for protocol in protocols])
    d = np.maximum(shares @ gaps, gaps.min())  # which no mix of levels falls below
    return (support / n_users - q[:, None]) / d[:, None]


def _weighted(by_level: Counts, sizes: Counts, protocols: tuple[PureProtocol, ...]) -> Floats:
    """Every level's estimate made positive and scaled to one, then weighted by n_τ / v_τ."""
    raw = np.stack(
        [
            (by_level[:, level] / np.maximum(sizes[:, level, None], 1) - protocol.q) / protocol.gap
            for level, protocol in enumerate(protocols)
        ],
        axis=-2,
    )
    weight = sizes / np.array([summed_variance(protocol) for protocol in protocols])
    weight = weight / weight.sum(axis=-1, keepdims=True)
    return (weight[..., None] * rescale(raw)).sum(axis=-2)
