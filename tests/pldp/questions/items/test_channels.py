"""Channels: their exact ε by enumeration, aprr's Table 2 and what is true of it, drawing, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, within
from pldp.channels.krr import KRR
from pldp.channels.randomness import Keystream
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import level_budgets
from pldp.questions.items.transactions import Columns
from pldp.questions.items.values import ValueChannel, exact_epsilon
from tests.pldp.questions.items.world import EPSILON, THRESHOLDS, basket, basket_channels, skewed
from tests.pldp.world import BUDGETS, z_bound

PUBLISHED = ((0.9168, 0.7685, 2.224), (0.8581, 0.7109, 1.612), (0.7685, 0.6457, 1.026), (0.6457, 0.5744, 0.483))
LEVELS = st.lists(st.integers(0, 4), min_size=2, max_size=6)


def brute_ratio(table: list[list[Fraction]]) -> Fraction | None:
    """From the definition: every report, every two truths."""
    worst = Fraction(0)
    for column in zip(*table, strict=True):
        for top, bottom in product(column, repeat=2):
            if top and not bottom:
                return None
            worst = max(worst, top / bottom) if bottom else worst
    return worst


def law(channel: ValueChannel) -> list[list[Fraction]]:
    return [[channel.probability(x, y) for y in range(channel.size)] for x in range(channel.size)]


@pytest.mark.parametrize(("level", "zero", "one", "epsilon"), [(i + 1, *row) for i, row in enumerate(PUBLISHED)])
def test_table_2_and_its_exact_epsilon(level: int, zero: float, one: float, epsilon: float) -> None:
    channel = ItemChannels.aprr([level], 5, EPSILON)
    assert round(channel.keep_zero[0] / SCALE, 4) == zero
    assert round(channel.keep_one[0] / SCALE, 4) == one
    assert round(exact_epsilon(channel.ratios[0]), 3) == epsilon
    budget = level_budgets(5, EPSILON)[level]
    assert budget is not None
    # What "1" was promised is less than what it gets; the worst ratio pairs p₁ with 1 − p₀.
    assert exact_epsilon(channel.ratios[0]) > float(budget / 3) * 1.5


def test_a_row_of_basket_spends_more_than_nine_or_without_bound() -> None:
    channels = basket_channels(basket())
    perturbed = [item for item in range(11) if channels.keep_one[item] < SCALE]
    assert len(perturbed) == 7
    assert round(exact_epsilon(channels.row_ratio(perturbed)), 2) == 10.21
    assert channels.row_ratio() is None
    assert channels.row_epsilon == math.inf


@settings(max_examples=40)
@given(st.lists(st.tuples(THRESHOLDS, THRESHOLDS), min_size=1, max_size=3))
def test_a_rows_ratio_is_that_of_all_reports_and_rows(keeps: list[tuple[int, int]]) -> None:
    channels = ItemChannels(tuple(a for a, _ in keeps), tuple(b for _, b in keeps))
    sets = list(product((0, 1), repeat=len(keeps)))
    chance = [
        [[Fraction(z, SCALE), 1 - Fraction(z, SCALE)], [1 - Fraction(o, SCALE), Fraction(o, SCALE)]] for z, o in keeps
    ]
    table = [[math.prod((chance[j][x[j]][y[j]] for j in range(len(x))), start=Fraction(1)) for y in sets] for x in sets]
    assert channels.row_ratio() == brute_ratio(table)


@settings(max_examples=60)
@given(LEVELS, BUDGETS.filter(lambda e: Fraction(1, 1000) < e < 60))
def test_a_values_ratio_is_that_of_all_reports(levels: list[int], epsilon: Fraction) -> None:
    channel = ValueChannel.aprr(levels, 5, epsilon)
    assert channel.worst_ratio == brute_ratio(law(channel))
    pairs = [channel.pair_ratio(x, z) for x in range(channel.size) for z in range(channel.size) if x != z]
    finite = [pair for pair in pairs if pair is not None]
    assert channel.worst_ratio == (max(finite) if len(finite) == len(pairs) else None)
    for row in law(channel):
        assert sum(row) == 1


@settings(max_examples=40)
@given(
    st.integers(2, 6)
    .flatmap(
        lambda k: st.tuples(
            st.lists(st.integers(1, SCALE - 1), min_size=k, max_size=k),
            st.lists(st.integers(0, 5), min_size=k, max_size=k),
        )
    )
    .filter(lambda pair: sum(pair[1]) > 0)
)
def test_any_landing_law_has_its_ratio(pair: tuple[list[int], list[int]]) -> None:
    channel = ValueChannel(tuple(pair[0]), tuple(pair[1]))
    assert channel.worst_ratio == brute_ratio(law(channel))


@settings(max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=3, max_size=6), BUDGETS.filter(lambda e: Fraction(1, 100) < e < 40))
def test_beyond_two_values_aprr_spends_at_most_its_largest_level(levels: list[int], epsilon: Fraction) -> None:
    ratio = ValueChannel.aprr(levels, 5, epsilon).worst_ratio
    budgets = level_budgets(5, epsilon)
    assert ratio is not None
    assert within(ratio, max(budget for level in levels if (budget := budgets[level]) is not None))


def test_one_level_is_plain_krr() -> None:
    channel = ValueChannel.aprr([1] * 5, 2, Fraction(1))
    plain = KRR.for_budget(5, Fraction(1))
    assert channel.worst_ratio == plain.worst_ratio
    assert channel.probability(2, 2) == plain.exact_p
    assert channel.probability(2, 1) == plain.exact_q


def test_an_open_value_makes_it_infinite() -> None:
    channel = ValueChannel.aprr([0, 1, 2], 3, Fraction(1))
    assert channel.worst_ratio is None
    assert channel.worst_ratio is None
    assert channel.pair_ratio(1, 2) is not None  # towards each other the sensitive ones are protected
    assert channel.pair_ratio(1, 0) is None


def _frequency_errors(channel: ValueChannel, drawn: ValueChannel, seed: int) -> np.ndarray:
    """Deviations of reports from the law of `channel`, in standard errors, if `drawn` draws them."""
    stream, n = Keystream.seeded(seed, "values"), 40_000
    out = []
    for x in range(channel.size):
        counts = drawn.support(drawn.perturb(np.full(n, x, dtype=np.uint16), stream))
        chance = channel.matrix[x]
        out.append((counts - n * chance) / np.sqrt(np.maximum(n * chance * (1 - chance), 1e-300)))
    return np.abs(out)


def test_values_are_drawn_by_their_law(seed: int) -> None:
    epsilon = Fraction(3)
    levels = (1, 2, 3, 1, 2)
    channel, wrong = (ValueChannel.aprr(levels, 4, epsilon * factor) for factor in (1, Fraction(11, 10)))
    skew = ValueChannel(channel.redraw, (SCALE // 2, SCALE // 4, SCALE // 8, SCALE // 16, SCALE // 16))
    assert _frequency_errors(channel, channel, seed).max() < z_bound(25)
    assert _frequency_errors(skew, skew, seed).max() < z_bound(25)
    assert _frequency_errors(channel, wrong, seed).max() > z_bound(25)


def test_open_values_stay() -> None:
    channel = ValueChannel.aprr([0, 1, 2], 3, Fraction(1))
    assert (channel.perturb(np.zeros(1000, dtype=np.uint16), Keystream.secure()) == 0).all()


def _bit_errors(channels: ItemChannels, drawn: ItemChannels, n: int, seed: int) -> np.ndarray:
    truth = skewed(n, channels.n_items, 5)
    reports = drawn.perturb(Columns.of_table(truth), Keystream.seeded(seed, "bits")).table()
    out = []
    for item in range(channels.n_items):
        for value, keep in ((False, channels.keep_zero[item]), (True, channels.keep_one[item])):
            own = truth[:, item] == value
            p, size = keep / SCALE, own.sum()
            kept = (reports[own, item] == value).sum()
            out.append((kept - size * p) / math.sqrt(max(size * p * (1 - p), 1e-300)))
    return np.abs(out)


def test_every_item_is_kept_by_its_law(seed: int) -> None:
    levels = (1, 2, 3, 4, 4, 3, 2, 1, 1)
    channels, wrong = (ItemChannels.aprr(levels, 5, EPSILON * factor) for factor in (1, Fraction(11, 10)))
    # Odd sizes: the last word is partly padding, which stays empty.
    assert _bit_errors(channels, channels, 40_003, seed).max() < z_bound(18)
    assert _bit_errors(channels, wrong, 40_003, seed).max() > z_bound(18)


def test_open_items_stay_and_padding_is_empty(seed: int) -> None:
    truth = Columns.of_table(skewed(77, 3, 1))
    reports = ItemChannels((SCALE, SCALE // 10 * 9, SCALE), (SCALE, SCALE // 10 * 9, SCALE // 2)).perturb(
        truth, Keystream.seeded(seed)
    )
    assert (reports.words[0] == truth.words[0]).all()
    assert ((reports.words & ~truth.mask) == 0).all()
    assert ((reports.words[2] & ~truth.words[2]) == 0).all()  # a kept zero never becomes a one


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ItemChannels.symmetric((SCALE // 2,)), "singular"),
        (lambda: ItemChannels((SCALE // 4,), (SCALE // 2,)), "singular"),
        (lambda: ItemChannels((), ()), "at least one item"),
        (lambda: ItemChannels((SCALE + 1,), (SCALE,)), "thresholds"),
        (lambda: ValueChannel((SCALE, SCALE, 0), (1, 1, 1)), "singular"),
        (lambda: ValueChannel((SCALE, 0), (0, 1)), "singular"),
        (lambda: ValueChannel((1,), (1,)), "2 to 65536 values"),
        (lambda: ValueChannel((1, 1), (SCALE, 1)), "mass"),
        (lambda: ValueChannel((1, -1), (1, 1)), "redraw"),
        (
            lambda: ValueChannel.krr(3, Fraction(1)).perturb(np.array([3], dtype=np.uint16), Keystream.secure()),
            "domain",
        ),
        (
            lambda: ItemChannels.symmetric((SCALE,)).perturb(
                Columns.of_table(np.ones((2, 2), bool)), Keystream.secure()
            ),
            "of the plan",
        ),
    ],
)
def test_bad_input_is_named(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]


def test_one_blind_value_can_be_reconstructed_from_the_others() -> None:
    channel = ValueChannel((SCALE, SCALE // 2, SCALE // 2), (1, 1, 2))
    np.testing.assert_allclose(channel.inverse @ channel.matrix.T, np.eye(3), atol=1e-12)
