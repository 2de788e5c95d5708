"""What the literature does instead, for evaluations: RCF, APLDP, PPDA, PBP and one budget for everybody.

Counts may have leading dimensions for repetitions; the last are (level, value) or (value).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import BRR, OUE
from pldp.estimate.combine import Levels, combine_linear, noise_variances

APLDP_CHOICES: tuple[type[PureProtocol], ...] = (KRR, BRR, OUE)


def rcf(levels: Levels) -> Floats:
    """RCF's combination: one weight a level, ω_τ ∝ n_τ / (1 − Σ_j p_j² + Σ_j v_τ(p_j)), for SUE Σ_j v = k v(ε_τ).

    The denominator is n_τ times the summed variance against a population behind the users; p comes from a first pass.
    """
    pilot = np.clip(combine_linear("oc", levels).frequency, 0, 1)
    between = (pilot * (1 - pilot)).sum(axis=-1, keepdims=True)
    return _combine(levels, noise_variances(levels.protocols, pilot).sum(axis=-1) + between)


def apldp(levels: Levels) -> Floats:
    """APLDP's combination: weights inverse to the summed noise of a level, which may have any protocol."""
    return _combine(levels, np.array([summed_variance(protocol) for protocol in levels.protocols]))


def _combine(levels: Levels, variance: Floats) -> Floats:
    raw = levels.n / variance
    weights = raw / raw.sum(axis=-1, keepdims=True)
    combined: Floats = (weights[..., None] * levels.frequencies).sum(axis=-2)
    return combined


def summed_variance(protocol: PureProtocol) -> float:
    """Σ_j v(f_j) of one report: linear in f, so any f that sums to one gives it."""
    size = protocol.domain_size
    return float(protocol.noise_variance(np.full(size, 1 / size)).sum())


def apldp_protocols(domain_size: int, budgets: Sequence[Fraction]) -> tuple[PureProtocol, ...]:
    """Per level the protocol of least summed variance among k-RR, SUE and OUE."""
    offers = [[kind.for_budget(domain_size, budget) for kind in APLDP_CHOICES] for budget in budgets]
    return tuple(min(offer, key=summed_variance) for offer in offers)


def ppda(support: Counts, zeros: Counts, n: int, spare: int) -> Floats:
    """PPDA as inferred from febsf: `spare` bits known to be zero ride along; their mean is q̂.

    p̂ = (c/n − q̂)/(1 − 2q̂). More spare bits estimate q better, and reveal the user's level better.
    """
    q = (zeros / (n * spare))[..., None]
    estimate: Floats = (support / n - q) / (1 - 2 * q)
    return estimate


def draw_ppda(
    true_counts: Counts, protocols: tuple[PureProtocol, ...], spare: int, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Support over all levels, and how many spare bits were set; (…, value) and (…)."""
    support = sum(protocol.sample_support(true_counts[..., i, :], rng) for i, protocol in enumerate(protocols))
    q = np.array([protocol.q for protocol in protocols])
    zeros = rng.binomial(spare * true_counts.sum(axis=-1), q).sum(axis=-1)
    return np.asarray(support), zeros


def pbp(support: Counts, n: int, protocols: tuple[PureProtocol, ...], shares: Floats) -> Floats:
    """PBP as inferred from febsf: Eq. 3 with published level shares, which need not be the true ones."""
    p = float(shares @ np.array([protocol.p for protocol in protocols]))
    q = float(shares @ np.array([protocol.q for protocol in protocols]))
    return (support / n - q) / (p - q)


def uniform_protocol(protocols: tuple[PureProtocol, ...], which: Literal["strictest", "weakest"]) -> PureProtocol:
    """One budget for everybody: the strictest level's keeps every promise, the weakest one's none but its own."""
    ordered = sorted(protocols, key=lambda protocol: protocol.worst_ratio)
    return ordered[0] if which == "strictest" else ordered[-1]
