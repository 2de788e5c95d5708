"""The parts of the coverage bench: exact laws, nothing is run twice, wrong twins fail, the document follows."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bench.coverage
import bench.coverage_page
import bench.coverage_release
from bench import common
from bench.cells import draw_cell, draw_cell_support
from bench.coverage import MIXES, main, measure, protocols_of
from bench.coverage_em import Whole, counts_of, intervals, recipe_of
from bench.coverage_hidden import Hidden, draw_one, fits
from bench.coverage_hidden import grid as hidden_grid
from bench.coverage_page import BEGIN, END, write
from bench.coverage_parts import Clock, again_file, available, counted, run, second_stage, spread
from bench.coverage_report import AGAIN, LOWEST, REPEATS, Row, Setting, report, row
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, PureProtocol
from pldp.estimate.answer import answer
from pldp.estimate.combine import estimate_levels
from pldp.estimate.hidden import draw_hidden
from pldp.estimate.inference import estimate_histogram
from pldp.estimate.invert import Cover
from pldp.estimate.likelihood import maximum_likelihood, table_blocks
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.world import z_bound


@pytest.fixture(autouse=True)
def _results_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "RESULTS", tmp_path)


def made(covered: float, repetitions: int = REPEATS, **more: Any) -> Row:
    found: Row = {
        "setting": "a survey",
        "class": "top",
        "repetitions": repetitions,
        "covered": round(covered * repetitions),
        "length": 0.1,
    }
    return {**found, **more}  # type: ignore[typeddict-item]


def test_the_second_stage_sees_what_the_first_cannot() -> None:
    """93.3 % passes among 2,000 cells of 2,000 repetitions, and not once it is drawn again."""
    cells = [made(0.95)] * 2000 + [made(0.933)]
    assert report([], cells)
    assert not report([], cells, [made(0.933, AGAIN)])
    assert report([], cells, [made(0.938, AGAIN)])


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ({"covered": 1820}, False),
        ({"covered": 1820, "default": False}, True),  # another method: told, not judged
        ({"covered": 1980}, True),
        ({"covered": 1980, "tight": True}, False),
    ],
)
def test_rows_are_judged_by_what_they_are(change: dict[str, Any], passes: bool) -> None:
    assert report([], [made(0.95)] * 20 + [{**made(0.95), **change}]) is passes  # type: ignore[typeddict-item]


def test_a_wrong_epsilon_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports drawn at half of the budget that the estimator believes in; the twin at the right one passes."""
    setting = Setting(7, 1_000, 2, "thirds", "guarded", 1.0, "independent")

    def softer(dealt: Counts, sizes: Counts, protocols: tuple[PureProtocol, ...], rng: np.random.Generator) -> Counts:
        halves = tuple(KRR.for_budget(7, Fraction(part)) for part in ("1/3", "1/2", "1"))
        assert len(halves) == len(protocols)
        return draw_cell_support(dealt, sizes, halves, rng)

    assert report(measure(setting))
    monkeypatch.setattr(bench.coverage, "draw_cell_support", softer)
    assert not report(measure(setting))


def test_a_wald_interval_fails_where_the_published_one_holds() -> None:
    """A value of three people at a large budget: where none of them is at the clearest level, noise seems small."""
    setting = Setting(7, 1_000, 20, "thirds", "oc", 1.0, "independent")
    sizes, protocols = whole_counts(np.ones(3), 1_000), protocols_of(setting)
    rng = np.random.default_rng(1)
    support = draw_cell_support(draw_cell(3, sizes, REPEATS, rng), sizes, protocols, rng)
    found = answer("oc", estimate_levels(support[..., None], sizes, protocols), Cover(1.0))
    share, half = found.combined.frequency, 1.96 * found.combined.standard_error
    assert report([], [row("oc", setting.name, "rare", 3 / 1_000, found.low, found.high)])
    assert not report([], [row("oc", setting.name, "rare", 3 / 1_000, share - half, share + half)])


