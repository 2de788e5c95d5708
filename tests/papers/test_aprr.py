"""aprr's numbers: all accounted for, none by a reason that would cover for anything."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from pldp.channels.exact import SCALE
from pldp.papers.aprr import figures as aprr
from pldp.papers.aprr.mining import MADE_UP, METHODS, MINIMA, MISSED, OWN, identity
from pldp.papers.aprr.tables import (
    APRR,
    BOUNDED,
    CORRECTED,
    EXACT,
    MEAN_KEEP,
    ONES,
    SAME,
    SUPPORT,
    TENTHS,
    ZEROS,
    item_channels,
    lot_ratio,
)
from pldp.papers.compare import by_key
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.model import Point, Points, Unit
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import GROUP_KEEPS
from pldp.questions.items.metrics import revealed
from pldp.questions.items.transactions import Columns
from tests.papers.world import caught, dataset, unexplained


@cache
def _quick() -> tuple[Point, ...]:
    return tuple(point for unit in aprr.units(quick=True) for point in aprr.run(unit, dataset(unit.dataset)))


def _points() -> Points:
    return by_key(_quick())


def _truth() -> Columns:
    return Columns.of_table(dataset("basket")["items"].astype(bool))


def test_every_printed_number_is_accounted_for() -> None:
    assert unexplained(read_facts("aprr"), _quick(), aprr.REASONS) == []


def test_a_wrong_number_is_not_explained_away() -> None:
    caught(read_facts("aprr"), _quick(), aprr.REASONS)


def test_what_is_spent() -> None:
    spent = {
        x: point.value for (place, _, series, x), point in _points().items() if (place, series) == ("Lemma 1", EXACT)
    }
    items = [spent[f"an item of level {level}"] for level in range(5)]
    assert items == pytest.approx([math.inf, 2.224, 1.612, 1.026, 0.483], abs=5e-4)
    assert spent["LDP-APRR, perturbed items of a row"] == pytest.approx(10.21, abs=5e-3)
    assert spent["LDP-APRR, a row"] == math.inf
    assert spent["MASK, a row"] == pytest.approx(11 * math.log(84 / 16))
    assert 9 - 1e-6 < spent["bounded (ours), a row"] <= 9


def test_two_probabilities_leave_no_gain() -> None:
    # methods.md section 4.
    points = _points()
    most, average = (points["Table 3", CORRECTED, APRR, x].value for x in ("maxPrivacy", "avgPrivacy"))
    assert (round(most, 1), round(average, 1)) == (70.0, 33.6)


def test_table_2_has_one_budget() -> None:
    """Of all budgets to two digits those next to 9 and no other give its probabilities."""

    def printed(epsilon: Fraction) -> bool:
        channels = ItemChannels.aprr(range(5), 5, epsilon)
        pairs = ((channels.keep_zero, ZEROS), (channels.keep_one, ONES))
        return all(
            round(keep / SCALE, 2) == told for keeps, tolds in pairs for keep, told in zip(keeps, tolds, strict=True)
        )

    fits = [hundredths for hundredths in range(500, 1500) if printed(Fraction(hundredths, 100))]
    assert fits == list(range(896, 907))


def test_only_these_tenths_give_the_groups_numbers() -> None:
    degrees = [100 * (1 - revealed(SUPPORT, float(keep))) for keep in GROUP_KEEPS]
    found = [
        tenths
        for tenths in product(range(11), repeat=5)
        if sum(tenths) == 10
        and abs(np.dot(tenths, [float(keep) for keep in GROUP_KEEPS]) / 10 - MEAN_KEEP) <= 0.005
        and abs(np.dot(tenths, degrees) / 10 - 35.9) <= 0.05
    ]
    assert [tuple(Fraction(size, 10) for size in tenths) for tenths in found] == [TENTHS]


def test_a_secret_lot_by_hand() -> None:
    """The whole channel of three items: every true row, every report."""
    rows = list(product((0, 1), repeat=3))

    def chance(true: tuple[int, ...], told: tuple[int, ...]) -> Fraction:
        same = sum(a == b for a, b in zip(true, told, strict=True))
        parts = zip(TENTHS, GROUP_KEEPS, strict=True)
        return sum((share * keep**same * (1 - keep) ** (3 - same) for share, keep in parts), start=Fraction(0))

    worst = max(chance(a, told) / chance(b, told) for told in rows for a in rows for b in rows)
    assert lot_ratio(3) == worst


def test_ours_spend_what_they_say() -> None:
    channels = item_channels(_truth())
    for theirs, ours in zip(channels[APRR].ratios, channels[SAME].ratios, strict=True):
        if theirs is None or ours is None:
            assert theirs is ours
        else:
            assert theirs * (1 - Fraction(1, 10**15)) < ours <= theirs
    ratio = channels[BOUNDED].row_ratio()
    assert ratio is not None
    assert math.log(ratio) <= 9


def test_a_unit_can_be_run_again(seed: int) -> None:
    truth = _truth()
    once, again, other = (identity("MASK", truth, 2, own) for own in (seed, seed, seed + 1))
    assert once == again
    assert once != other


def test_curves_cover_all_minima() -> None:
    points = _points()
    for method in METHODS:
        for panel in (MADE_UP, MISSED):
            panel += OWN if method == BOUNDED else ""
            assert all(("Figure 3", panel, method, f"{minimum:g}") in points for minimum in MINIMA)


def test_full_runs_repeat_as_often_as_the_paper() -> None:
    repeats = {unit.repeats for unit in aprr.units(quick=False) if unit.experiment == "identity"}
    assert repeats == {100}
    assert isinstance(aprr.units(quick=True)[0], Unit)
