"""The rule of agreement: how wide it is, how often it is wrong, and that no reason is a way around it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.papers.compare import ALPHA, Tally, agrees, by_key, compare, quantile, tally, tolerance
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.model import Claim, Fact, Point, Points, Reason
from pldp.papers.registry import NAMES, available, paper

FACT = Fact(place="Figure 1", series="m", x="1", printed=1.0, half_width=0.05, repeats=100)
POINT = Point(place="Figure 1", series="m", x="1", value=1.0, standard_error=0.01, repeats=400)


def never(fact: Fact, points: Points) -> bool:
    return False


def always(fact: Fact, points: Points) -> bool:
    return True


WHY = Reason(
    key="why",
    sentence="Because.",
    basis="inferred",
    shown_by="the numbers",
    applies=lambda fact: True,
    check=always,
)


@given(st.floats(0, 10), st.floats(0, 1), st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_tolerance_counts_both_sides_errors(z: float, error: float, ours: int, theirs: int) -> None:
    """A paper with as many repetitions as we have doubles the variance; one without any adds nothing."""
    point, fact = replace(POINT, standard_error=error, repeats=ours), replace(FACT, repeats=theirs)
    single = error * math.sqrt(ours)
    expected = math.hypot(single / math.sqrt(ours), single / math.sqrt(theirs))
    assert tolerance(fact, point, z) == pytest.approx(fact.half_width + z * expected)
    assert tolerance(replace(fact, repeats=0), point, z) == pytest.approx(fact.half_width + z * error)


def test_an_exact_number_agrees_to_its_last_digit_only() -> None:
    exact = replace(POINT, value=0.30004999, standard_error=0.0)
    fact = replace(FACT, printed=0.3, half_width=0.00005, repeats=0)
    assert agrees(fact, exact, 4.0)
    assert agrees(fact, replace(exact, value=0.30005), 4.0), "half a unit exactly, whatever doubles make of it"
    assert not agrees(fact, replace(exact, value=0.3000501), 4.0)


@pytest.mark.parametrize(("claim", "kept", "broken"), [("at most", 0.2, 1.2), ("at least", 1.8, 0.8)])
def test_a_bound_is_broken_on_one_side(claim: Claim, kept: float, broken: float) -> None:
    bound = replace(FACT, claim=claim)
    assert agrees(bound, replace(POINT, value=kept), 4.0)
    assert not agrees(bound, replace(POINT, value=broken), 4.0)


def test_a_faithful_paper_is_rarely_called_different_and_an_unfaithful_one_often(seed: int) -> None:
    """Bonferroni: of papers with 50 faithful numbers at most α have one called different.

    With 400 papers their number is binomial: 13 or more at α = 0.01 has a chance of 2e-4. A twin whose numbers are off
    by six standard errors is caught nearly always.
    """
    rng = np.random.default_rng(seed)
    papers, size, z = 400, 50, quantile(50)
    sigma = POINT.standard_error * math.sqrt(1 + POINT.repeats / FACT.repeats)
    called = caught = 0
    for noise in rng.normal(scale=sigma, size=(papers, size)):
        facts = [replace(FACT, half_width=0.0, printed=1 + error) for error in noise]
        called += not all(agrees(fact, POINT, z) for fact in facts)
        caught += not agrees(replace(facts[0], printed=facts[0].printed + 6 * sigma), POINT, z)
    assert called < 13
    assert caught > 0.9 * papers


def test_verdicts() -> None:
    far = replace(FACT, printed=2.0)
    assert [each.verdict for each in compare([FACT], by_key([POINT]), ())] == ["agrees"]
    assert [each.verdict for each in compare([far], by_key([POINT]), ())] == ["unexplained"]
    assert [each.verdict for each in compare([far], {}, ())] == ["unexplained"], "no number of ours is no agreement"
    found = compare([far], by_key([POINT]), [replace(WHY, key="no", check=never), WHY])
    assert [(each.verdict, each.reason) for each in found] == [("differs", "why")]
    assert tally(found) == Tally(0, 0, 1, 0)
    verified = compare([far, FACT], by_key([POINT]), [replace(WHY, basis="verified")])
    assert tally(verified) == Tally(1, 1, 0, 0)
    assert tally(found) + tally(verified) == Tally(1, 1, 1, 0)


def test_a_number_put_instead_must_agree_too() -> None:
    """The reason gives 2.0: it explains 2.0, and neither 2.6 nor a number that it does not know."""
    points = by_key([POINT])
    because = replace(WHY, instead=lambda fact, points: replace(POINT, value=2.0))
    verdicts = [compare([replace(FACT, printed=printed)], points, [because])[0].verdict for printed in (2.0, 2.6, 1.0)]
    assert verdicts == ["differs", "unexplained", "agrees"]
    assert compare([replace(FACT, printed=2.0)], points, [replace(because, check=never)])[0].verdict == "unexplained"
    unknown = replace(WHY, instead=lambda fact, points: None)
    assert compare([replace(FACT, printed=2.0)], points, [unknown])[0].verdict == "unexplained"


def test_two_points_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Figure 1 /  / m / 1: two points"):
        by_key([POINT, POINT])


def test_the_last_line() -> None:
    assert str(Tally(3, 2, 4, 1)) == (
        "10 numbers: 3 agree, 2 differ with a verified reason, 4 with an inferred one, 1 unexplained"
    )
    assert quantile(1, 0.05) == pytest.approx(1.96, abs=0.001)
    assert quantile(1000) > quantile(10) > quantile(1, ALPHA)


@pytest.mark.parametrize("name", available())
def test_what_a_verified_reason_puts_instead_does_not_depend_on_the_printed_number(name: str) -> None:
    """An inferred one may; both say what they rest on."""
    names = {(fact.place, fact.panel, fact.series, fact.x) for fact in read_facts(name)}
    points = by_key(replace(POINT, place=a, panel=b, series=c, x=d) for a, b, c, d in names)
    for reason in paper(name).REASONS:
        assert reason.shown_by
        assert reason.shown_by.rstrip(".") == reason.shown_by, "it ends a sentence of the page"
        if reason.basis == "verified" and reason.instead is not None:
            for fact in filter(reason.applies, read_facts(name)):
                other = replace(fact, printed=3 * fact.printed + 1)
                assert reason.instead(fact, points) == reason.instead(other, points)


@pytest.mark.parametrize("name", available())
def test_a_paper_offers_what_it_must(name: str) -> None:
    module = paper(name)
    assert name in NAMES
    keys = [each.key for each in module.REASONS]
    assert len(set(keys)) == len(keys)
    for quick in (True, False):
        units = module.units(quick)
        assert {unit.paper for unit in units} == {name}
        assert len({str(unit) for unit in units}) == len(units)
    assert sum(unit.repeats for unit in module.units(True)) <= sum(unit.repeats for unit in module.units(False))
