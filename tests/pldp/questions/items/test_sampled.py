"""Two halves of users, one asked about items and one about sets: pooled supports, covariances, rules."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.krr import KRR
from pldp.channels.randomness import Keystream
from pldp.questions.items.mining import Search
from pldp.questions.items.padding import anything
from pldp.questions.items.pooling import Weighing
from pldp.questions.items.sampled import Half, judge_half, likely, pair_noise, sampled_rules, score_interval
from pldp.questions.items.sampling import SetSampling, held_sets
from pldp.questions.items.transactions import Columns
from tests.pldp.questions.items.world import skewed, true_support
from tests.pldp.world import z_bound

SINGLES = np.arange(4, dtype=np.int32)[:, None]
SETS = [np.array([[0, 1], [0, 2], [1, 2]], dtype=np.int32), np.array([[0, 1, 2]], dtype=np.int32)]
SEARCH = Search(0.01, 3)
LENGTH = 4


def krr(values: int, length: int, epsilon: int) -> SetSampling:
    return SetSampling.for_budget(values, length, Fraction(epsilon), allowed=("krr",))


@pytest.mark.parametrize("length", [2, 5])
def test_the_covariance_of_a_set_and_its_subset_by_all_reports(length: int) -> None:
    """k-RR over four sets and dummies: rows with both, with the subset alone, with neither; every report of each."""
    sampling = krr(4, length, 2)
    protocol = sampling.protocol
    assert isinstance(protocol, KRR)
    size, p, q = protocol.domain_size, protocol.p, protocol.q
    shares = {(0, 1): 0.2, (1,): 0.3, (): 0.5}
    total = 0.0
    for held, share in shares.items():
        places = np.array([*held, *(4 + i for i in range(len(held), length))])
        law = np.full(size, q)
        law += (p - q) * np.bincount(places, minlength=size) / length
        response = (np.eye(size) - q) * length / (p - q)
        mean = law @ response
        total += share * (law @ (response[:, 0] * response[:, 1]) - mean[0] * mean[1])
    np.testing.assert_allclose(pair_noise(sampling, 0.2, 0.5), total, rtol=1e-9)


def test_supports_and_rules_of_two_halves(seed: int) -> None:
    """Means of 200 repetitions, with the halves drawn afresh: unbiased, and as far apart as stated."""
    table = skewed(3000, 4, 11)[:, :4]
    rng, found = np.random.default_rng(seed), []
    items, sets = krr(4, LENGTH, 4), krr(4, LENGTH, 4)
    for repeat in range(200):
        order = rng.permutation(len(table))
        halves = [table[order[:1500]], table[order[1500:]]]
        stream = Keystream.seeded(seed, repeat)
        first = Half((items,), np.array([1500]), _items(items, halves[0], stream)[None])
        second = Half((sets,), np.array([1500]), _sets(sets, halves[1], stream)[None])
        (singles,) = judge_half(first, [SINGLES], 3000, SEARCH, Weighing("oc+"), anything(4))
        longer = judge_half(second, SETS, 3000, SEARCH, Weighing("oc+"), anything(4))
        ruled = {
            (rule.antecedent, rule.consequent): rule
            for rule in sampled_rules((singles, *longer), second, 3000, SEARCH, Weighing("oc+"))
        }
        one, two = ruled[(0,), (1,)], ruled[(0, 2), (1,)]
        row = [(singles.support[0], singles.standard_error[0]), (longer[0].support[0], longer[0].standard_error[0])]
        found.append([*row, *((rule.confidence, rule.standard_error) for rule in (one, two))])
    values = np.array(found)
    s = {own: true_support(table, own) for own in ((0,), (0, 1), (0, 2), (0, 1, 2))}
    truth = [s[0,], s[0, 1], s[0, 1] / s[0,], s[0, 1, 2] / s[0, 2]]
    bound = z_bound(4)
    for column, right in enumerate(truth):
        error = values[:, column, 1].mean()
        slack = 0.1 * error if column > 1 else 0.0  # a quotient's bias, of second order
        assert abs(values[:, column, 0].mean() - right) < bound * error / 200**0.5 + slack
        assert abs(values[:, column, 0].std() / error - 1) < bound / 400**0.5 + 0.05


@pytest.mark.parametrize(("n", "length", "epsilon"), [(150, 8, 20), (60, 4, 14), (1000, 6, 9)])
def test_where_few_reports_decide_intervals_hold_at_every_support(n: int, length: int, epsilon: int) -> None:
    """By the exact law of one item's count in half of a sample; without half a report more 0.85 to 0.92 at least."""
    sampling = krr(6, length, epsilon)
    protocol, counts = sampling.protocol, np.arange(n + 1)
    half = Half((sampling,), np.array([n]), np.zeros((1, 6 + length), dtype=np.int64))
    support = length * (counts / n - protocol.q) / protocol.gap
    search = Search(0.05, 2, population=True)
    low, high = score_interval(half, np.ones(1), support, 2 * n, search)
    for share in np.linspace(0.005, 0.3, 60):
        law = binom.pmf(counts, n, protocol.q + protocol.gap * share / length)
        assert law[(low <= share) & (share <= high)].sum() > 0.95


def _rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([[0], np.cumsum(table.sum(axis=1))]), np.nonzero(table)[1]


def _items(sampling: SetSampling, table: np.ndarray, stream: Keystream) -> np.ndarray:
    return sampling.protocol.support(sampling.perturb(*_rows(table), stream))


def _sets(sampling: SetSampling, table: np.ndarray, stream: Keystream) -> np.ndarray:
    return sampling.protocol.support(sampling.perturb(*held_sets(Columns.of_table(table), SETS), stream))


def test_candidates_come_from_what_may_be_frequent() -> None:
    sampling = krr(4, 1, 6)
    counts = np.array([500, 400, 100, 0, 0])
    half = Half((sampling,), np.array([1000]), counts[None])
    (found,) = judge_half(half, [SINGLES], 1000, Search(0.3, 2), Weighing("sum"), anything(4))
    assert [level.tolist() for level in likely(found, 3, Search(0.3, 2))] == [[[0, 1]]]
    assert likely(found, 3, Search(0.3, 1)) == []
    assert likely(found, 3, Search(0.9, 2)) == []


def test_levels_nobody_chose_drop_out() -> None:
    sampling = krr(4, 1, 6)
    half = Half((sampling, sampling), np.array([0, 10]), np.zeros((2, 5), dtype=np.int64)).chosen()
    assert len(half.samplings) == 1
    assert half.weights(Weighing("oc+"), 0.1).tolist() == [1.0]


@pytest.mark.parametrize("holders", [8, 11, 20])
def test_sets_that_a_handful_of_reports_tell_of_are_covered(holders: int, seed: int) -> None:
    """150 people asked about 64 sets: of eleven holders' set come 0.17 reports. By the law of their count; without half
    a report in the reach 0.88 and 0.84 of eight's and eleven's intervals held. α = 1e-5."""
    sampling, n, repeats = krr(64, 64, 14), 150, 4000
    rng = np.random.default_rng(seed)
    q, gap = sampling.protocol.q, sampling.protocol.gap / 64
    counts = rng.binomial(holders, q + gap, repeats) + rng.binomial(n - holders, q, repeats)
    half = Half((sampling,), np.array([n]), counts[None])
    low, high = score_interval(half, np.ones(1), (counts / n - q) / gap, n, Search(0.05, 2))
    held = np.mean((low <= holders / n) & (holders / n <= high))
    assert held > 0.945 - 4.3 * np.sqrt(0.95 * 0.05 / repeats)
