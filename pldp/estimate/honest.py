"""What reports of people who follow the plan can look like, whatever their values: for reports that clients send.

A report supports a given value with probability q (somebody else's value) to p (the own one), independently of all
others. So of n reports the number c that support it lies between a binomial (n, q) and a binomial (n, p), in the sense
that Pr[c ≥ t] is largest when everybody holds the value and Pr[c ≤ t] when nobody does. Both tails are exact.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol

_EXPONENTS = np.geomspace(1e-6, 50, 400)
"""Of Chernoff's bound, which holds at each of them."""


def support_tails(counts: Counts, n: int, least: Fraction, most: Fraction) -> Floats:
    """Bound on the probability of a support as far out as this, by cell, if each report supports it with `least` to
    `most`; on either side.

    An estimate (c/n − q) / (p − q) above 1 or below 0 has a small one if honest noise cannot explain it.
    """
    from scipy.stats import binom  # slow to import, and seldom needed

    # 1 − p is taken exactly: a double of p near 1 would have lost it.
    above = binom.cdf(n - counts, n, float(1 - most))
    below = binom.cdf(counts, n, float(least))
    tails: Floats = np.minimum(1.0, 2 * np.minimum(above, below))
    return tails


def support_reach(n: int, least: Fraction, most: Fraction, alpha: float) -> tuple[int, int]:
    """The smallest and the largest support that have a tail of at least alpha."""
    from scipy.stats import binom  # slow to import, and seldom needed

    fewest = int(binom.ppf(alpha / 2, n, float(least)))
    return fewest, n - int(binom.ppf(alpha / 2, n, float(1 - most)))


def hidden_tails(counts: Counts, reported: Counts, protocols: tuple[PureProtocol, ...], report: PureProtocol) -> Floats:
    """The same where levels are hidden, by cell: `told` is how many told each level, by `report`.

    A cell's support is at most what it is if everybody holds the value, Σ p_l over the levels chosen, of which the
    levels told say without bias what it comes to: P(b) = Σ_l p_l (1{b = l} − q_r) / (p_r − q_r). So 1{supports} − P(b)
    has mean 0 or less, however the choice of a level depends on the value; likewise Q(b) − 1{supports} with q_l.
    Chernoff: Pr[Σ ≥ t] ≤ e^(−st) (max_l E e^(s·))^n, the report and the level told being independent given the level.
    """
    from scipy.special import logsumexp  # slow to import, and seldom needed

    t, n, s = len(protocols), int(reported.sum()), _EXPONENTS
    telling = np.full((t, t), report.q) + np.eye(t) * report.gap
    bounds = []
    for side, chances in ((1, [one.p for one in protocols]), (-1, [one.q for one in protocols])):
        mean = (np.array(chances) - report.q * sum(chances)) / report.gap  # by level told
        held = np.log1p(np.array(chances) * np.expm1(side * s)[:, None])
        growth = (held + logsumexp(-side * s[:, None, None] * mean, b=telling, axis=2)).max(axis=1)
        away = side * (counts - reported @ mean)
        bounds.append(np.min(n * growth - s * away[:, None], axis=1))
    tails: Floats = np.minimum(1.0, 2 * np.exp(np.minimum(0.0, np.minimum(*bounds))))
    return tails


def collision(protocol: PureProtocol) -> float:
    """Bound on the probability that two honest reports are equal, whatever their values.

    Of all pairs of values Σ_z Pr[z|x] Pr[z|x′] is largest at x = x′ (Cauchy–Schwarz; all values are alike to a pure
    protocol), between different protocols at most the larger of theirs. Equal reports support the same values, so for
    any value both do or neither does. Where every report supports w values, they share each of them:
    Pr[equal] ≤ Σ_v Pr[both support v] / w.
    """
    p, q, k = protocol.exact_p, protocol.exact_q, protocol.domain_size
    bounds = [p**2 + (1 - p) ** 2]
    if k > 1:
        bounds.append(q**2 + (1 - q) ** 2)
        if protocol.free_cells == k - 1:
            bounds.append((p**2 + (k - 1) * q**2) / (p + (k - 1) * q))
    return float(min(bounds))
