"""The page of a reproduced paper: every table and figure, ours beside theirs; static, offline, without script."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from pldp.papers.compare import ALPHA, Tally, by_key, tally
from pldp.papers.laboratory.grids import draw_panel
from pldp.papers.model import Compared, Fact, Picture, Point, Points
from pldp.papers.registry import CITATIONS, NAMES, Paper, title
from pldp.tasks.drafts import replace

_SIGNS = {"agrees": ("✓", "good"), "differs": ("≠", "soft"), "unexplained": ("✗", "bad")}
_BOUNDS = {"equals": "", "at most": "≤ ", "at least": "≥ "}


def write_paper(
    folder: Path,
    name: str,
    paper: Paper,
    points: Sequence[Point],
    compared: Sequence[Compared],
    effort: tuple[int, float, int],
) -> Path:
    n_runs, seconds, repeats = effort
    page = (
        _templates()
        .get_template("reproduce.html.j2")
        .render(
            title=title(name),
            citation=CITATIONS[name],
            tally=str(tally(compared)),
            n_runs=n_runs,
            seconds=seconds,
            repeats=repeats,
            alpha=ALPHA,
            sections=list(_sections(paper, points, compared)),
        )
    )
    path = folder / f"{name}.html"
    replace(path, page.encode(), mode=0o644)
    return path


def write_index(folder: Path, tallies: Mapping[str, Tally]) -> Path:
    papers = [{"name": name, "citation": CITATIONS[name], "tally": tallies[name]} for name in NAMES if name in tallies]
    page = _templates().get_template("reproduce_index.html.j2").render(papers=papers)
    path = folder / "index.html"
    replace(path, page.encode(), mode=0o644)
    return path


def _sections(paper: Paper, points: Sequence[Point], compared: Sequence[Compared]) -> Iterable[dict[str, Any]]:
    """A section a place: those with a picture as the paper's module orders them, then whatever else there is."""
    keyed = by_key(points)
    reasons = {reason.key: reason for reason in paper.REASONS}
    pictured = {picture.place: picture for picture in paper.PICTURES}
    others = [*(point.place for point in points), *(each.fact.place for each in compared), *paper.NOTES]
    for place in dict.fromkeys([*pictured, *others]):
        picture = pictured.get(place) or Picture(place=place, title="", x_title="x", y_title="", kind="table")
        place_points = [point for point in points if point.place == place]
        facts = [each for each in compared if each.fact.place == place]
        counts = Counter(each.reason for each in facts if each.verdict == "differs")
        there = {*(p.panel for p in place_points), *(c.fact.panel for c in facts)}  # a quick run may lack some
        panels = [panel for panel in picture.panels if panel in there] or sorted(there)
        drawn = picture.kind != "table" and bool(place_points or facts)
        yield {
            "place": place,
            "title": picture.title,
            "x_title": picture.x_title,
            "tally": tally(facts),
            "notes": _paragraphs(paper, place, keyed),
            "reasons": [{"numbers": n, "reason": reasons[key]} for key, n in counts.items()],
            "kind": picture.kind,
            "charts": [{"panel": panel, "svg": draw_panel(picture, panel, place_points, facts)} for panel in panels]
            if drawn
            else [],
            "tables": [_table(panel, place_points, facts) for panel in panels] if picture.kind == "table" else [],
            "rows": _rows(place_points, facts),
        }


def _paragraphs(paper: Paper, place: str, points: Points) -> list[str]:
    note = paper.NOTES.get(place, "")
    text = note if isinstance(note, str) else note(points)
    return [paragraph for paragraph in text.split("\n\n") if paragraph]


def _table(panel: str, points: Sequence[Point], compared: Sequence[Compared]) -> dict[str, Any]:
    """Rows by x, a column a series, in the same order in every panel."""
    ours = {(p.x, p.series): p for p in points if p.panel == panel}
    theirs = {(c.fact.x, c.fact.series): c for c in compared if c.fact.panel == panel}
    keys = [*theirs, *ours]
    present = {series for _, series in keys}
    known = dict.fromkeys([*(c.fact.series for c in compared), *(p.series for p in points)])
    columns = [series for series in known if series in present]
    rows = [
        {"x": x, "cells": [_cell(ours.get((x, series)), theirs.get((x, series))) for series in columns]}
        for x in sorted({x for x, _ in keys}, key=_order)
    ]
    return {"panel": panel, "columns": columns, "rows": rows, "compared": bool(theirs)}


def _cell(point: Point | None, compared: Compared | None) -> dict[str, Any] | None:
    if point is None and compared is None:
        return None
    sign, mood = _SIGNS[compared.verdict] if compared is not None else ("", "")
    return {
        "ours": "–" if point is None else figure(point.value, point.standard_error),
        "printed": None if compared is None else _printed(compared.fact),
        "sign": sign,
        "mood": mood,
    }


def _rows(points: Sequence[Point], compared: Sequence[Compared]) -> list[dict[str, Any]]:
    facts = {(c.fact.panel, c.fact.series, c.fact.x): c for c in compared}
    ours = {(p.panel, p.series, p.x): p for p in points}
    rows = []
    for key in sorted({*facts, *ours}, key=lambda each: (each[0], each[1], _order(each[2]))):
        point, fact = ours.get(key), facts.get(key)
        sign, mood = _SIGNS[fact.verdict] if fact is not None else ("", "")
        verdict = "" if fact is None else f"{sign} {fact.verdict}"
        if fact is not None and fact.verdict == "differs":
            verdict += f": {fact.reason} ({fact.basis})"
        rows.append(
            {
                "panel": key[0],
                "series": key[1],
                "x": key[2],
                "ours": "–" if point is None else _digits(point.value),
                "error": "–" if point is None or not point.standard_error else f"{point.standard_error:.2g}",
                "printed": "" if fact is None else _printed(fact.fact),
                "verdict": verdict,
                "mood": mood,
            }
        )
    return rows


def figure(value: float, error: float) -> str:
    """A number with its Monte Carlo error, if it has one."""
    return _digits(value) if not error else f"{_digits(value)} ± {error:.1g}"


def _printed(fact: Fact) -> str:
    """What the paper prints, or the bound that it claims."""
    return _BOUNDS[fact.claim] + _digits(fact.printed)


def _digits(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.5g}"


def _order(x: str) -> tuple[int, float, str]:
    try:
        return (0, float(x), x)
    except ValueError:
        return (1, 0.0, x)


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("pldp.papers"), jinja2.PackageLoader("pldp.tasks")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
