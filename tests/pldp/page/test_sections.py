"""What each kind says on a page: its sections as a golden structure, and every figure as its table has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from pldp.page import words
from pldp.page.blocks import (
    Bar,
    Bars,
    Figure,
    Folded,
    GroupedBars,
    Paragraph,
    Run,
    Section,
    Shaded,
    Spread,
    Strip,
    Table,
)
from pldp.page.promises import promised
from pldp.page.published import Published
from pldp.questions.aggregates.page import attribute_order
from pldp.questions.numbers.page import reliable
from pldp.questions.pages import KIND_PAGES
from pldp.spec.wording import Wording
from tests.pldp.page.world import AGES, KINDS, REGIONS, aggregates, budget, histograms, items, numbers, share

GOLDEN = {
    "histograms": [
        "histograms: Paragraph Paragraph",
        " attribute-1: Paragraph Pair(Figure(Bars Folded) Figure(Dots Folded))",
        " attribute-2: Paragraph Figure(Table Folded) Figure(Folded)",
        "budgets: Paragraph Figure(GroupedBars Folded) Listing",
        "promise: Paragraph Paragraph Paragraph Table Paragraph Folded",
        "privacy: Paragraph Paragraph Paragraph Table Paragraph Folded Folded Folded",
    ],
    "numbers": [
        "numbers: Paragraph Paragraph Paragraph Table Pair(Figure(Spread Folded))",
        "budgets: Paragraph Figure(GroupedBars Folded) Listing",
        "promise: Paragraph Paragraph Paragraph Table Paragraph Folded",
        "privacy: Paragraph Paragraph Paragraph Table Paragraph Folded Folded Folded",
    ],
    "items": [
        "sets: Paragraph",
        " length-1: Figure(Bars Folded)",
        " length-2: Figure(Bars Folded)",
        "rules: Paragraph Table",
        "budgets: Paragraph Table Listing",
        "promise: Paragraph Paragraph Table Paragraph Folded",
        "privacy: Paragraph Paragraph Table Paragraph Folded Folded Folded",
    ],
    "aggregates": [
        "totals: Paragraph Pair(Figure(Bars Folded) Figure(Bars Folded))",
        "budgets: Paragraph Folded Folded Listing",
        "promise: Paragraph Paragraph Table Paragraph",
        "privacy: Paragraph Paragraph Table Paragraph Folded Folded",
    ],
}


def outline(page: Published) -> list[str]:
    """The forms of all blocks, section by section."""
    lines: list[str] = []

    def form(block: Any) -> str:
        inner = [*getattr(block, "figures", ())]
        if isinstance(block, Figure):
            inner = [*([block.chart] if block.chart is not None else []), *block.blocks]
        name = type(block).__name__
        return f"{name}({' '.join(map(form, inner))})" if inner else name

    def walk(section: Section, depth: int) -> None:
        lines.append(f"{' ' * depth}{section.key}: {' '.join(map(form, section.blocks))}")
        for inner in section.sections:
            walk(inner, depth + 1)

    for kind in KIND_PAGES:
        for section in kind.results(page):
            walk(section, 0)
    for part in ("budgets", "promise"):
        blocks = [block for kind in KIND_PAGES for block in getattr(kind, part)(page)]
        lines.append(f"{part}: {' '.join(map(form, blocks))}")
    for section in promised(page, promise):
        walk(section, 0)
    return lines


def promise(page: Published) -> tuple[Any, ...]:
    return tuple(block for kind in KIND_PAGES for block in kind.promise(page))


def test_each_of_several_promises_reads_its_own_part_and_what_is_common_is_said_once() -> None:
    own = {name: dict(KINDS[name]().promised) for name in ("histograms", "items", "aggregates")}
    common = {key: own["items"][key] for key in ("public", "assumptions")}
    part = [{**part, "kinds": [kind], "public": [f"what {kind} tell"]} for kind, part in own.items()]
    totals = {"user": {"nominal_epsilon": 7.0, "meaning": "all"}, "item": {"nominal_epsilon": 2.0, "meaning": "one"}}
    page = replace(histograms(), statement={**common, "worst_totals": totals, "questions": part, "model": "local",
                                            "holds_towards": "all"})  # fmt: skip
    (section,) = promised(page, promise)
    assert [inner.title for inner in section.sections] == [
        *(f"The promise about {kind}" for kind in own),
        "What all of it rests on",
    ]
    said = [run for run in everything(section) if isinstance(run, str)]
    assert sum("The model: " in line for line in said) == 1
    assert sum(line == "Privacy statement as JSON" for line in said) == 1
    assert sum(line == "What is public, and what the promise rests on" for line in said) == 1
    assert [line for line in said if line.startswith("What histograms tell")] == ["What histograms tell."]
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert [[text(cell) for cell in row[:2]] for row in table.rows] == [
        ["A user", "7"],
        ["One item of a user", "2"],
    ]
    for kind, inner in zip(own, section.sections, strict=False):
        alone = promise(replace(page, statement=own[kind]))
        if kind != "histograms":
            assert inner.blocks == alone, kind
    assert any("All your answers to these questions together" in line for line in said)
    assert not any("All your answers together" in line for line in said)


def test_budgets_of_several_kinds_stand_each_with_its_own_kind() -> None:
    """All of them are in one table: a row of items listed what histograms spend, and histograms what items do."""
    each = {name: KINDS[name]() for name in ("histograms", "items", "aggregates")}
    tables: dict[str, list[Any]] = {}
    for page in each.values():
        for name, rows in page.tables.items():
            tables.setdefault(name, []).extend(rows)
    parts = [{**page.promised, "kinds": [kind]} for kind, page in each.items()]
    together = replace(histograms(), tables=tables, statement={"questions": parts})
    for kind in KIND_PAGES:
        alone = tuple(block for page in each.values() for block in kind.budgets(page))
        assert kind.budgets(together) == alone


def test_hidden_levels_are_spoken_of_beside_other_kinds() -> None:
    """What they come to stands in the part of the statement that is about histograms."""
    statement = {**histograms().promised, "hidden_levels": {"epsilon_p": 1.0}}
    budgets = [{**row, "n_users": None, "level_leak": 2.5} for row in histograms().rows("budgets")]
    alone = histograms(statement=statement, tables={**histograms().tables, "budgets": budgets})
    beside = replace(alone, statement={"questions": [statement, items().promised]})
    for kind in KIND_PAGES:
        assert kind.budgets(beside) == kind.budgets(alone)
        assert kind.results(beside) == kind.results(alone)


def test_answers_that_are_used_several_times_are_named_as_readers_see_them() -> None:
    exposure = [{"column": "age", "attributes": ["age", "both"], "worst_epsilon": 3.0}]
    page = histograms(
        statement={**histograms().promised, "exposure": exposure},
        wording=Wording(attributes={"age": "Age in years", "both": "Age by region"}),
    )
    said = [run for run in everything(promise(page)) if isinstance(run, str)]
    assert " goes into Age in years, Age by region: at most ε = 3 together." in said


def test_rules_say_in_which_order_they_stand() -> None:
    said = [run for run in everything(tuple(kind.results(items()) for kind in KIND_PAGES)) if isinstance(run, str)]
    assert any("the highest lower ends of their intervals first" in run for run in said)


def everything(value: Any) -> Iterator[Any]:
    """Every value inside, at any depth."""
    yield value
    if is_dataclass(value):
        for field in fields(value):
            yield from everything(getattr(value, field.name))
    elif isinstance(value, tuple):
        for inner in value:
            yield from everything(inner)


def parts(page: Published, form: type) -> list[Any]:
    said = tuple(kind.results(page) for kind in KIND_PAGES)
    return [value for value in everything(said) if isinstance(value, form)]


def text(cell: Any) -> str:
    return "".join(run.text if isinstance(run, Run) else run for run in cell)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sections_of_a_kind(kind: str) -> None:
    assert outline(KINDS[kind]()) == GOLDEN[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_release_has_a_promise_and_nothing_else(kind: str) -> None:
    page = replace(KINDS[kind](), tables={})
    for part in KIND_PAGES:
        assert part.results(page) == ()
        assert part.budgets(page) == ()
        assert part.holds(page) == ""
        assert part.query(page) is None
    assert sum(bool(part.promise(page)) for part in KIND_PAGES) == 1
    gone = replace(page, statement=None, spec=None)
    assert not any(part.promise(gone) for part in KIND_PAGES)


@pytest.mark.parametrize(
    ("kind", "unit", "total"),
    [("histograms", "user", 3.0), ("numbers", "user", 3.0), ("items", "user", 5.0), ("aggregates", "item", 1.5)],
)
def test_what_a_stored_spec_spends(kind: str, unit: str, total: float) -> None:
    spec = KINDS[kind]().spec
    assert spec is not None
    assert [spend for part in KIND_PAGES if (spend := part.spends(spec))] == [(unit, total)]


class TestHistograms:
    def test_figures_are_those_of_the_table(self) -> None:
        page = histograms()
        rows = [row for row in page.rows("histograms") if row["attribute"] == "age"]
        (chart,) = parts(page, Bars)
        assert [(b.label, b.value, b.low, b.high, b.reliable) for b in chart.bars] == [
            (r["value"], r["frequency"], r["ci_low"], r["ci_high"], r["reliable"]) for r in rows
        ]
        assert [bar.figure for bar in chart.bars] == ["70.0 %", "30.0 %"]
        table = next(t for t in parts(page, Table) if t.title == "Numbers of age, combined")
        assert [[text(cell) for cell in row] for row in table.rows] == [
            ["18-29", "70.0 %", "2.0 %", "66.0 % to 74.0 %", "1,400", "69.9 %", "3.0 %", "yes"],
            ["30+", "30.0 %", "2.0 %", "26.0 % to 34.0 %", "600", "29.9 %", "3.0 %", "yes"],
        ]

    def test_a_crosstab_is_a_grid(self) -> None:
        """The part with fewer values is across, every cell the row of its combination."""
        page = histograms()
        (grid,) = (table for table in parts(page, Table) if table.look == "grid")
        assert [text(column.title) for column in grid.columns] == ["region", *AGES]
        assert [text(row[0]) for row in grid.rows] == list(REGIONS)
        shares = {row["value"]: row for row in page.rows("histograms")}
        for row in grid.rows:
            for age, cell in zip(AGES, row[1:], strict=True):
                own = shares[f"{age} × {text(row[0])}"]
                assert isinstance(cell, Shaded)
                assert cell.figure == words.percent(own["frequency"])
                assert cell.depth == pytest.approx(own["frequency"] / 0.4)
                assert cell.reliable == own["reliable"]

    def test_without_its_spec_a_crosstab_is_bars(self) -> None:
        assert len(parts(replace(histograms(), spec=None), Bars)) == 2

    def test_a_crosstab_too_wide_for_a_grid_is_bars(self) -> None:
        names = [f"v{i}" for i in range(20)]
        spec = {"attributes": [
            {"name": "a", "kind": "category", "values": names}, {"name": "b", "kind": "category", "values": names},
            {"name": "both", "kind": "crosstab", "of": ["a", "b"]},
        ]}  # fmt: skip
        rows = [share("both", f"{one} × {other}", 1 / 400) for one in names for other in names]
        page = replace(histograms(), spec=spec, tables={"histograms": rows})
        (chart,) = parts(page, Bars)
        assert len(chart.bars) == 40
        assert not [table for table in parts(page, Table) if table.look == "grid"]

    def test_binned_parts_have_the_bins_of_the_spec(self) -> None:
        spec = {"attributes": [
            {"name": "a", "kind": "category", "values": ["x", "y"]},
            {"name": "b", "kind": "binned", "edges": [0, 10, 20, 30], "quantiles": []},
            {"name": "both", "kind": "crosstab", "of": ["b", "a"]},
        ]}  # fmt: skip
        bins = ("[0, 10)", "[10, 20)", "[20, 30]")
        rows = [share("both", f"{low} × {name}", 1 / 6) for low in bins for name in ("x", "y")]
        (grid,) = (t for t in parts(replace(histograms(), spec=spec, tables={"histograms": rows}), Table) if t.look)
        assert [text(row[0]) for row in grid.rows] == list(bins)

    def test_methods_are_explained_where_they_stand(self) -> None:
        told = " ".join(text(p.text) for p in parts(histograms(), Paragraph))
        assert told.count("guarded (levels weigh as much as makes the interval shortest") == 1
        rows = [
            {**row, "method": "sum" if row["attribute"] == "both" else "guarded"}
            for row in histograms().rows("histograms")
        ]
        mixed = replace(histograms(), tables={"histograms": rows})
        told = " ".join(text(p.text) for p in parts(mixed, Paragraph))
        assert "combined by guarded (levels" in told
        assert "combined by sum (every level" in told
        assert "The fallback was taken." in told

    def test_quantiles_name_the_median(self) -> None:
        quantile = {
            "attribute": "age",
            "probability": 0.5,
            "quantile": 31.0,
            "standard_error": 1.0,
            "ci_low": 29.0,
            "ci_high": 33.0,
        }
        page = histograms()
        told = [text(p.text) for p in parts(replace(page, tables={**page.tables, "quantiles": [quantile]}), Paragraph)]
        assert "Its quantiles, values inside a bin spread evenly: median at 31.0 ± 1.0 (29.0 to 33.0)." in told

    def test_labels_are_shown_and_the_tables_own_names_beside_them(self) -> None:
        page = histograms(wording=Wording(attributes={"age": "Age in years"}, values={"age": {"30+": "older"}}))
        (section, *_) = (s for kind in KIND_PAGES for top in kind.results(page) for s in top.sections)
        assert section.title == "Age in years"
        (chart,) = parts(page, Bars)
        assert [bar.label for bar in chart.bars] == ["18-29", "older"]
        table = next(t for t in parts(page, Table) if t.title == "Numbers of Age in years, combined")
        assert text(table.rows[1][0]) == "older 30+"
        (grid,) = (table for table in parts(page, Table) if table.look == "grid")
        assert [text(column.title) for column in grid.columns] == ["region", "18-29", "older"]


class TestNumbers:
    def test_that_users_reported_on_some_numbers_only_is_said_where_it_is_so(self) -> None:
        some = "Each user reported on some of the numbers only"
        page = numbers()
        means = [{**row, "n_reports": page.n_users} for row in page.rows("means")]
        everybody = replace(page, tables={**page.tables, "means": means})
        assert some in str([*parts(page, Paragraph)])
        assert some not in str([*parts(everybody, Paragraph)])

    def test_all_means_are_one_table_with_small_charts(self) -> None:
        page = numbers()
        table = next(t for t in parts(page, Table) if t.title == "Numbers: all means")
        strips = [row[1] for row in table.rows]
        assert all(isinstance(strip, Strip) for strip in strips)
        assert [(s.at, s.low, s.high, s.bounds) for s in strips if isinstance(s, Strip)] == [
            (row["mean"], row["ci_low"], row["ci_high"], (0.0, 100.0)) for row in page.rows("means")
        ]
        assert [text(cell) for cell in (*table.rows[0][:1], *table.rows[0][2:])] == [
            "income", "40.0", "2.0", "36.0 to 44.0", "500", "yes",
        ]  # fmt: skip

    def test_a_mean_that_its_noise_drowns_is_marked(self) -> None:
        page = numbers()
        table = next(t for t in parts(page, Table) if t.title == "Numbers: all means")
        drowned = table.rows[1]
        assert text(drowned[0]) == "◦\u00a0debt"
        assert text(drowned[-1]) == "no"
        assert isinstance(drowned[1], Strip)
        assert not drowned[1].reliable
        assert "not reliable" in drowned[1].alternative
        assert "Not reliable here: 1 of 2." in " ".join(text(p.text) for p in parts(page, Paragraph))

    @pytest.mark.parametrize(("mean", "sound"), [(6.1, True), (5.9, False), (-3.0, False), (99.9, True)])
    def test_reliable_is_three_errors_above_the_lower_bound(self, mean: float, sound: bool) -> None:
        """As a share, whose lower bound is 0; another zero point or unit changes nothing."""
        row = {"mean": mean, "lower": 0.0, "upper": 100.0, "standard_error": 2.0}
        assert reliable(row) is sound
        moved = {"mean": mean / 2 - 40, "lower": -40.0, "upper": 10.0, "standard_error": 1.0}
        assert reliable(moved) is sound

    def test_the_half_quantile_is_the_median(self) -> None:
        (chart,) = parts(numbers(), Spread)
        assert [bar.label for bar in chart.bars] == ["mean", "0.25 quantile", "median"]
        assert [bar.figure for bar in chart.bars] == ["40.0", "20.0", "40.0"]
        assert "0.5 quantile" not in chart.alternative


def test_of_many_attributes_those_with_equal_budgets_stand_together() -> None:
    names = [f"n{i}" for i in range(20)]
    spent = [budget(name, "all", nominal_epsilon=2.0 if name == "n7" else 1.5) for name in names]
    statement = {**numbers().promised, "attributes": [{"attribute": name} for name in names]}
    page = replace(numbers(), tables={**numbers().tables, "budgets": spent}, statement=statement)
    (chart,) = (c for kind in KIND_PAGES for c in everything(kind.budgets(page)) if isinstance(c, GroupedBars))
    assert chart.rows == ("n0 and 18 more", "n7")
    assert [(point.row, point.value, point.figure) for point in chart.points] == [(0, 1.5, "1.5"), (1, 2.0, "2")]
    assert "Largest: n7 at level all with 2." in chart.alternative


class TestItems:
    def test_the_most_supported_come_first_by_their_labels(self) -> None:
        single, pair = parts(items(), Bars)
        assert [(bar.label, bar.figure) for bar in single.bars] == [("milk", "40.0 %"), ("Bread, any", "20.0 %")]
        assert [bar.label for bar in pair.bars] == ["Bread, any + milk"]

    def test_a_lower_bound_is_named_so(self) -> None:
        """Supports that longer rows may understate; results of earlier versions say nothing of it."""
        page = items()
        rows = [{**row, "understatement": 0.01 if row["length"] == 2 else 0.0} for row in page.rows("itemsets")]
        marked = replace(page, tables={**page.tables, "itemsets": rows})
        single, pair = parts(marked, Bars)
        assert pair.bars[0].figure == "at least 5.0 %"
        assert [bar.figure for bar in single.bars] == ["40.0 %", "20.0 %"]
        assert sum("lower bounds" in said for said in parts(marked, str)) == 1
        assert not any("lower bounds" in said for said in parts(page, str))

    def test_a_support_below_three_errors_is_not_reliable(self) -> None:
        single, pair = parts(items(), Bars)
        assert [bar.reliable for bar in (*single.bars, *pair.bars)] == [True, True, False]

    def test_an_epsilon_without_bound_is_told(self) -> None:
        blocks = [block for kind in KIND_PAGES for block in kind.promise(items())]
        table = next(block for block in blocks if isinstance(block, Table))
        assert [text(cell) for cell in table.rows[0]] == [
            "all", "4", "no bound", "any number of times likelier", "certain",
        ]  # fmt: skip


class TestAggregates:
    def test_attributes_stand_in_one_order_for_all_providers(self) -> None:
        """By what all providers together know, whatever a noisy one says."""
        charts = parts(aggregates(), Bars)
        assert [[bar.label for bar in chart.bars] for chart in charts] == [["drama", "war", "action"]] * 2
        tables = [t for t in parts(aggregates(), Table) if t.title.startswith("Numbers of")]
        assert [[text(row[0]) for row in table.rows] for table in tables] == [["drama", "war", "action"]] * 2

    def test_the_order_weighs_providers_by_their_errors(self) -> None:
        rows = [
            {"attribute": name, "total": total, "standard_error": error}
            for name, total, error in (("a", 10.0, 1.0), ("a", 0.0, 1.0), ("b", 6.0, 1.0), ("b", 100.0, 1000.0))
        ]
        assert attribute_order(rows) == ["b", "a"]

    def test_a_drowned_total_is_marked(self) -> None:
        charts = parts(aggregates(), Bars)
        assert {bar.label for chart in charts for bar in chart.bars if not bar.reliable} == {"drama", "war"}
        assert all(chart.legend for chart in charts)
        assert [bar.figure for bar in charts[0].bars] == ["300", "200", "100"]


def test_every_chart_says_where_its_numbers_are() -> None:
    for make in KINDS.values():
        charts = [
            value
            for value in everything(tuple(kind.results(make()) for kind in KIND_PAGES))
            if hasattr(value, "alternative")
        ]
        assert charts
        assert all(c.alternative.endswith(("below has all numbers.", "are below.", "stand beside it.")) for c in charts)


def test_mechanisms_are_explained() -> None:
    assert [name for name, _ in words.mechanisms(["subset", "bounded: bits", "pm + sw", "subset"])] == [
        "subset",
        "bits",
        "pm",
        "sw",
    ]
    assert words.mechanisms(["of another version"]) == []


def test_bars_hold_what_they_are_given() -> None:
    assert Bar("a", 1, 0, 2, "1").reliable
    assert Folded(("x",), ()).opened is False
