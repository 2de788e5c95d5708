"""febsf: what its published code computes, and that the reasons explain its numbers and no others."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from pldp.channels.protocol import PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.hidden import level_report
from pldp.papers.compare import ALPHA, by_key, compare
from pldp.papers.febsf import figures as febsf
from pldp.papers.febsf.code import CODE, SHAPES, TWICE, as_published, em_by_bits, ppda_by_report
from pldp.papers.febsf.draw import BUDGETS, EPSILON_P, TWO_BUDGETS, draw_table, points, shares_of
from pldp.papers.febsf.instead import SQUARED
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.model import Fact, Point, Unit
from tests.papers.world import dataset, unexplained

FACTS = read_facts("febsf")
PROTOCOLS: tuple[PureProtocol, ...] = tuple(BRR.for_budget(4, budget) for budget in BUDGETS)


@cache
def coded(name: str) -> tuple[Point, ...]:
    """What the published code gives, on the file it reads."""
    published = febsf.PUBLISHED[name]
    unit = Unit(paper="febsf", experiment="code", arguments={"name": name}, dataset=published, repeats=200, seed=1)
    return tuple(febsf.run(unit, dataset(published)))


def explained(facts: list[Fact], points: tuple[Point, ...]) -> list[str]:
    """The reasons given, with the tolerance that holds when all of the paper's numbers are compared."""
    alpha = ALPHA * len(facts) / len(FACTS)
    return [each.reason for each in compare(facts, by_key(points), febsf.REASONS, alpha)]


def facts_of(panel: str, series: str, place: str = "Figure 3") -> list[Fact]:
    return [fact for fact in FACTS if (fact.place, fact.panel, fact.series) == (place, panel, series)]


def test_the_em_by_bits_is_the_maximum(seed: int) -> None:
    """Against a general optimiser, value by value."""
    support = np.random.default_rng(seed).integers(380, 620, size=4)
    found = em_by_bits(support, 1000, PROTOCOLS)

    def best(count: int) -> float:
        def loss(x: float) -> float:
            chance = np.array([protocol.q + x * protocol.gap for protocol in PROTOCOLS])
            return -float(count * np.log(chance).sum() + (1000 - count) * np.log(1 - chance).sum())

        return float(minimize_scalar(loss, bounds=(1e-6, 1), method="bounded", options={"xatol": 1e-9}).x)

    expected = np.array([best(int(count)) for count in support])
    assert found == pytest.approx(expected / expected.sum(), abs=1e-5)


@pytest.mark.parametrize("name", febsf.TEXT)
def test_by_report_two_values_are_an_even_split(name: str, seed: int) -> None:
    """Whatever is drawn: the errors printed for PPDA at two values, to the last digit read, in all three data sets."""
    counts = febsf.counts_of(dataset(febsf.PUBLISHED[name]))[:2]
    found = ppda_by_report(counts, shares_of("uniform"), 3, np.random.default_rng(seed))
    for place, values in zip(("Figure 3", "Figure 4"), found, strict=True):
        (fact,) = [fact for fact in facts_of(name, "PPDA", place) if fact.x == "2"]
        assert values == pytest.approx(np.full(3, fact.printed), abs=2 * fact.half_width)


@pytest.mark.parametrize(("own", "holds"), [(0.5, True), (1.0, False)])
def test_ppda_comes_out_report_by_report(own: float, holds: bool) -> None:
    """Job, three to nine values. The twin takes a report's own bit as always set: E s = 1 + (k − 2) q."""
    counts = febsf.counts_of(dataset("bank-job-published"))
    made: list[Point] = []
    for k in febsf.SIZES[1:]:
        found = ppda_by_report(counts[:k], shares_of("uniform"), 60, np.random.default_rng(k), own)
        made += points({"PPDA": found}, ("Figure 3", "Figure 4"), f"Job{CODE}", str(k))
    facts = [fact for place in ("Figure 3", "Figure 4") for fact in facts_of("Job", "PPDA", place)[1:]]
    reasons = explained(facts, tuple(made))
    assert (reasons == ["PPDA report by report"] * len(facts)) == holds