@pytest.mark.parametrize(("protocol", "method"), [("k-RR", "auem"), ("BRR", "auem"), ("BRR", "self-calibrated")])
def test_one_value_has_the_law_that_whole_histograms_have(protocol: str, method: str) -> None:
    """Means and variances of the value's support by told level, or of it and all others, over 20,000 repetitions."""
    setting = Hidden(4, 60, 2, 1, "thirds", protocol, method)
    rng, repeats = np.random.default_rng(5), 20_000
    counts = np.array([13, 20, 17, 10])
    ours, told, truth = draw_one(setting, 13, repeats, rng)
    dealt = draw_levels(counts, setting.sizes, repeats, rng)
    whole, who = draw_hidden(dealt, setting.protocols, setting.report, rng)
    theirs = np.stack([whole[..., 0], whole[..., 1:].sum(axis=-1)], axis=-1)
    assert np.all(truth == 13 / 60)
    by_level, together = [(ours[..., 0], theirs[..., 0]), (told, who)], [(ours[:, 0], theirs.sum(axis=1))]
    for one, other in by_level if method == "auem" else together:
        for moment in (1, 2):
            a, b = (
                (side - theirs_mean) ** moment for side, theirs_mean in ((one, other.mean(0)), (other, other.mean(0)))
            )
            error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / repeats)
            assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < z_bound(2 * 9) * error)


def test_hidden_settings_have_names_of_their_own_and_every_estimator() -> None:
    settings = [*hidden_grid(), *fits()]
    assert len({setting.name for setting in settings}) == len(settings)
    assert {setting.method for setting in settings} == {"auem", "self-calibrated", "sum", "em"}
    for k, n, epsilon in product((2, 3, 7, 33, 257), (200, 1_000, 20_000, 1_000_000), (0.5, 2, 6, 20)):
        assert any((one.values, one.users, one.epsilon) == (k, n, epsilon) for one in settings)


def test_what_was_run_is_not_run_again_and_what_is_late_is_left() -> None:
    calls: list[str] = []

    def piece(name: str) -> Any:
        def call() -> list[Row]:
            calls.append(name)
            return [made(0.95, setting=name)]

        return name, call

    modules = {
        "some": SimpleNamespace(pieces=lambda: [piece("a"), piece("b")]),
        "whole": SimpleNamespace(rows=lambda: piece("c")[1]()),
    }
    late = Clock(-1.0)
    assert run(modules, late) == []
    assert (late.left, calls) == (3, [])
    first = run(modules, Clock(60))
    assert sorted(calls) == ["a", "b", "c"]
    assert run(modules, Clock(-1.0)) == first
    assert sorted(calls) == ["a", "b", "c"]
    assert {(one["part"], one["setting"]) for one in first} == {("some", "a"), ("some", "b"), ("whole", "c")}


def test_every_part_is_about_as_far_as_any_other_when_time_is_up() -> None:
    calls: list[str] = []
    parts = [[partial(calls.append, name)] * often for name, often in (("a", 100), ("b", 10), ("c", 1))]
    for one in spread(parts)[:56]:
        one()
    assert [calls.count(name) for name in "abc"] == [50, 5, 1]


def test_whole_histograms_are_covered_as_published() -> None:
    """All repetitions at once: what a release does one by one, a fallback to `sum` included."""
    rng = np.random.default_rng(3)
    for setting in (Whole(7, 200, 6, "five", "em"), Whole(7, 20_000, 6, "five", "guarded", "auto")):
        counts, sizes = counts_of(setting), setting_sizes(setting)
        protocols = tuple(KRR.for_budget(7, Fraction(setting.epsilon) * part) for _, part in MIXES["five"])
        support = draw_support(draw_levels(counts, sizes, 3, rng), protocols, rng)
        support[0, 0] = np.roll(support[0, 0], 3)
        ends, agreed = intervals(setting, support, sizes, protocols), []
        for i, one in enumerate(support):
            likelihood = partial(maximum_likelihood, table_blocks(protocols, one), protocols)
            levels = estimate_levels(one, sizes, protocols)
            published = estimate_histogram(levels, recipe_of(setting), None, rng, likelihood)
            assert published.ci_low == pytest.approx(ends.low[i], abs=1e-9)
            assert published.ci_high == pytest.approx(ends.high[i], abs=1e-9)
            agreed.append(published.agreed)
        assert setting.method == "em" or agreed == [False, True, True]


