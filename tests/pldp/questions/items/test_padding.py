"""Places of sampled rows: what longer rows hide, what reports tell of them, and intervals that hold all the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pldp.questions.items.mining import Search
from pldp.questions.items.padding import Overlong, choose_padding, held_sets_at_most, within
from pldp.questions.items.sampled import Half, longer_rows, score_interval
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.sampling import SetSampling
from pldp.questions.question import Columns, Evidence, offsets
from tests.pldp.questions.items.memory import failed, make_question, released
from tests.pldp.world import z_bound

ITEMS = 12
N_USERS = 4000
LONG = {"sampling": {"lengths": {2: "1/2", 12: "1/2"}, "padding": 3, "sets_padding": 4}}
SHORT = {"sampling": {"lengths": {2: 1}, "padding": 3, "sets_padding": 4}}
ASKED: dict[str, Any] = {
    "items": [f"item {number}" for number in range(ITEMS)],
    "protocol": "sampling",
    "budget": {"total": 6},
    "itemsets": {"minimum_support": 0.1, "length": 2},
    "expected": {"users": N_USERS},
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=3),
    st.integers(1, 6),
    st.integers(0, 2**16),
)
def test_no_choice_of_holders_hides_more_than_the_bound(rows: list[tuple[int, int]], places: int, mask: int) -> None:
    """Every subset of up to twelve people as the holders of an item, each of them seen as min(1, places/length)."""
    people = sorted(length for length, number in rows for _ in range(number))
    sizes, counts = np.unique(people, return_counts=True)
    lengths = tuple((int(size), float(count) / len(people)) for size, count in zip(sizes, counts, strict=True))
    holders = [length for place, length in enumerate(people) if mask >> place & 1 and length > 0]
    held = len(holders) / len(people)
    seen = sum(min(1, places / length) for length in holders) / len(people)
    bound = Overlong.of(lengths, places).understated(np.array([seen]))[0]
    assert held - seen <= bound + 1e-12
    longest = people[len(people) - len(holders) :] if holders else []
    hidden = sum(1 - min(1, places / length) for length in longest if length > 0) / len(people)
    least = len(longest) / len(people) - hidden
    assert Overlong.of(lengths, places).understated(np.array([least]))[0] == pytest.approx(hidden), "and no less"


def test_reports_cap_how_many_rows_are_longer() -> None:
    lengths = ((2, 0.5), (10, 0.5))
    assert Overlong.of(lengths, 10).none
    assert Overlong.of(lengths, 5, longer=0.0).none
    some = Overlong.of(lengths, 5, longer=0.1)
    np.testing.assert_allclose(some.understated(np.array([-1.0, 0.0, 0.025, 0.05, 0.7])), [0, 0, 0.025, 0.05, 0.05])


def test_a_row_holds_no_more_sets_than_its_items_make() -> None:
    lengths = ((1, 0.25), (3, 0.25), (8, 0.5))
    assert held_sets_at_most(lengths, [(2, 20), (3, 5)]) == ((0, 0.25), (4, 0.25), (25, 0.5))
    assert within(lengths, 5) == ((1, 0.25), (3, 0.25), (5, 0.5))
    assert within(None, 7) == ((7, 1.0),)
    for length, asked in product(range(2, 7), ([(2, 4)], [(2, 3), (3, 9)])):
        (most,) = held_sets_at_most(((length, 1.0),), asked)
        assert most[0] <= sum(number for _, number in asked)


def test_the_plan_takes_the_padding_of_the_shortest_interval() -> None:
    lengths = ((4, 0.9), (9, 0.1))
    assert choose_padding(lengths, lambda places: abs(places - 6)) == 6
    assert choose_padding(lengths, lambda places: places) == 1
    assert choose_padding(lengths, lambda places: -places) == 9

    def places(users: int, **asked: Any) -> tuple[int, int]:
        channel = make_question(**{**ASKED, "expected": {"users": users}, **asked}).levels[0].channel
        assert isinstance(channel, Sampled)
        assert channel.sets is not None
        return channel.items.length, channel.sets.length

    declared = {"sampling": {"lengths": {2: "0.9", 4: "0.09", 12: "0.01"}}}
    few, many = places(500, **declared), places(5_000_000, **declared)
    assert few[0] < many[0] == 12, "where noise is small, nothing is worth hiding"
    assert places(500) == (ITEMS, 64), "nothing declared: every set has a place, and a row of sixteen"
    assert places(500, sampling={"padding": 5, "sets_padding": 6, "lengths": {3: 1}}) == (5, 6), "what is stated holds"


def test_dummies_tell_how_long_rows_are() -> None:
    """Shares of rows of at most 0 … 3 items, by all reports of a k-RR: exactly unbiased."""
    sampling = SetSampling.for_budget(6, 4, Fraction(3), allowed=("krr",))
    sizes = np.array([0, 1, 1, 2, 3, 4, 5, 6])
    law = np.zeros(10)
    for size in sizes:
        places = np.concatenate([np.arange(size), 6 + np.arange(size, 4)]) if size < 4 else np.arange(size)
        drawn = np.bincount(places, minlength=10) / len(places)
        law += (sampling.protocol.q + sampling.protocol.gap * drawn) / sizes.size
    counts = np.round(law * 10**15).astype(np.int64)
    short = sampling.short_rows(counts, 10**15)
    np.testing.assert_allclose(short, [(sizes <= length).mean() for length in range(4)], atol=1e-9)
    half = Half((sampling,), np.array([10**6]), counts[None] // 10**9)
    assert 3 / 8 < longer_rows(half, np.ones(1), 10**6) < 3 / 8 + 0.02


def test_an_interval_holds_all_supports_that_explain_the_estimate() -> None:
    sampling = SetSampling.for_budget(6, 4, Fraction(3))
    half = Half((sampling,), np.array([1000]), np.zeros((1, 10), dtype=np.int64))
    estimate = np.array([0.0, 0.02, 0.4])
    low, high = score_interval(half, np.ones(1), estimate, 3000, Search(0.1, 1))
    report = sampling.length / sampling.protocol.gap / 1000  # what one moves; counts are whole numbers
    step = report / 2 * report / np.sqrt(float(sampling.noise_variance(np.array([0.1]))[0]) / 1000)
    assert step < report / 2
    for end in (low, high):
        error = np.sqrt(sampling.noise_variance(end) / 1000 + end * (1 - end) * (1 / 1000 - 1 / 3000) * 3000 / 2999)
        np.testing.assert_allclose((np.abs(estimate - end) - step) / error, 1.959964, rtol=1e-6)
    assert (low < estimate).all()
    assert (high > estimate).all()
    below, above = score_interval(half, np.ones(1), np.array([-9.0]), 3000, Search(0.1, 1))
    assert below[0] < -9 < above[0]


def make_rows(long: float, n_users: int, seed: int) -> NDArray[np.bool_]:
    """Some hold everything, the others one or two of the first items."""
    rng = np.random.default_rng(seed)
    table = np.zeros((n_users, ITEMS), dtype=np.bool_)
    table[np.arange(n_users), rng.integers(0, 3, n_users)] = True
    table[np.arange(n_users), rng.integers(0, 3, n_users)] = True
    table[rng.random(n_users) < long] = True
    return table


def people_of(table: NDArray[np.bool_], seed: int) -> list[Columns]:
    levels = np.random.default_rng([seed, 1]).integers(0, 2, len(table)).astype(np.uint8)
    parts: list[Columns] = []
    for first in range(4):
        rows = table[first::4]
        bounds = np.concatenate([[0], np.cumsum(rows.sum(axis=1))]).astype(np.int64)
        held = np.nonzero(rows)[1].astype(np.uint32)
        parts.append({"level": levels[first::4], "items": held, offsets("items"): bounds})
    return parts


def _covered(evidence: Evidence) -> list[bool]:
    question_rows = evidence.tables["itemsets"]
    keys = [tuple(sorted(int(name.split()[1]) for name in items)) for items in question_rows["items"]]
    ends = zip(question_rows["ci_low"], question_rows["ci_high"], keys, strict=True)
    return [low <= evidence.truth.supports[key] <= high for low, high, key in ends]


def test_intervals_hold_what_longer_rows_hide(seed: int) -> None:
    """A tenth of the people hold all twelve items and are seen as a quarter each; nobody may hold more than two, says
    the twin: its intervals miss, and the gate with the truth sees that."""
    repeats = 20
    held = []
    for repeat in range(repeats):
        people = people_of(make_rows(0.1, N_USERS, seed + repeat), seed + repeat)
        question = make_question(**ASKED, **LONG)
        evidence = released(question, people, seed=seed + repeat)
        held += _covered(evidence)
        assert failed(question, evidence) == set()
        assert min(evidence.tables["itemsets"]["understatement"][:ITEMS]) > 0
        wrong = make_question(**ASKED, **SHORT)
        believed = released(wrong, people, seed=seed + repeat)
        assert max(believed.tables["itemsets"]["understatement"]) == 0
        assert failed(wrong, believed) >= {"supports_true"}
    # Bounds are at least 95 %; sets of a run go together, so that repetitions count, each a few independent ones.
    assert np.mean(held) > 0.95 - z_bound(1) * np.sqrt(0.95 * 0.05 / (4 * repeats))


def test_reports_of_longer_rows_than_declared_are_refused(seed: int) -> None:
    people = people_of(make_rows(0.5, N_USERS, seed), seed)
    wrong = make_question(**ASKED, **SHORT)
    evidence = replace(released(wrong, people, seed), truth=None)
    assert failed(wrong, evidence) == {"lengths_agree"}
    right = make_question(**ASKED, **LONG)
    assert failed(right, replace(released(right, people, seed), truth=None)) == set()
    shares = [gate.false_alarm for gate in right.gates(evidence)]
    assert sum(shares) == pytest.approx(right.family), "and its false alarms are part of the family's"


def test_candidates_are_published_whatever_they_were_found_to_be() -> None:
    """What noise lowered stands beside what it lifted: no interval was chosen by its estimate."""
    question = make_question(**ASKED, **LONG)
    evidence = released(question, people_of(make_rows(0.0, 1000, 1), 1))
    lengths = evidence.tables["itemsets"]["length"]
    assert list(lengths).count(2) == sum(len(sets) for sets in evidence.result.mined.candidates)
