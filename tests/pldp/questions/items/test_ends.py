"""Intervals of items by themselves hold the truth, also of items that hardly anybody has: by exact laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from pldp.channels.krr import KRR
from pldp.estimate.simulate import whole_counts
from pldp.questions.items.ends import leaning, score_ends, single_ends
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.values import ValueChannel


def _values(size: int, epsilon: str) -> OneValue:
    made = ValueChannel.krr(size, Fraction(epsilon))
    return OneValue(redraw=made.redraw, mass=made.mass)


def _bits(size: int, epsilon: str) -> Bits:
    keep = int(2**64 / (1 + np.exp(-float(Fraction(epsilon)) / 2)))
    return Bits(keep_zero=(keep,) * size, keep_one=(keep,) * size)


@pytest.mark.parametrize("epsilon", ["1", "3", "5", "7", "9", "14"])
@pytest.mark.parametrize(("size", "users"), [(5, 350), (60, 350), (60, 5000)])
@pytest.mark.parametrize("kind", ["values", "bits"])
@pytest.mark.parametrize("held", [0, 1, 3, 10, 100])
def test_rare_items_are_held_as_often_as_intervals_say(
    kind: str, size: int, users: int, epsilon: str, held: int
) -> None:
    """About the estimate, without half a report: 0.85 of three people among 350 (60 values, ε = 8)."""
    channel = _values(size, epsilon) if kind == "values" else _bits(size, epsilon)
    if isinstance(channel, OneValue):
        q, p = channel.kernel.matrix[1, 0], channel.kernel.matrix[0, 0]
    else:
        q = channel.kernel.false_one[0]
        p = q + channel.kernel.gap[0]
    counts = np.arange(users + 1)
    law = np.convolve(binom.pmf(counts, held, p), binom.pmf(counts, users - held, q))[: users + 1]
    support = (counts / users - q) / (p - q)
    others = np.full((counts.size, size), (1 - held / users) / (size - 1))
    covered = 0.0
    for count in np.flatnonzero(law > 1e-9):
        estimates = others[count].copy()
        estimates[0] = support[count]
        low, high = single_ends(estimates, [channel], np.array([users]), np.ones((size, 1)), 0.95, False)
        covered += law[count] * (low[0] <= held / users <= high[0])
    assert covered > 0.94


@pytest.mark.parametrize("gamma", [1.3, 2.0, 1e12])
def test_holders_lean_as_far_as_gamma_allows(gamma: float) -> None:
    """Against the linear program: the most noise that shares by level may make, 1/Γ ≤ ρ ≤ Γ and Σ πρ = 1."""
    n, weights = np.array([70, 200, 730]), np.array([[0.07, 0.2, 0.73], [0.2, 0.3, 0.5]])
    none, whole = np.array([[3.0, 1.0, 0.5], [0.2, 2.0, 0.1]]), np.array([[9.0, 1.2, 0.4], [1.2, 5.0, 0.3]])
    _, worst = leaning((none, whole), n, weights, gamma)
    parts = weights**2 / n
    for row in range(2):
        more = parts[row] * (whole[row] - none[row])
        bounds = [(1 / gamma, min(gamma, 1e6))] * 3
        best = linprog(-more, A_eq=[(n / n.sum()).tolist()], b_eq=[1.0], bounds=bounds)
        most = more @ np.asarray(best.x)
        np.testing.assert_allclose((parts[row] * (worst[row] - none[row])).sum(), most, rtol=1e-6)
    for kept, alone in ((n, weights), (np.array([1000]), np.ones((2, 1)))):
        _, same = leaning((none[:, : kept.size], whole[:, : kept.size]), kept, alone, gamma if kept.size == 1 else 1.0)
        np.testing.assert_array_equal(same, whole[:, : kept.size])


@pytest.mark.parametrize(("size", "users", "holders"), [(40, 2000, 460), (200, 5000, 1000)])
def test_holders_who_crowd_into_the_strictest_level_are_covered(size: int, users: int, holders: int, seed: int) -> None:
    """Twice as many where a quarter of ε = 6 is spent; by the noise of all people alike 0.923 and 0.930 held."""
    rng, repeats, z = np.random.default_rng(seed), 20_000, 4.3
    sizes = whole_counts(np.array([0.23, 0.77]), users)
    protocols = [KRR.for_budget(size, Fraction(epsilon)) for epsilon in ("3/2", "6")]
    q, gap = (np.array([getattr(one, part) for one in protocols]) for part in ("q", "gap"))
    there = round(2 * holders * sizes[0] / users)
    held = np.array([there, holders - there])
    counts = rng.binomial(held, q + gap, (repeats, 2)) + rng.binomial(sizes - held, q, (repeats, 2))
    weights = sizes / users
    support, noise = (counts / sizes - q) / gap @ weights, (q * (1 - q) / gap**2, (q + gap) * (1 - q - gap) / gap**2)
    covered = []
    for gamma in (1.0, 2.0):
        low, high = score_ends(support, noise, sizes, weights, 0.95, n_users=users, gamma=gamma)
        covered.append(np.mean((low <= holders / users) & (holders / users <= high)))
    error = np.sqrt(0.95 * 0.05 / repeats)
    assert covered[0] < 0.94 - z * error, "this test can fail"
    assert covered[1] > 0.95 - z * error