def setting_sizes(setting: Whole) -> Counts:
    return whole_counts(np.array([share for share, _ in MIXES[setting.mix]]), setting.users)


def test_a_share_of_intervals_counts_as_so_many_repetitions() -> None:
    told = {"setting": "s", "class": "pairs", "repetitions": 24, "intervals": 240, "covered": 0.95, "length": 0.1}
    assert counted("items", told)["covered"] == 23
    assert counted("items", {**told, "covered": 24})["covered"] == 24
    assert counted("items", {**told, "covered": 1.0})["covered"] == 24


def test_the_lowest_that_can_are_drawn_again_once() -> None:
    asked: list[tuple[str, str, int]] = []

    def again(setting: str, kind: str, repeats: int) -> Row | None:
        asked.append((setting, kind, repeats))
        return None if setting == "s0" else made(0.95, repeats, setting=setting)

    rows = [made(0.90 + i / 1000, setting=f"s{i}", part="some") for i in range(40)]
    rows += [made(0.5, setting="cannot", part="other"), made(0.5, setting="named", part="some", default=False)]
    module = {"some": SimpleNamespace(again=again), "other": SimpleNamespace()}
    found = second_stage(rows, module, again, Clock(60))
    assert [one["setting"] for one in found] == [f"s{i}" for i in range(1, LOWEST + 1)]
    assert {repeats for _, _, repeats in asked} == {AGAIN}
    n_asked = len(asked)
    assert second_stage(rows, module, again, Clock(-1.0)) == found
    assert len(asked) == n_asked
    again_file().unlink()
    late = Clock(-1.0)
    assert second_stage(rows, module, again, late) == []
    assert late.left == LOWEST


def test_a_release_in_memory_has_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.coverage_release, "REPEATS", 5)
    for name in ("as it comes", "hidden levels, BRR"):
        rows = bench.coverage_release.measure(name, 400, 6)
        assert {one["class"] for one in rows} == {"nobody", "one person", "middle", "top"}
        assert {one["repetitions"] for one in rows} == {5}
        assert sum(one["covered"] for one in rows) > 0.7 * 5 * len(rows)


def test_the_document_has_the_figures_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "coverage.md"
    document.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    monkeypatch.setattr(bench.coverage_page, "DOCUMENT", document)
    monkeypatch.setattr(bench.coverage_page, "PICTURE", tmp_path / "coverage.svg")
    rows = [
        made(0.951, part="hidden", method="hidden auem"),
        made(0.90, part="hidden", method="hidden auem", setting="bad"),
    ]
    write([], rows, [made(0.9451, AGAIN)], 3)
    text = document.read_text()
    assert "| hidden auem, default | top | 2 | 2,000 | **0.900** | 0.951 | 0.951 |" in text
    assert "| bad |" in text
    assert "| top | a survey | 0.9451 |" in text
    assert "3 pieces of the grid have not been run yet." in text
    assert "old" not in text
    assert text.startswith("# Before")
    assert text.endswith("after\n")
    assert "<svg" in (tmp_path / "coverage.svg").read_text()
    write([], rows, [made(0.9451, AGAIN)], 3)
    assert document.read_text() == text, "written again it is the same"


def test_the_real_document_has_its_markers_and_picture() -> None:
    text = bench.coverage_page.DOCUMENT.read_text()
    assert text.index(BEGIN) < text.index(END)
    assert f"(pictures/{bench.coverage_page.PICTURE.name})" in text
    assert bench.coverage_page.PICTURE.is_file()


def test_some_parts_alone_and_only_what_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without time nothing is run, and the call says that something is left; parts that are not there are no error."""
    assert not main(["--only", "em", "--seconds", "-1"])
    assert not (tmp_path / "coverage_rows.jsonl").exists()
    assert json.loads((tmp_path / "coverage.json").read_text())["measures"] == []
    assert available(["nothing"]) == {}
