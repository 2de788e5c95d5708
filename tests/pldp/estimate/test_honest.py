"""What honest reports can look like: exact tails, at the rate that is stated, whoever holds which value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.krr import KRR
from pldp.channels.protocol import PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.hidden import draw_hidden, level_report
from pldp.estimate.honest import collision, hidden_tails, support_reach, support_tails
from pldp.estimate.simulate import whole_counts

BUDGETS = (Fraction(1, 20), Fraction(1), Fraction(8))
"""A strict level, where p and q are all but equal, a usual one, and one with hardly any noise."""


def refusals(protocol: PureProtocol, n: int, holders: int, alpha: float) -> float:
    """The exact chance that a cell is refused which so many of n people hold: a sum of two binomials, convolved."""
    own = binom.pmf(np.arange(holders + 1), holders, protocol.p)
    others = binom.pmf(np.arange(n - holders + 1), n - holders, protocol.q)
    law = np.convolve(own, others)
    refused = support_tails(np.arange(n + 1), n, protocol.exact_q, protocol.exact_p) < alpha
    return float(law[refused].sum())


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_honest_reports_are_refused_no_more_often_than_stated(name: str, epsilon: Fraction) -> None:
    """Exactly, so without a tolerance: from one person to 200, and nobody, somebody or everybody holds the value."""
    protocol = PROTOCOLS[name].for_budget(5, epsilon)
    for alpha in (0.3, 0.01, 1e-6):
        for n in (1, 2, 7, 50, 200):
            rates = [refusals(protocol, n, holders, alpha) for holders in {0, 1, n // 2, n - 1, n}]
            # Each end has half of alpha; the convolution is of doubles.
            assert max(rates) <= alpha * (1 + 1e-9), (alpha, n)


def test_the_rate_is_used_up() -> None:
    """A bound that refuses nobody would be honest too; with many people the ends come near to theirs."""
    protocol = KRR.for_budget(5, Fraction(1))
    for holders in (0, 20_000):
        assert refusals(protocol, 20_000, holders, 0.01) > 0.0045


@pytest.mark.parametrize("n", [1, 30, 1000, 10**9])
def test_the_reach_ends_where_the_tail_does(n: int) -> None:
    protocol = KRR.for_budget(4, Fraction(1))
    chances = protocol.exact_q, protocol.exact_p
    fewest, most = support_reach(n, *chances, alpha := 1e-7)
    inside = support_tails(np.array([fewest, most]), n, *chances)
    outside = support_tails(np.array([fewest - 1, most + 1]), n, *chances)
    assert (inside >= alpha).all()
    assert (outside < alpha).all()


def test_a_chance_near_one_is_not_lost() -> None:
    """With ε = 40 one in 10¹⁷ says another value: a double of p is 1, and one such would seem impossible."""
    protocol = KRR.for_budget(2, Fraction(40))
    assert protocol.p == 1.0
    (tail,) = support_tails(np.array([999]), 1000, protocol.exact_q, protocol.exact_p)
    assert tail == 1.0  # below one: anybody may hold the other value
    (tail,) = support_tails(np.array([1]), 1000, protocol.exact_q, Fraction(1, 2))
    assert 0 < tail <= 1


def test_kernels_pass_at_the_rate(seed: int) -> None:
    """Through the kernels themselves: a value nobody holds, one that everybody holds, at strict and other levels.

    Each cell is refused with at most α = 1e-4 by the exact test above: of 600 cells 0.06 are expected, and four or more
    have probability below 5e-7.
    """
    refused = 0
    for name, made in PROTOCOLS.items():
        for epsilon in BUDGETS:
            protocol = made.for_budget(4, epsilon)
            for repeat in range(10):
                for n in (3, 400):
                    reports = protocol.perturb(np.zeros(n, dtype=np.uint16), Keystream.seeded(seed, name, repeat, n))
                    tails = support_tails(protocol.support(reports), n, protocol.exact_q, protocol.exact_p)
                    refused += int((tails[:2] < 1e-4).sum())
    assert refused <= 3


@pytest.mark.parametrize("name", PROTOCOLS)
def test_equal_reports_are_no_more_frequent_than_the_bound(name: str) -> None:
    """200,000 pairs of people with one value: the share has a standard error of at most 0.0012, five are 0.006."""
    for size in (1, 2, 3, 9):
        for epsilon in BUDGETS:
            protocol = PROTOCOLS[name].for_budget(size, epsilon)
            reports = protocol.perturb(np.zeros(400_000, dtype=np.uint16), Keystream.seeded(3, name, size))
            equal = (reports[::2] == reports[1::2]).all(axis=1).mean()
            assert equal <= collision(protocol) + 0.006, (size, epsilon)


@pytest.mark.parametrize("name", ["krr", "brr", "oue"])
@pytest.mark.parametrize("epsilon_p", ["0.3", "1", "4"])
def test_hidden_levels_of_honest_people_pass_at_the_rate(name: str, epsilon_p: str) -> None:
    """Nobody or everybody holds a value, and all holders may have chosen the weakest level: a bound, so never above α.

    Of 2,400 cells at α = 0.02, 48 would be expected at most; 92 have probability below 1e-7.
    """
    rng = np.random.default_rng(5)
    protocols = tuple(PROTOCOLS[name].for_budget(4, epsilon) for epsilon in BUDGETS)
    report = level_report(3, Fraction(epsilon_p))
    refused = 0
    for people in ([[300, 0, 0, 0], [100, 0, 0, 0], [50, 0, 0, 0]], [[0, 0, 20, 0], [0, 0, 0, 30], [40, 0, 0, 0]]):
        for counts, told in (draw_hidden(np.array(people), protocols, report, rng) for _ in range(300)):
            refused += int((hidden_tails(counts.sum(axis=0), told, protocols, report) < 0.02).sum())
    assert refused < 92


def test_hidden_levels_do_not_hide_a_flood() -> None:
    """A support that the weakest level alone could give, where a tenth have it; the binomial of that level passes."""
    protocols = tuple(PROTOCOLS["krr"].for_budget(16, Fraction(epsilon)) for epsilon in ("0.5", "1", "4"))
    report, n = level_report(3, Fraction(1)), 20_000
    told = whole_counts(report.q + np.array([0.6, 0.3, 0.1]) * report.gap, n)
    most, least = max(one.exact_p for one in protocols), min(one.exact_q for one in protocols)
    everybody = sum(share * one.p for share, one in zip((0.6, 0.3, 0.1), protocols, strict=True))
    for share, passes in ((everybody, True), (everybody + 0.02, True), (everybody + 0.1, False), (0.7, False)):
        count = np.array([int(share * n)])
        assert support_tails(count, n, least, most)[0] > 1e-8
        assert (hidden_tails(count, told, protocols, report)[0] > 1e-8) == passes
