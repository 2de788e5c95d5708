"""Tests of cumulative shares, enumerated: no side errs by more than it may, however rarely reports are flipped."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.combine import Levels
from pldp.estimate.invert import Cover
from pldp.questions.histograms.cumulative import edge_tests

SIDE = 0.025
SURVEYS = [
    # people by level, share of the budget, values, edge, probability
    ((401,), ("1",), 4, 3, 0.99),
    ((401,), ("1",), 4, 1, 0.1),
    ((1001,), ("1",), 8, 4, 0.25),
    ((3001,), ("1",), 8, 1, 0.001),
    ((174, 227), ("1/2", "1"), 4, 3, 0.99),
    ((160, 241), ("1/3", "1"), 5, 1, 0.01),
]


def levels_of(sizes: tuple[int, ...], protocols: tuple[KRR, ...]) -> Levels:
    """Nothing in the tests looks at estimates."""
    nothing = np.zeros((len(sizes), protocols[0].domain_size))
    return Levels(nothing, np.array(sizes), protocols)


def law(protocol: KRR, people: int, holders: int, group: int) -> Floats:
    """Chances of how many reports support a group of values that so many people hold."""
    hit, miss = float(protocol.exact_p + (group - 1) * protocol.exact_q), float(group * protocol.exact_q)
    held = binom.pmf(np.arange(holders + 1), holders, hit)
    return np.convolve(held, binom.pmf(np.arange(people - holders + 1), people - holders, miss))


def misses(
    sizes: tuple[int, ...], protocols: tuple[KRR, ...], group: int, holders: int, weights: Floats, limit: float
) -> tuple[float, float]:
    """Chances that the combined share of the group is at least, or at most, the limit; holders dealt blindly."""
    total, above, below = sum(sizes), 0.0, 0.0
    deals = [(holders,)] if len(sizes) == 1 else [(m, holders - m) for m in range(holders + 1)]
    for deal in deals:
        chance = 1.0 if len(sizes) == 1 else float(hypergeom.pmf(deal[0], total, holders, sizes[0]))
        if chance < 1e-9:
            continue
        laws = [law(*one, group) for one in zip(protocols, sizes, deal, strict=True)]
        shares = [
            w * (np.arange(size + 1) / size - group * one.q) / one.gap
            for w, size, one in zip(weights, sizes, protocols, strict=True)
        ]
        estimate, mass = shares[0], laws[0]
        for more, chances in zip(shares[1:], laws[1:], strict=True):
            estimate, mass = np.add.outer(estimate, more).ravel(), np.outer(mass, chances).ravel()
        above += chance * float(mass[estimate >= limit - 1e-12].sum())
        below += chance * float(mass[estimate <= limit + 1e-12].sum())
    return above, below


def worst(survey: tuple[tuple[int, ...], tuple[str, ...], int, int, float], budget: float, shorter: float) -> float:
    """The larger chance of the two sides of one test, its reach without so many reports' worth."""
    sizes, parts, values, edge, probability = survey
    protocols = tuple(KRR.for_budget(values, Fraction(str(budget)) * Fraction(part)) for part in parts)
    tests = edge_tests(levels_of(sizes, protocols), (probability,), "sum", Cover())
    weights, reach = tests.weights[:, edge - 1, 0], float(tests.reach[edge - 1, 0])
    step = max(w / (n * one.gap) for w, n, one in zip(weights, sizes, protocols, strict=True))
    reach -= shorter * step
    total, below = sum(sizes), edge <= values - edge
    group, share = (edge, probability) if below else (values - edge, 1 - probability)
    # Just too few below the edge for the quantile to lie there, and just enough.
    short, enough = ceil(total * probability - 1e-9) - 1, ceil(total * probability - 1e-9)
    few, many = (short, enough) if below else (total - enough, total - short)
    high = misses(sizes, protocols, group, few, weights, share + reach)[0]
    low = misses(sizes, protocols, group, many, weights, share - reach)[1]
    return max(high, low)


@pytest.mark.parametrize("survey", SURVEYS, ids=[f"{sum(s[0])} people, {len(s[0])} levels, {s[4]:g}" for s in SURVEYS])
def test_no_side_of_a_test_errs_by_more_than_it_may(
    survey: tuple[tuple[int, ...], tuple[str, ...], int, int, float],
) -> None:
    budgets: Counts | Floats = np.round(np.arange(1, 16, 0.25 if len(survey[0]) == 1 else 1.5), 2)
    assert max(worst(survey, float(budget), 0) for budget in budgets) <= SIDE


def test_by_a_normal_law_alone_a_side_errs_six_times_as_often() -> None:
    found = [worst(survey, budget, 1) for survey, budget in product(SURVEYS[:1], (7.76, 6.683))]
    assert max(found) > 6 * SIDE
