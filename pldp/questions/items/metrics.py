"""What aprr measures: degrees of privacy (Eq. 6–11), and how many frequent sets are missed or made up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


def revealed(support: float, keep_one: float, keep_zero: float | None = None) -> float:
    """R₁ of aprr Eq. 7: the chance that a "1" is recognised from its report, by an item of this support.

    Eq. 7 has one p for both values; with another p₀ for "0" the shares of true ones among reports of 1 and 0 change:
    R₁ = p₁² s / (p₁ s + (1 − p₀)(1 − s)) + (1 − p₁)² s / ((1 − p₁) s + p₀ (1 − s)).
    """
    p, s = keep_one, support
    zero = p if keep_zero is None else keep_zero
    ones, zeros = p * s + (1 - zero) * (1 - s), (1 - p) * s + zero * (1 - s)
    return (p * p * s / ones if ones else 0.0) + ((1 - p) ** 2 * s / zeros if zeros else 0.0)


@dataclass(frozen=True)
class Privacy:
    """aprr Eq. 8–11, as shares of one."""

    least: float
    most: float
    average: float
    overall: float


def privacy(
    support: float,
    keep_one: Sequence[float],
    shares: Sequence[float],
    keep_zero: Sequence[float] | None = None,
    mean_keep: float | None = None,
) -> Privacy:
    """aprr Eq. 6 for each level and its summaries.

    Without `keep_zero` as published; with it corrected for two probabilities. `mean_keep` is p̄ of Eq. 11: by default
    the mean over levels of both values' probabilities, as aprr 6.1 takes it.
    """
    if abs(sum(shares) - 1) > 1e-9 or len(shares) != len(keep_one):
        raise ValueError("shares must be one for each level and sum to one")
    zeros = list(keep_one) if keep_zero is None else list(keep_zero)
    degrees = [
        1 - revealed(support, one, None if keep_zero is None else zero)
        for one, zero in zip(keep_one, zeros, strict=True)
    ]
    if mean_keep is None:
        mean_keep = sum(share * (one + zero) / 2 for share, one, zero in zip(shares, keep_one, zeros, strict=True))
    average = sum(share * degree for share, degree in zip(shares, degrees, strict=True))
    return Privacy(min(degrees), max(degrees), average, 1 - revealed(support, mean_keep))


def identity_errors(true: Collection[tuple[int, ...]], mined: Collection[tuple[int, ...]]) -> tuple[float, float]:
    """θ⁺ and θ⁻ (aprr Definition 7): sets made up and sets missed, by the number of truly frequent ones.

    aprr's text and the captions of its Figure 3 exchange the two; this is the definition.
    """
    truth, estimated = set(true), set(mined)
    if not truth:
        raise ValueError("no set is truly frequent, so identity errors have no meaning; lower the minimum support")
    return len(estimated - truth) / len(truth), len(truth - estimated) / len(truth)
