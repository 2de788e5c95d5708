"""Levels dealt by what people hold go as far as Γ allows, and no further; levels keep their sizes."""

from __future__ import annotations

import numpy as np
import pytest

from pldp.estimate.dealing import (
    SIDES,
    above,
    as_stated,
    by_chance,
    by_value,
    leaning_groups,
    leaning_sizes,
    people_by_value,
)

COUNTS = np.array([[3000, 1500, 400, 99, 1, 0], [1800, 900, 240, 60, 0, 0], [1200, 600, 160, 40, 0, 0]])
SIZES, HELD = COUNTS.sum(axis=1), COUNTS.sum(axis=0)


@pytest.mark.parametrize("gamma", [1.0, 1.1, 1.3, 2.0])
@pytest.mark.parametrize("side", SIDES.values())
def test_holders_go_to_the_bounds_of_gamma_and_not_beyond(gamma: float, side: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for leaning in leaning_groups(HELD, gamma):
        dealt = by_value(COUNTS, leaning, gamma, side)(4, rng)
        assert (dealt.sum(axis=1) == HELD).all()
        assert (dealt.sum(axis=2) == SIZES).all()
        inside = leaning_sizes(SIZES, int(HELD[leaning].sum()), gamma, side)
        assert (dealt[:, :, leaning].sum(axis=2) == inside).all()
        ratios = np.array([inside / HELD[leaning].sum(), (SIZES - inside) / HELD[~leaning].sum()]) / (SIZES / 10_000)
        rounding = 1 / (SIZES * min(HELD[leaning].sum(), HELD[~leaning].sum()) / 10_000)
        assert (ratios <= gamma + rounding).all()
        assert (ratios >= 1 / gamma - rounding).all()
        if HELD[leaning].sum() <= 10_000 / (1 + gamma):  # the weakest level, a fifth of all, is at the bound
            assert ratios[0][-1] == pytest.approx(gamma if side == 1 else 1 / gamma, abs=float(rounding.max()))


def test_every_value_leans_in_one_group() -> None:
    groups = np.array(list(leaning_groups(HELD, 1.3)))
    assert (groups.sum(axis=0) == 1).all()
    assert groups[0].tolist() == [True, False, False, False, False, False], "six in ten can only lean alone"
    shares = groups @ HELD / HELD.sum()
    assert (shares[1:] <= 1 / 2.3).all()


def test_chance_and_statements_are_as_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert (as_stated(COUNTS)(2, rng) == COUNTS).all()
    dealt = by_chance(COUNTS)(3, rng)
    assert (dealt.sum(axis=1) == HELD).all()
    assert not (dealt == COUNTS).all()


def test_an_empty_level_stays_empty(seed: int) -> None:
    counts = np.array([[500, 100], [0, 0], [300, 100]])
    dealt = by_value(counts, np.array([False, True]), 1.5, 1)(2, np.random.default_rng(seed))
    assert (dealt[:, 1] == 0).all()
    assert dealt[0, 2, 1] > 100, "two of ten are at the weakest level; those who lean are half as likely again"


def test_people_lean_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = np.repeat(np.arange(3, dtype=np.uint8), [500, 300, 200])
    numbers = rng.integers(0, 1000, 1000).astype(np.uint32)
    leaning = above(numbers, 1.3)
    assert 0.4 < leaning.mean() <= 1 / 2.3
    assert numbers[leaning].min() > numbers[~leaning].max()
    dealt = people_by_value(levels, leaning, 1.3, 1, rng)
    assert (np.bincount(dealt) == [500, 300, 200]).all()
    assert (dealt[leaning] == 2).mean() == pytest.approx(0.26, abs=0.005)
    assert (dealt[~leaning] == 2).mean() == pytest.approx(0.2 / 1.3, abs=0.005)


def test_of_equal_numbers_nobody_leans() -> None:
    assert not above(np.full(10, 7, dtype=np.uint32), 1.3).any()
    few = above(np.array([0] * 3 + [9] * 7, dtype=np.uint32), 1.3)
    assert few.tolist() == [False] * 3 + [True] * 7, "all who share the largest, however many they are"