def test_level_shares() -> None:
    assert shares_of("uniform") == pytest.approx(np.full(10, 0.1))
    falling = shares_of("power law", TWO_BUDGETS)
    assert falling.sum() == pytest.approx(1)
    assert falling[0] / falling[1] == pytest.approx(2**0.6)


@pytest.mark.parametrize(("epsilon_p", "caught"), [(Fraction(1), False), (Fraction(11, 10), True)])
def test_drawn_tables_have_the_chances_they_should(epsilon_p: Fraction, caught: bool, seed: int) -> None:
    """Every cell of (level report, support set) against its probability, |z| < 5 at α = 5e-6 over 8 cells.

    The twin expects level reports of another budget.
    """
    counts = np.array([1_800_000, 1_200_000])
    budgets = (Fraction(1), Fraction(2))
    protocols: tuple[PureProtocol, ...] = tuple(BRR.for_budget(2, budget) for budget in budgets)
    shares = np.array([0.3, 0.7])
    table = draw_table(counts, shares, protocols, level_report(2, Fraction(1)), np.random.default_rng(seed))
    assert table.sum() == counts.sum()
    told = level_report(2, epsilon_p)
    expected = np.zeros((2, 4))
    for level, protocol in enumerate(protocols):
        for value, users in enumerate(counts):
            for code in range(4):
                ones = [protocol.p if place == value else protocol.q for place in range(2)]
                chance = np.prod([one if (code >> place) & 1 else 1 - one for place, one in enumerate(ones)])
                for b in range(2):
                    expected[b, code] += users * shares[level] * chance * (told.p if b == level else told.q)
    z = np.abs(table - expected) / np.sqrt(expected)
    assert (z.max() > 5) == caught


def test_education_swaps_its_curves() -> None:
    """EMOA's printed numbers are the code's AUEM, and AUEM's the code's EM."""
    assert set(explained(facts_of("Education", "EMOA"), coded("Education"))) <= {
        "published code",
        "school grades left out",
        "curves swapped",
    }
    assert explained(facts_of("Education", "AUEM")[2:], coded("Education")) == ["curves swapped"] * 6


def test_with_all_values_of_education_the_em_stays_unexplained() -> None:
    """The twin: with the school grades among the values, the EM's error is another, told apart from eight values on."""
    unit = Unit(paper="febsf", experiment="code", arguments={"name": "Education"}, repeats=200, seed=1)
    made = tuple(febsf.run(unit, dataset("adult-education")))
    assert explained(facts_of("Education", "AUEM", "Figure 4")[6:], made) == [""] * 2


@pytest.mark.parametrize("panel", ["Education", "Job"])
def test_rcf_has_another_power_law(panel: str) -> None:
    facts = [f for place in ("Figure 7", "Figure 8") for f in facts_of(panel, "RCF", place) if f.x == "power law"]
    assert explained(facts, coded(panel)) == ["another power law"] * 2
    usual = tuple(point for point in coded(panel) if not point.series.endswith(TWICE))
    assert explained(facts, usual) == [""] * 2


@pytest.mark.parametrize(("times", "reason"), [(2, "another power law"), (1, "")])
def test_ppda_of_education_has_another_power_law(times: int, reason: str) -> None:
    """The twin has the exponent of the other methods."""
    counts = febsf.counts_of(dataset("adult-education-named"))
    found = ppda_by_report(counts, shares_of("power law", times=times), 150, np.random.default_rng(times))
    made = points({f"PPDA{TWICE * (times - 1)}": found}, ("Figure 7", "Figure 8"), f"Education{CODE}", "power law")
    places = ("Figure 7", "Figure 8")
    facts = [f for place in places for f in facts_of("Education", "PPDA", place) if f.x == "power law"]
    assert explained(facts, tuple(made)) == [reason] * 2


def test_rcf_of_country_has_the_same_power_law() -> None:
    """The doubled one is not offered where it is refuted."""
    facts = [fact for fact in facts_of("Country", "RCF", "Figure 7") if fact.x == "power law"]
    assert explained(facts, coded("Country")) == ["counties, not countries"]
    doubled = tuple(point for point in coded("Country") if point.series.endswith(TWICE))
    assert explained(facts, doubled) == [""]


