"""Pictures of another kind: a map of the best method with its error in every cell, and named numbers as dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
from markupsafe import Markup

from pldp.papers.laboratory.altair_charts import inline, quiet_axis, render, top_legend
from pldp.papers.laboratory.charts import BARS, look, panel_chart
from pldp.papers.model import Compared, Picture, Point
from pldp.tasks.drawing import INK, PALETTE, plain

ROW = 34


def draw_panel(picture: Picture, panel: str, points: Sequence[Point], compared: Sequence[Compared]) -> Markup:
    match picture.kind:
        case "grid":
            return grid(picture, panel, points)
        case "dots":
            return dots(picture, panel, points, compared)
        case _:
            return panel_chart(picture, panel, points, compared)


def grid(picture: Picture, panel: str, points: Sequence[Point]) -> Markup:
    """A point's x is "column; row", and so is the picture's title of x; the series is the method that won the cell."""
    panel_points = [point for point in points if point.panel == panel]
    columns, rows = (sorted({_cell(point)[side] for point in panel_points}, key=_order) for side in (0, 1))
    known = list(dict.fromkeys(point.series for point in points))
    present = [name for name in known if any(point.series == name for point in panel_points)]
    cells = [
        {
            "column": _cell(point)[0],
            "row": _cell(point)[1],
            "series": plain(point.series),
            "method": plain(point.series.split(",")[0]),
            "error": _short(point.value),
        }
        for point in panel_points
    ]
    titles = [title.strip() for title in picture.x_title.split(";")]
    axis: dict[str, Any] = {"ticks": False, "grid": False, "labelAngle": 0, "labelPadding": 4}
    base = inline(
        cells,
        x=alt.X("column:N", sort=columns, title=titles[0], axis=quiet_axis(**axis)),
        y=alt.Y("row:N", sort=rows, title=titles[1], axis=quiet_axis(**axis)),
    )
    room = {"columns": 2, "labelLimit": 150}
    fill = alt.Color(
        "series:N",
        scale=alt.Scale(domain=[plain(name) for name in present], range=[look(name, known)[0] for name in present]),
        legend=top_legend(symbolType="square", **room),
    )
    areas = base.mark_rect(opacity=0.3, stroke=INK, strokeOpacity=0.25).encode(color=fill)
    names = base.mark_text(color=INK, fontSize=8, dy=-6).encode(text="method:N")
    errors = base.mark_text(color=INK, fontSize=10, dy=6, fontWeight="bold").encode(text="error:N")
    alternative = (
        f"{picture.place}, {panel}: the best method and its error for every {titles[0]} and {titles[1]}: "
        f"{', '.join(present)}. The table below has all numbers."
    )
    return render(areas + names + errors, alternative, height=ROW * len(rows))


def dots(picture: Picture, panel: str, points: Sequence[Point], compared: Sequence[Compared]) -> Markup:
    """One row a name: ours as a filled mark with its bar, what is printed as a hollow one."""
    ours: list[dict[str, Any]] = [
        {
            "name": plain(point.x),
            "value": point.value,
            "low": point.value - BARS * point.standard_error,
            "high": point.value + BARS * point.standard_error,
        }
        for point in sorted(points, key=lambda point: point.value)
        if point.panel == panel
    ]
    theirs = [{"name": plain(c.fact.x), "value": c.fact.printed} for c in compared if c.fact.panel == panel]
    order = [str(name) for name in dict.fromkeys(row["name"] for row in [*ours, *theirs])]
    names = quiet_axis(ticks=False, labelLimit=200, labelPadding=5, labelOverlap=False)
    y = alt.Y("name:N", sort=order, title=None, axis=names)
    x = alt.X("value:Q", title=picture.y_title, scale=alt.Scale(zero=True), axis=quiet_axis(format="~g", tickCount=4))
    colour = PALETTE[0]
    base = inline(ours, y=y)
    layers: list[Any] = [
        base.mark_rule(strokeWidth=1.4, color=colour).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(filled=True, size=40, opacity=1, color=colour).encode(x=x),
    ]
    if theirs:
        hollow = inline(theirs, y=y).mark_point(
            filled=False, size=90, strokeWidth=1.4, opacity=1, color=INK, shape="diamond"
        )
        layers.append(hollow.encode(x=x))
    alternative = f"{picture.place}: {picture.y_title} of {', '.join(order)}. The table below has all numbers."
    chart: Any = alt.layer(*layers)
    return render(chart, alternative, height=alt.Step(20))


def _cell(point: Point) -> tuple[str, str]:
    column, _, row = point.x.partition(";")
    return plain(column.strip()), plain(row.strip())


def _order(name: str) -> tuple[float, str]:
    """Numbers by size, before words."""
    return (float(name), name) if name.replace(".", "", 1).isdigit() else (math.inf, name)


def _short(value: float) -> str:
    """Two digits of a share, as per cent."""
    return f"{100 * value:.2g} %"
