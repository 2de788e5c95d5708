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


def bounded_weight_tail(weights: Counts, fewest: Floats, most: Floats) -> float:
    """The same where a report's bits depend on what its sender holds: each is 1 with a chance from `fewest` to `most`.

    So a weight lies, in the sense of its tails, between the sums of independent bits with these chances, and the number
    of reports of at most w, or at least w, is at most a binomial: Bonferroni over all w and both sides.
    """
    from scipy.stats import binom  # slow to import, and seldom needed

    n = int(weights.sum())
    few, many = np.cumsum(_sum_law(fewest)), np.cumsum(_sum_law(most)[::-1])[::-1]
    light, heavy = np.cumsum(weights), np.cumsum(weights[::-1])[::-1]
    below, above = (
        float(np.min(binom.sf(counts - 1, n, np.clip(chances, 0.0, 1.0))))
        for counts, chances in ((light, few), (heavy, many))
    )
    return float(min(1.0, 2 * len(weights) * min(below, above)))


def _sum_law(chances: Floats) -> Floats:
    """Of the number of independent events that happen."""
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, (1 - chance, chance))
    return law


def repeat_tail(repeats: int, n: int, peak: float) -> float:
    """Bound on the probability that any report stands at least `repeats` times among n honest ones, whatever they hold.

    The count of a report z is a sum of n independent events with chances Pr[z|x_i] ≤ `peak`; with their mean fixed its
    upper tail is at most that of a binomial (Hoeffding 1956). Over all z these means sum to n. Beyond twice the mean a
    binomial tail grows faster than its chance, so the sum of all tails is largest where 1/peak reports have all of it.
    """
    if repeats < 2 * n * peak + 2:
        return 1.0
    from scipy.stats import binom  # slow to import, and seldom needed

    exponent = float(binom.logsf(repeats - 1, n, peak))
    return 0.0 if exponent == -inf else float(np.exp(min(0.0, exponent - log(peak))))


def most_repeats(n: int, peak: float, alpha: float) -> int:
    """The largest number of equal reports that passes at alpha."""
    low, high = 1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if repeat_tail(middle, n, peak) >= alpha else (low, middle)
    return low
