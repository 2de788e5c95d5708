"""What people hold as columns of the vault: the kinds' own sums and lists against plain dictionaries."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from pldp.questions.aggregates.release import LARGEST
from pldp.questions.aggregates.source import hold as hold_aggregates
from pldp.questions.items.source import hold as hold_items
from pldp.questions.question import offsets
from pldp.questions.source import Held, HeldError

SIZE, USERS = 9, 40
UNITS = np.array([[i % 3, 1 << (i % 4)] for i in range(SIZE)])
NOTHING = np.empty(0, dtype=np.int64)


def made_up(seed: int, rows: int = 300) -> Held:
    """Some of the users hold nothing, the first and the last among them; some items stand in many rows."""
    rng = np.random.default_rng(seed)
    users = np.sort(rng.integers(1, USERS - 1, rows))
    return Held(USERS, users, rng.integers(0, SIZE, rows), rng.integers(0, 5, rows))


def lists(held: Held, **options: int | None) -> list[list[int]]:
    stated = {"one": False, "missing": None, **options}
    found = hold_items(held, size=SIZE, field="items", **stated)  # type: ignore[arg-type]
    bounds = found[offsets("items")]
    assert len(bounds) == held.n_users + 1
    return [found["items"][a:b].tolist() for a, b in pairwise(bounds)]


def test_every_item_once_and_rising(seed: int) -> None:
    held = made_up(seed)
    own: dict[int, set[int]] = defaultdict(set)
    for user, item in zip(held.users.tolist(), held.items.tolist(), strict=True):
        own[user].add(item)
    assert lists(held) == [sorted(own[user]) for user in range(USERS)]
    assert lists(Held(3, NOTHING, NOTHING)) == [[], [], []]
    assert lists(Held(0, NOTHING, NOTHING)) == []


def test_of_one_value_the_missing_one_is_given_and_a_second_refused() -> None:
    held = Held(3, np.array([0, 0, 2]), np.array([4, 4, 0]))
    assert lists(held, one=True, missing=7) == [[4], [7], [0]]
    with pytest.raises(HeldError, match="has no value"):
        lists(held, one=True)
    with pytest.raises(HeldError, match="two different values"):
        lists(Held(1, np.array([0, 0]), np.array([1, 2])), one=True, missing=7)


@pytest.mark.parametrize("cap", [None, 1, 3])
@pytest.mark.parametrize("counted", [True, False])
def test_sums_are_those_of_a_dictionary(cap: int | None, counted: bool, seed: int) -> None:
    held = made_up(seed)
    held = held if counted else Held(held.n_users, held.users, held.items)
    counts = held.counts if held.counts is not None else np.ones(len(held.users), dtype=np.int64)
    own: dict[tuple[int, int], int] = defaultdict(int)
    for user, item, n in zip(held.users.tolist(), held.items.tolist(), counts.tolist(), strict=True):
        own[user, item] += n
    expected = np.zeros((USERS, 2), dtype=np.int64)
    for (user, item), n in own.items():
        expected[user] += UNITS[item] * (n if cap is None else min(n, cap))
    found = hold_aggregates(held, units=UNITS, cap=cap, fields=("a_0", "a_1"))
    assert np.array_equal(np.stack([found["a_0"], found["a_1"]], axis=1), expected)
    nobody = hold_aggregates(Held(2, NOTHING, NOTHING), units=UNITS, cap=cap, fields=("a_0",))
    assert nobody["a_0"].tolist() == [0, 0]


def test_a_sum_beyond_the_noise_is_refused_at_its_first_unit() -> None:
    """LARGEST itself is kept; many rows of the largest counts never leave 64 bits."""
    units = np.array([[1], [1 << 20]])
    rows = np.zeros(9, dtype=np.int64)
    counts = np.array([10**9] * 8 + [LARGEST - 8 * 10**9])
    assert hold_aggregates(Held(1, rows, rows, counts), units=units, cap=None, fields=("a",))["a"].tolist() == [LARGEST]
    counts[-1] += 1
    with pytest.raises(HeldError, match="more than 8,589,934,592 grid units"):
        hold_aggregates(Held(1, rows, rows, counts), units=units, cap=None, fields=("a",))
    many = np.zeros(10**5, dtype=np.int64)
    with pytest.raises(HeldError, match="more than"):
        hold_aggregates(Held(1, many, many + 1, many + 10**9), units=units, cap=None, fields=("a",))
