"""Groups of users with channels of their own: pooled supports, rules and their errors, exactly and by simulation."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, logistic_threshold
from pldp.channels.randomness import Keystream
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.mining import Group, Search, mine, mine_groups
from pldp.questions.items.pooling import Weighing, alone, pool, weigher
from pldp.questions.items.rules import rules_of_groups
from pldp.questions.items.transactions import Columns, Counts, Itemsets
from tests.pldp.questions.items.reconstruction import item_matrix
from tests.pldp.questions.items.world import Table, columns, skewed, true_support
from tests.pldp.world import z_bound

SEARCH = Search(0.1, 3, reach=50)
N, REPEATS = 1500, 400


def channel(d: int, epsilon: float) -> ItemChannels:
    return ItemChannels.symmetric((logistic_threshold(Fraction(epsilon)),) * d)


def counting(parts: list[Columns]) -> Callable[[Itemsets], Counts]:
    def count(sets: Itemsets) -> Counts:
        return np.stack([part.count(sets) for part in parts], axis=1)

    return count


@given(st.integers(1, 5), st.floats(0.001, 1.0))
def test_expected_noise_is_the_variance_of_one_report(length: int, support: float) -> None:
    """By all patterns of the report: a share has the whole set, the rest none of its items."""
    channels = ItemChannels((SCALE // 4 * 3, SCALE // 8 * 7, SCALE - SCALE // 9) * 2, (SCALE // 3 * 2,) * 6)
    items = np.arange(length, dtype=np.int32)[None]
    response = channels.responses(items)[0]
    law = [np.ones(1), np.ones(1)]
    for item in range(length):
        matrix = item_matrix(channels, item)
        law = [np.concatenate([own * matrix[x, 0], own * matrix[x, 1]]) for x, own in enumerate(law)]
    variance = [own @ response**2 - (own @ response) ** 2 for own in law]
    np.testing.assert_allclose(
        channels.expected_noise(items, support), (1 - support) * variance[0] + support * variance[1], rtol=1e-9
    )


def test_weights_sum_to_one_and_follow_size_and_noise() -> None:
    channels, n = [channel(4, 0.5), channel(4, 2.0)], np.array([100, 300])
    items = np.array([[0, 1], [1, 2]], dtype=np.int32)
    oc, by_size = (weigher(Weighing(method), channels, n, 0.1)(items) for method in ("oc+", "sum"))
    np.testing.assert_allclose(oc.sum(axis=1), 1)
    np.testing.assert_allclose(by_size, [[0.25, 0.75]] * 2)
    assert (oc[:, 1] > 0.95).all(), "the noise of two items at ε = 0.5 is 300 times that at 2"
    with pytest.raises(ValueError, match=r"'op' is not one of oc\+, sum"):
        Weighing("op")


def test_one_group_is_as_before() -> None:
    table = skewed(800, 5, 3)
    own = channel(5, 1.5)
    reports = own.perturb(columns(table), Keystream.seeded(1))
    once = mine(reports.count, 800, own, SEARCH)
    grouped = mine_groups(counting([reports]), (Group(800, own),), SEARCH)
    for a, b in zip(once, grouped, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_array_equal(a.count, b.count[:, 0])
    noise, support = np.array([[2.0]]), np.array([[0.3]])
    assert pool(support, noise, np.array([50]), alone(np.zeros((1, 1), dtype=np.int32)), 50)[1][0] == (2 / 50) ** 0.5


def draw(table: Table, seed: int, told: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pooled estimates of pairs and a rule, over fresh levels and fresh noise; `told` is what the analyst believes."""
    d, rng = table.shape[1], np.random.default_rng(seed)
    real = [channel(d, 0.8), channel(d, 2.0)]
    believed = [channel(d, 0.8), channel(d, 2.0 * told)]
    found = []
    for repeat in range(REPEATS):
        low = rng.random(len(table)) < 0.7
        low[:2] = [False, True]
        parts = [columns(table[~low]), columns(table[low])]
        stream = Keystream.seeded(seed, repeat)
        reports = [own.perturb(part, stream) for own, part in zip(real, parts, strict=True)]
        groups = [Group(part.n_rows, own) for part, own in zip(parts, believed, strict=True)]
        n = np.array([group.n_rows for group in groups])
        weigh = weigher(Weighing("oc+"), believed, n, 0.2)
        mined = mine_groups(counting(reports), groups, SEARCH, weigh)
        ruled = rules_of_groups(mined, groups, SEARCH, weigh)[0]
        where = [ruled.sides(i) for i in range(len(ruled.items))].index(((0,), (2,)))
        pair = mined[1].items.tolist().index([0, 2])
        found.append(
            [
                mined[0].support[0],
                mined[0].standard_error[0],
                mined[1].support[pair],
                mined[1].standard_error[pair],
                ruled.confidence[where],
                ruled.standard_error[where],
            ]
        )
    values = np.array(found)
    return values[:, 0:2], values[:, 2:4], values[:, 4:6], values


def test_pooled_supports_and_confidences_are_unbiased_with_the_stated_error(seed: int) -> None:
    """Means of 400 repetitions within z of their error; deviations within those of a χ² of as many.

    Levels are drawn afresh every time: the errors hold what choosing other weights than the sizes costs.
    """
    table = skewed(N, 4, 5)
    truth = [true_support(table, (0,)), true_support(table, (0, 2))]
    single, pair, rule, _ = draw(table, seed, told=1.0)
    true = [*truth, truth[1] / truth[0]]
    bound = z_bound(3)
    for estimates, right in zip((single, pair, rule), true, strict=True):
        error = estimates[:, 1].mean()
        # The quotient has a bias of about error²/support², below a tenth of its error here.
        slack = 0.1 * error if right is true[2] else 0.0
        assert abs(estimates[:, 0].mean() - right) < bound * error / REPEATS**0.5 + slack
        spread = estimates[:, 0].std() / error
        assert abs(spread - 1) < bound / (2 * REPEATS) ** 0.5 + 0.05, "errors are themselves estimated"


def test_a_wrong_budget_is_caught(seed: int) -> None:
    table = skewed(N, 4, 5)
    single, _, _, _ = draw(table, seed, told=1.1)
    error = single[:, 1].mean()
    assert abs(single[:, 0].mean() - true_support(table, (0,))) > z_bound(3) * error / REPEATS**0.5
