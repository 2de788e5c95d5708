"""Pages of reproductions: every number, ours and theirs, safe, the same bytes every time, one look a method."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

from pldp.papers.compare import Tally, by_key, compare
from pldp.papers.laboratory.charts import LOOKS, look, panel_chart
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.laboratory.page import figure, write_index, write_paper
from pldp.papers.model import Data, Fact, Note, Picture, Point, Points, Reason, Unit
from pldp.papers.registry import available, paper
from pldp.tasks.drawing import PALETTE, SHAPES

EVIL = "<script>alert('x')</script>"
POINTS = tuple(
    Point(place=place, panel=panel, series=series, x=str(x), value=x * (1 + i), standard_error=0.1, repeats=9)
    for place in ("Figure 1", "Table 1")
    for panel in ("a", "b")
    for i, series in enumerate(("OC", EVIL))
    for x in (1, 2, 10)
)
FACTS = tuple(
    Fact(place=place, panel="a", series="OC", x=x, printed=printed, half_width=0.01)
    for place in ("Figure 1", "Table 1")
    for x, printed in (("1", 1.0), ("2", 4.0), ("10", 99.0))
)


def doubled(fact: Fact, points: Points) -> Point | None:
    ours = points.get((fact.place, fact.panel, fact.series, fact.x))
    return None if ours is None else replace(ours, value=2 * ours.value)


@dataclass
class Made:
    """A paper that is none."""

    REASONS: Sequence[Reason] = (
        Reason(
            key="twice",
            sentence="Twice ours & more.",
            basis="inferred",
            shown_by="the numbers",
            applies=lambda fact: True,
            check=lambda fact, points: True,
            instead=doubled,
        ),
    )
    PICTURES: Sequence[Picture] = (
        Picture(place="Figure 1", title="a figure", x_title="x", y_title="y"),
        Picture(place="Table 1", title="a table", x_title="x", y_title="y", kind="table"),
    )
    NOTES: Mapping[str, Note] = field(
        default_factory=lambda: {"Figure 1": lambda points: f"{len(points)} points.", "Elsewhere": "Only words."}
    )

    def units(self, quick: bool) -> list[Unit]:
        return []

    def run(self, unit: Unit, data: Data) -> list[Point]:
        return []


def build(folder: Path, points: tuple[Point, ...] = POINTS) -> str:
    compared = compare(FACTS, by_key(points), Made().REASONS)
    return write_paper(folder, "mpldp", Made(), points, compared, (3, 12.0, 9)).read_text()


def test_the_page_has_every_number_and_verdict(tmp_path: Path) -> None:
    text = build(tmp_path)
    assert "6 numbers: 2 agree, 0 differ with a verified reason, 2 with an inferred one, 2 unexplained" in text
    assert text.count("≠ differs: twice (inferred)") == 2
    assert text.count("✗ unexplained") == 2
    assert "Twice ours &amp; more." in text
    assert "Inferred from the numbers." in text
    assert "24 points." in text
    assert "Only words." in text
    for printed in ("1", "4", "99"):
        assert re.search(rf"<td>{printed}</td>", text)


def test_the_page_is_safe_and_the_same_every_time(tmp_path: Path) -> None:
    text = build(tmp_path)
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"(?:src|href)=\"(?!#|data:,|index\.html)", text)
    assert text == build(tmp_path)


def test_a_page_without_any_point_is_built(tmp_path: Path) -> None:
    assert "6 unexplained" in build(tmp_path, ())


def test_rows_stand_in_the_order_of_numbers(tmp_path: Path) -> None:
    table = build(tmp_path).split("<caption>")[1]
    assert re.findall(r'<th scope="row">(\d+)</th>', table)[:3] == ["1", "2", "10"]


def test_the_index_lists_what_was_compared(tmp_path: Path) -> None:
    text = write_index(tmp_path, {"febsf": Tally(1, 2, 4, 3)}).read_text()
    assert "<td>10</td><td>1</td><td>2</td><td>4</td>" in text
    assert 'href="febsf.html"' in text
    assert "mpldp.html" not in text
    assert "which.html" not in text


def test_a_method_looks_the_same_everywhere() -> None:
    for series in LOOKS:
        assert look(series, ["another", series]) == look(series, [series])


@pytest.mark.parametrize("name", available())
def test_methods_of_one_figure_can_be_told_apart(name: str) -> None:
    """Those that are known by name; a table shows no looks."""
    drawn = {picture.place for picture in paper(name).PICTURES if picture.kind != "table"}
    for place in drawn:
        series = {fact.series for fact in read_facts(name) if fact.place == place}
        assert len({look(each, sorted(series)) for each in series}) == len(series), place


def test_methods_without_a_look_get_one_of_their_own() -> None:
    others = [f"method {i}" for i in range(12)]
    looks = [look(series, others) for series in others]
    assert len(set(looks)) == len(looks)
    assert set(looks).isdisjoint({(PALETTE[c], SHAPES[s]) for c, s in LOOKS.values()})


@pytest.mark.parametrize("kind", ["lines", "bars"])
@pytest.mark.parametrize("log_y", [True, False])
def test_charts_of_all_kinds_are_drawn(kind: Literal["lines", "bars"], log_y: bool) -> None:
    picture = replace(Made().PICTURES[0], kind=kind, log_y=log_y)
    points = [point for point in POINTS if point.place == "Figure 1"]
    compared = [each for each in compare(FACTS, by_key(POINTS), ()) if each.fact.place == "Figure 1"]
    drawn = panel_chart(picture, "a", points, compared)
    assert drawn.startswith("<svg")
    assert "<script" not in drawn
    assert "The table below has all numbers." in drawn


def test_numbers_carry_their_error() -> None:
    assert figure(0.123456, 0.0) == "0.12346"
    assert figure(0.123456, 0.0123) == "0.12346 ± 0.01"


@pytest.mark.parametrize("n_series", [1, 2])
def test_marks_have_a_size(n_series: int) -> None:
    """A scale of one size would be none: such marks are not drawn, and a browser complains."""
    picture = Picture(place="Figure 1", title="a figure", x_title="x", y_title="y")
    points = [replace(point, panel="", series=f"s{i}") for i in range(n_series) for point in POINTS[:3]]
    drawn = str(panel_chart(picture, "", points, ()))
    assert "NaN" not in drawn
    assert len(set(re.findall(r'd="([^"]*)" fill="#', drawn))) >= n_series
