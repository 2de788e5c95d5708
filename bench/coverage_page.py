"""docs/coverage.md: the coverage that was measured last, as a table and a picture, between the document's markers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bench import common
from bench.coverage_report import LEAST, MOST, Cell, Row, least, rate, rows_of

DOCUMENT = common.ROOT / "docs" / "coverage.md"
PICTURE = common.ROOT / "docs" / "pictures" / "coverage.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
CLASSES = ("nobody", "one person", "rare", "middle", "top", "most")
_INK = "#888888"


def write(cells: Sequence[Cell], rows: Sequence[Row], again: Sequence[Row], left: int) -> None:
    """The part between the markers and the picture; the rest of the document stays."""
    everything = [*rows_of(cells), *rows]
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    made = "\n".join([paragraph(everything, left), "", table(everything), "", above(everything), "", second(again)])
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{rest.partition(END)[2]}")
    draw(summary(everything), PICTURE)
    print(f"{DOCUMENT}: {len(everything)} cells.")


def paragraph(rows: Sequence[Row], left: int) -> str:
    """What was run, in a paragraph."""
    defaults = [one for one in rows if one.get("default", True)]
    parts = ", ".join(
        f"{name} {sum(one.get('part') == name for one in rows):,}"
        for name in dict.fromkeys(one.get("part", "") for one in rows)
    )
    missing = f"{left:,} pieces of the grid have not been run yet." if left else "That is the whole grid."
    return (
        f"{len(rows):,} cells (a class of values in a setting) were measured: {parts}. {len(defaults):,} of them are "
        f"of what a spec gets that states no method. {missing}"
    )


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """By part, method and class: how many cells, the least, the middle and the most, and the limit of the least."""
    tests = max(sum(one.get("default", True) for one in rows), 1)
    lines = []
    for key in dict.fromkeys(_key(one) for one in rows):
        mine = sorted((one for one in rows if _key(one) == key), key=rate)
        lines.append(
            {
                "part": key[0],
                "method": key[1],
                "default": key[2],
                "class": key[3],
                "cells": len(mine),
                "repetitions": min(one["repetitions"] for one in mine),
                "least": rate(mine[0]),
                "middle": rate(mine[len(mine) // 2]),
                "most": rate(mine[-1]),
                "limit": least(min(one["repetitions"] for one in mine), tests),
                "worst": mine[0]["setting"],
            }
        )
    return sorted(lines, key=_order)


def _key(one: Row) -> tuple[str, str, bool, str]:
    part = one.get("part", "")
    return part, one.get("method", part), one.get("default", True), one["class"]


def _order(line: dict[str, Any]) -> tuple[bool, str, str, int]:
    place = CLASSES.index(line["class"]) if line["class"] in CLASSES else len(CLASSES)
    return (not line["default"], line["part"], line["method"], place)


def table(rows: Sequence[Row]) -> str:
    head = "| part: method | class | cells | repetitions | least | middle | most | may be as low as | least at |"
    lines = [head, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for line in summary(rows):
        limit = f"{line['limit']:.3f}" if line["default"] else "–"
        low = (
            f"**{line['least']:.3f}**" if line["default"] and line["least"] < line["limit"] else f"{line['least']:.3f}"
        )
        lines.append(
            f"| {_name(line)} | {line['class']} | {line['cells']:,} | {line['repetitions']:,} | {low} | "
            f"{line['middle']:.3f} | {line['most']:.3f} | {limit} | {line['worst']} |"
        )
    return "\n".join(lines)


def above(rows: Sequence[Row]) -> str:
    """Cells of defaults above 97 %, by what lets them."""
    defaults = [one for one in rows if one.get("default", True)]
    keys = sorted({(_title(one), _reason(one)) for one in defaults if rate(one) > MOST})
    lines = [
        f"Cells of defaults above {MOST:.0%}, and why they may be:",
        "",
        "| part: method | why | cells | of | most |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for title, why in keys:
        alike = [one for one in defaults if _title(one) == title]
        mine = [rate(one) for one in alike if _reason(one) == why and rate(one) > MOST]
        lines.append(f"| {title} | {why} | {len(mine):,} | {len(alike):,} | {max(mine):.3f} |")
    return "\n".join(lines)


def _title(one: Row) -> str:
    part, method = one.get("part", ""), one.get("method", one.get("part", ""))
    return method if method.startswith(part) else f"{part}: {method}"


def _reason(one: Row) -> str:
    return one.get("why", "") or ("chance" if one.get("tight", False) else "not drawn often enough to tell")


def _name(line: dict[str, Any]) -> str:
    method = line["method"] if line["method"].startswith(line["part"]) else f"{line['part']}: {line['method']}"
    return method + (", default" if line["default"] else "")


def second(again: Sequence[Row]) -> str:
    """The lowest cells, drawn anew."""
    if not again:
        return "The lowest cells of defaults have not been drawn anew yet.\n"
    limit = least(again[0]["repetitions"], len(again))
    lines = [
        f"The lowest {len(again)} cells of defaults, drawn anew with {again[0]['repetitions']:,} repetitions each; one "
        f"below {limit:.4f} is significantly below 94 %.",
        "",
        "| class | setting | coverage |",
        "| --- | --- | ---: |",
    ]
    lines += [f"| {one['class']} | {one['setting']} | {rate(one):.4f} |" for one in again]
    return "\n".join(lines) + "\n"


def draw(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """A line from the least to the most of every method and class, a tick in the middle, and 94 to 97 % behind."""
    import altair as alt
    import vl_convert

    shown = [line | {"name": _name(line), "what": "default" if line["default"] else "other method"} for line in lines]
    data = alt.Chart(pl.DataFrame(shown))
    names, kinds = list(dict.fromkeys(line["name"] for line in shown)), [*CLASSES]
    kinds += [kind for kind in dict.fromkeys(line["class"] for line in shown) if kind not in CLASSES]
    start = math.floor(50 * min((min(line["least"], line["limit"]) for line in shown), default=0.9)) / 50
    scale = alt.Scale(domain=[start, 1.0], nice=False, zero=False)

    def along(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title="coverage of a 95 % interval", scale=scale)

    # Names take as much room everywhere, so that one axis below a column is right for all of it.
    y = alt.Y(
        "class:N",
        title=None,
        sort=[kind for kind in kinds if any(kind == line["class"] for line in shown)],
        axis=alt.Axis(minExtent=105),
    )
    color = alt.Color(
        "what:N", title=None, scale=alt.Scale(range=["#1b6ca8", "#b5651d"]), legend=alt.Legend(orient="top")
    )
    span = data.mark_rule(strokeWidth=3).encode(x=along("least"), x2="most:Q", y=y, color=color)
    middle = data.mark_tick(thickness=2, size=11).encode(x=along("middle"), y=y, color=color)
    limit = data.transform_filter("datum.default").mark_tick(thickness=1, size=13, color=_INK)
    bounds = [
        data.mark_rule(color=_INK, strokeDash=[4, 3]).encode(x=alt.XDatum(bound, type="quantitative", scale=scale))
        for bound in (LEAST, MOST)
    ]
    layers = alt.layer(*bounds, limit.encode(x=along("limit"), y=y), span, middle).properties(
        width=300, height=alt.Step(15)
    )
    facet = alt.Facet("name:N", title=None, sort=names, header=alt.Header(labelFontSize=11, labelAnchor="start"))
    chart = layers.facet(facet=facet, columns=2).resolve_scale(y="independent").configure(background="white")
    path.write_text(vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[]))
