"""mpldp: its data, its split, its errors against their formulas, and printed numbers that no reason covers for."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pldp.estimate.allocation import brr_variance, optimal_shares
from pldp.estimate.combine import combine_linear
from pldp.papers.compare import by_key, compare
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.model import Point
from pldp.papers.mpldp import figures as mpldp
from pldp.papers.mpldp.cost import exponent, whole_projector_method
from pldp.papers.mpldp.errors import (
    CELLS,
    EPSILONS,
    LEVELS,
    TOTALS,
    block_uniform,
    draws,
    error_points,
    saving_points,
    table_2_points,
)
from tests.papers.world import unexplained

FACTS = read_facts("mpldp")
SOME = 24


@cache
def points() -> tuple[Point, ...]:
    """Table 2, one budget of Table 3, and Section VI-A."""
    return (*table_2_points(), *error_points(1_000, 2.0, SOME, seed=5), *saving_points(SOME, seed=6))


def facts_of(*places: str) -> list[int]:
    return [
        place
        for place, fact in enumerate(FACTS)
        if fact.place in places and (fact.place != "Table 3" or (fact.panel, fact.series) == ("n = 1000", "ε = 2.0"))
    ]


def test_algorithm_4_gives_everybody_one_value_of_each_attribute() -> None:
    for n in (1_000, 10_000, 997):
        for k in CELLS:
            counts = block_uniform(n, k)
            assert counts.sum() == n
            assert np.ptp(counts) <= 1


def test_the_totals_are_those_of_the_printed_rows() -> None:
    for panel, totals in TOTALS.items():
        for epsilon, total in zip(EPSILONS, totals, strict=True):
            row = [
                fact.printed for fact in FACTS if (fact.place, fact.panel, fact.x) == ("Table 2", panel, f"{epsilon:g}")
            ]
            assert len(row) == len(CELLS)
            assert 2 * sum(row) == pytest.approx(total, abs=1e-9)


def test_the_split_of_table_2_spends_all_and_no_more() -> None:
    found = by_key(table_2_points())
    for epsilon in EPSILONS:
        row = [found["Table 2", "n = 1000", f"k = {k}", f"{epsilon:g}"].value for k in CELLS]
        assert 2 * sum(row) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize(("wrong", "caught"), [(1.0, False), (1.1, True)])
def test_the_error_of_the_plain_sum_is_eq_56(wrong: float, caught: bool, seed: int) -> None:
    """Mean NSE of the sum is Σ_i k_i Σ_τ n_τ v(ε_iτ) / n, exactly: the sum adds no sampling of people.

    Two-sided at z = 4.5 (7e-6); a budget 1.1 times as large lies 17 % off, many standard errors of 400 repetitions.
    """
    n, epsilon, repeats = 1_000, 4.0, 400
    nse = np.zeros(repeats)
    for _, truth, levels in draws(n, epsilon, repeats, np.random.default_rng(seed)):
        nse += n * ((combine_linear("sum", levels).frequency - truth) ** 2).sum(axis=-1)
    sizes = np.array([334, 333, 333])
    expected = sum(
        k * float(sizes @ brr_variance(wrong * epsilon * share * np.array([float(part) for part in LEVELS]))) / n
        for k, share in zip(CELLS, optimal_shares(epsilon, CELLS), strict=True)
    )
    error = nse.std(ddof=1) / math.sqrt(repeats)
    assert (abs(nse.mean() - expected) > 4.5 * error) == caught


def test_printed_numbers_are_accounted_for() -> None:
    facts = [FACTS[place] for place in facts_of("Table 2", "Table 3", "Section VI-A")]
    assert len(facts) == 110 + 10 + 1
    assert unexplained(facts, points(), mpldp.REASONS) == []


def test_a_wrong_number_is_not_explained_away() -> None:
    """Every number times 1.3, and those of Table 2 divided by it; one run of Table 3 spreads too far for that."""
    keyed = by_key(points())
    for factor, places in ((1.3, ("Table 2", "Table 3")), (1 / 1.3, ("Table 2",))):
        planted = [replace(FACTS[place], printed=FACTS[place].printed * factor) for place in facts_of(*places)]
        verdicts = {each.verdict for each in compare(planted, keyed, mpldp.REASONS)}
        assert verdicts == {"unexplained"}


def test_the_same_seed_gives_the_same_points() -> None:
    assert error_points(1_000, 1.0, 8, 3) == error_points(1_000, 1.0, 8, 3)
    assert error_points(1_000, 1.0, 8, 3) != error_points(1_000, 1.0, 8, 4)


def test_an_exponent_is_found_with_its_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(10, 1000, 12)
    slope, error = exponent(sizes, 3e-6 * sizes**1.7 * np.exp(rng.normal(scale=0.05, size=12)))
    assert abs(slope - 1.7) < 6 * error
    assert 0.001 < error < 0.05


def test_the_whole_projector_projects() -> None:
    rng = np.random.default_rng(1)
    basis, reference = rng.normal(size=(3, 9)), rng.normal(size=9)
    left = reference - whole_projector_method(basis, reference, 1)
    assert np.abs(basis @ left).max() < 1e-9


def test_notes_can_be_told_without_any_point() -> None:
    for note in mpldp.NOTES.values():
        assert isinstance(note if isinstance(note, str) else note({}), str)


@pytest.mark.slow
def test_every_printed_number_is_accounted_for() -> None:
    made = [point for unit in mpldp.units(quick=True) for point in mpldp.run(unit, {})]
    assert unexplained(FACTS, made, mpldp.REASONS) == []