def test_with_equal_counties_the_em_stays_unexplained() -> None:
    """The twin of the counts that fall: its number under the power law was not used to find them."""
    facts = [fact for fact in facts_of("Country", "EMOA", "Figure 7") if fact.x == "power law"]
    for counts, reason in ((febsf.COUNTIES, "counties, not countries"), (np.array([2346, 1326, *[870] * 7]), "")):
        found = as_published(counts, shares_of("power law"), EPSILON_P, 4000, np.random.default_rng(1))
        made = points({"EMOA": found["EMOA"]}, ("Figure 7", "Figure 8"), f"Country{CODE}", "power law")
        assert explained(facts, tuple(made)) == [reason]


def test_jobs_em_in_figure_8_is_of_another_run() -> None:
    facts = facts_of("Job", "EMOA", "Figure 8")
    assert explained(facts, coded("Job")) == ["another run"] * 2
    for fact in facts:
        (beside,) = [each for each in facts_of("Job", "EMOA", "Figure 7") if each.x == fact.x]
        assert beside.printed == SQUARED["Job", "EMOA", fact.x]
        (shape,) = [p for p in coded("Job") if (p.place, p.series, p.x) == (SHAPES, "EMOA", fact.x)]
        fitting = replace(fact, printed=shape.value * beside.printed**0.5)
        assert explained([fitting], coded("Job")) != ["another run"], "this would be of the same run"


def test_job_and_country_come_from_other_files() -> None:
    assert explained(facts_of("Job", "EMOA"), coded("Job")) == ["Job's file"] * 8
    assert explained(facts_of("Country", "EMOA"), coded("Country")) == ["counties, not countries"] * 8
    assert explained(facts_of("Country", "RCF", "Figure 8"), coded("Country")) == ["Figure 7 again"] * 2


def test_with_the_file_of_the_text_job_stays_unexplained() -> None:
    """The twin: the same code on the file that the text names does not give what is printed."""
    unit = Unit(paper="febsf", experiment="code", arguments={"name": "Job"}, dataset="bank-job", repeats=100, seed=1)
    made = tuple(febsf.run(unit, dataset("bank-job")))
    assert "" in explained(facts_of("Job", "RCF"), made)


def test_a_wrong_number_is_not_explained_away() -> None:
    """Where Monte Carlo errors are small enough to tell 1.3 from 1: all of RCF, APLDP and EMOA."""
    for name, series in (("Job", "EMOA"), ("Country", "EMOA"), ("Education", "AUEM")):
        facts = [fact for fact in facts_of(name, series, "Figure 4") if int(fact.x) >= 6]
        planted = [replace(fact, printed=1.3 * fact.printed) for fact in facts]
        assert explained(planted, coded(name)) == [""] * 4


def test_figures_5_and_6_use_krr() -> None:
    facts = [fact for fact in FACTS if fact.place == "Figure 5" and fact.panel == "Education"]
    assert set(explained(facts, coded("Education"))) == {"k-RR for the values"}


def test_units_of_every_kind_run() -> None:
    """The first of each experiment, with few repetitions; names are unique over a whole quick run's kinds."""
    seen: dict[str, Unit] = {}
    for unit in reversed(febsf.units(quick=True)):
        seen.setdefault(unit.experiment, unit)
    made = []
    for unit in seen.values():
        small = replace(
            unit, repeats=2, arguments={**unit.arguments, **({"fits": 2} if "fits" in unit.arguments else {})}
        )
        made += febsf.run(small, dataset(unit.dataset))
    assert len(by_key(made)) == len(made)
    assert any(point.panel.endswith(CODE) for point in made)
    assert all(np.isfinite(point.value) and point.standard_error >= 0 for point in made)


def test_notes_can_be_told_without_any_point() -> None:
    for note in febsf.NOTES.values():
        assert isinstance(note if isinstance(note, str) else note({}), str)


@pytest.mark.slow
def test_nothing_stays_unexplained() -> None:
    made = [point for unit in febsf.units(quick=True) for point in febsf.run(unit, dataset(unit.dataset))]
    assert unexplained(FACTS, made, febsf.REASONS) == []
