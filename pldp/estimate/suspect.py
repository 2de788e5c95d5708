"""Tests for reports that honest noise does not give: for reports that clients send.

Whatever people answer, two things are known of the reports of one level. How many values a report of independent bits
supports: W = Bernoulli(p) + Binomial(k − 1, q), the same for every value. And how likely the likeliest report is, so
how often one and the same report may stand in n of them. Both tests hold at a stated false alarm, for any answers.
"""

from __future__ import annotations

from math import comb, inf, log

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import Unary
from pldp.estimate.honest import collision


def likeliest(protocol: PureProtocol) -> float:
    """Bound on the probability of the likeliest report, whatever the value: max over z, x of Pr[z|x]."""
    p, q, k = protocol.exact_p, protocol.exact_q, protocol.domain_size
    if isinstance(protocol, Unary):
        return float(max(p, 1 - p)) * float(max(q, 1 - q)) ** (k - 1)
    size = p + (k - 1) * q
    if protocol.free_cells == k - 1 and size.denominator == 1:
        # Every report supports `size` values, and all that support the own one are alike.
        return float(p) / comb(k - 1, int(size) - 1)
    return collision(protocol) ** 0.5  # max ≤ (Σ Pr²)^½


def weight_law(protocol: PureProtocol) -> Floats | None:
    """Pr[W = w], w = 0 … k; None where a report's weight is fixed, or its bits depend on each other."""
    if not isinstance(protocol, Unary):
        return None
    from scipy.stats import binom  # slow to import, and seldom needed

    others = binom.pmf(np.arange(protocol.domain_size), protocol.domain_size - 1, protocol.q)
    law: Floats = np.zeros(protocol.domain_size + 1)
    law[:-1] += (1 - protocol.p) * others
    law[1:] += protocol.p * others
    return law


def weight_tail(weights: Counts, law: Floats) -> float:
    """Bound on the probability of counts of weights as far from the law as the farthest of them: Bonferroni over exact
    two-sided binomial tails."""
    from scipy.stats import binom  # slow to import, and seldom needed

    n = int(weights.sum())
    # Rounding leaves a law of 1 + 1e-16 at its peak.
    chances = np.clip(law, 0.0, 1.0)
    above, below = binom.sf(weights - 1, n, chances), binom.cdf(weights, n, chances)
    return float(min(1.0, len(law) * 2 * np.minimum(above, below).min()))


def repeat_tail(repeats: int, n: int, peak: float, ratio: float) -> float:
    """Bound on the probability that any report stands at least `repeats` times among n honest ones.

    With u_z = max over x of Pr[z|x] ≤ `peak` the count of z is at most Binomial(n, u_z), and Σ_z u_z ≤ `ratio`, the
    worst ratio of the protocol. Beyond twice the mean a binomial tail grows faster than its chance, so the sum over all
    z is at most ratio / peak of the likeliest one's.
    """
    if repeats < 2 * n * peak + 2:
        return 1.0
    from scipy.stats import binom  # slow to import, and seldom needed

    exponent = float(binom.logsf(repeats - 1, n, peak))
    return 0.0 if exponent == -inf else float(np.exp(min(0.0, exponent + log(ratio) - log(peak))))


def most_repeats(n: int, peak: float, ratio: float, alpha: float) -> int:
    """The largest number of equal reports that passes at alpha."""
    low, high = 1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if repeat_tail(middle, n, peak, ratio) >= alpha else (low, middle)
    return low
