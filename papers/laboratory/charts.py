"""Pictures of a reproduction: ours as lines with error bars, the paper's as hollow marks on dashed lines.

A method has one colour and one shape in all papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
from markupsafe import Markup

from pldp.papers.laboratory.altair_charts import inline, quiet_axis, render, top_legend
from pldp.papers.model import Compared, Picture, Point
from pldp.tasks.drawing import INK, PALETTE, SHAPES, plain

BARS = 2.0
"""Standard errors on either side of a point."""

_LARGEST, _SMALLEST = 64, 28
"""Of marks, in square pixels."""

_BLUE, _ORANGE, _GREEN, _PINK, _BROWN, _GREY = range(len(PALETTE))
_CIRCLE, _SQUARE, _UP, _DIAMOND, _DOWN, _CROSS, _RIGHT = range(len(SHAPES))

LOOKS: dict[str, tuple[int, int]] = {
    # mpldp
    "BRR": (_GREY, _CROSS),
    "OC": (_ORANGE, _SQUARE),
    "OP": (_GREEN, _UP),
    "oc+": (_BLUE, _CIRCLE),
    "op-exact": (_PINK, _DIAMOND),
    # febsf
    "AUEM": (_ORANGE, _UP),
    "AUEM, shares known": (_GREEN, _DIAMOND),
    "AUEM, k-RR levels": (_ORANGE, _DOWN),
    "EMOA": (_PINK, _CROSS),
    "RCF": (_GREEN, _SQUARE),
    "RCF, exponent doubled": (_GREEN, _UP),
    "APLDP": (_BROWN, _DIAMOND),
    "PPDA": (_GREY, _DOWN),
    "PPDA, exponent doubled": (_GREY, _UP),
    "PPDA, one spare bit": (_GREY, _CIRCLE),
    "PBP": (_GREY, _RIGHT),
    "correct EM": (_BLUE, _UP),
    "self-calibrated": (_BLUE, _DOWN),
    # multiupp
    "DP-MultiUPP (MAE)": (_BLUE, _CIRCLE),
    "DP-MultiUPP (MSE)": (_ORANGE, _SQUARE),
    "DP-MultiUPP (MAEL)": (_GREEN, _UP),
    "baseline": (_GREY, _CROSS),
    "lower bound": (_BROWN, _DIAMOND),
    # which method when
    "k-RR, oc+": (_ORANGE, _SQUARE),
    "subset, oc+": (_BLUE, _CIRCLE),
    "subset/k-RR, oc+": (_GREEN, _UP),
    "k-RR, em": (_ORANGE, _SQUARE),
    "k-RR, auem": (_ORANGE, _DOWN),
    "BRR, self-calibrated": (_BLUE, _DOWN),
    "OUE, self-calibrated": (_GREEN, _DOWN),
    "BRR, auem": (_PINK, _UP),
    "k-RR reports": (_ORANGE, _SQUARE),
    "BRR reports": (_BLUE, _DOWN),
    "OUE reports": (_GREEN, _DOWN),
    "one budget, subset": (_GREY, _DIAMOND),
    "one budget, k-RR": (_GREY, _CIRCLE),
    # pmpm
    "MPM": (_ORANGE, _SQUARE),
    "PMPM τ=1.125": (_GREEN, _UP),
    "PMPM τ=1.25": (_BROWN, _DIAMOND),
    "PMPM τ=1.375": (_PINK, _DOWN),
    "PMPM τ=1.5": (_BLUE, _RIGHT),
    "PMPM τ=1.5, simple": (_BLUE, _CROSS),
    "Duchi": (_GREY, _CROSS),
    "Laplace": (_GREY, _DOWN),
    "HM": (_BROWN, _SQUARE),
    "best k, Eq. 16": (_BLUE, _CIRCLE),
    "best k, data": (_BLUE, _DOWN),
    # aprr
    "LDP-APRR": (_ORANGE, _UP),
    "GR-PPFM": (_GREEN, _SQUARE),
    "MASK": (_GREY, _CROSS),
    "same ε, symmetric": (_PINK, _DIAMOND),
    "bounded (ours)": (_BLUE, _CIRCLE),
}
"""Colour and shape of a method, by its place in the palette; one that is not here takes the next pair that is free."""


def look(series: str, others: Sequence[str]) -> tuple[str, str]:
    if series in LOOKS:
        colour, shape = LOOKS[series]
    else:
        free = [(c, s) for s in range(len(SHAPES)) for c in range(len(PALETTE)) if (c, s) not in LOOKS.values()]
        colour, shape = free[sorted(set(others) - set(LOOKS)).index(series) % len(free)]
    return PALETTE[colour], SHAPES[shape]


def panel_chart(picture: Picture, panel: str, points: Sequence[Point], compared: Sequence[Compared]) -> Markup:
    """One panel. Points and comparisons are those of its place; every series of the place has a look."""
    known = list(dict.fromkeys([*(c.fact.series for c in compared), *(p.series for p in points)]))
    ours = [_ours(p, picture.log_y) for p in points if p.panel == panel]
    theirs = [
        {"series": plain(c.fact.series), "x": _x(c.fact.x), "value": c.fact.printed}
        for c in compared
        if c.fact.panel == picture.beside.get(panel, panel)
    ]
    present = [name for name in known if any(row["series"] == plain(name) for row in [*ours, *theirs])]
    numeric = picture.kind == "lines" and all(isinstance(row["x"], float) for row in [*ours, *theirs])
    colour, shape = _told_apart(present, known)
    x = _axis_x(picture, numeric)
    y = alt.Y(
        "value:Q",
        title=picture.y_title,
        scale=alt.Scale(type="log") if picture.log_y else alt.Scale(zero=picture.kind == "bars"),
        axis=quiet_axis(format=_ticks([row["value"] for row in [*ours, *theirs]]), tickCount=5),
    )
    offset = {} if numeric else {"xOffset": alt.XOffset("series:N", sort=[plain(name) for name in present])}
    layers: list[Any] = []
    if ours:
        base = inline(ours, x=x, **offset)
        whiskers = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour)
        marks = base.mark_point(filled=True, opacity=1).encode(y=y, color=colour, shape=shape, size=_sizes(present))
        layers += [base.mark_line(strokeWidth=1.4).encode(y=y, color=colour)] if numeric else []
        layers += [marks, whiskers]
    if theirs:
        base = inline(theirs, x=x, **offset)
        dashed = base.mark_line(strokeWidth=1, strokeDash=[3, 3], opacity=0.8).encode(y=y, color=colour)
        hollow = base.mark_point(filled=False, size=46, strokeWidth=1.3, opacity=1).encode(
            y=y, color=colour, shape=shape
        )
        layers += [dashed, hollow] if numeric else [hollow]
    drawn: Any = alt.layer(*layers)
    return render(drawn, _alternative(picture, panel, present), height=250)


def _ours(point: Point, log: bool) -> dict[str, Any]:
    reach = BARS * point.standard_error
    # On a logarithmic axis a bar that comes close to zero would take all the room.
    low = max(point.value - reach, point.value / 4) if log and point.value > 0 else point.value - reach
    return {
        "series": plain(point.series),
        "x": _x(point.x),
        "value": point.value,
        "low": low,
        "high": point.value + reach,
    }


def _x(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return plain(text)


def _ticks(values: Sequence[float]) -> str:
    """Never powers of ten for plain numbers; thousands and millions by their letters."""
    return "~s" if max(values, default=0) >= 10_000 and min(values) >= 1 else "~r"


def _axis_x(picture: Picture, numeric: bool) -> alt.X:
    if numeric:
        scale = alt.Scale(type="log") if picture.log_x else alt.Scale(zero=False, nice=False, padding=8)
        return alt.X(
            "x:Q",
            title=picture.x_title,
            scale=scale,
            axis=quiet_axis(format="~r", tickCount=6, grid=False, labelOverlap="greedy", labelSeparation=5),
        )
    axis = quiet_axis(labelAngle=0, labelLimit=150, grid=False)
    return alt.X("x:N", sort=None, title=picture.x_title, axis=axis, scale=alt.Scale(paddingInner=0.25))


def _told_apart(present: Sequence[str], known: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    looks = [look(name, known) for name in present]
    domain = [plain(name) for name in present]
    room = (
        {"columns": 3, "labelLimit": 90} if max(map(len, domain), default=0) < 12 else {"columns": 2, "labelLimit": 140}
    )
    legend = top_legend(symbolOpacity=1, symbolFillColor=INK, **room)
    return (
        alt.Color("series:N", scale=alt.Scale(domain=domain, range=[c for c, _ in looks]), legend=legend),
        alt.Shape("series:N", scale=alt.Scale(domain=domain, range=[s for _, s in looks]), legend=legend),
    )


def _sizes(present: Sequence[str]) -> alt.Size | alt.SizeValue:
    """What is drawn later is smaller: a method that lies exactly on another does not hide it."""
    if len(present) == 1:
        return alt.SizeValue(_SMALLEST)  # a scale of one size is none
    step = (_LARGEST - _SMALLEST) / (len(present) - 1)
    sizes = [_LARGEST - step * place for place in range(len(present))]
    domain = [plain(name) for name in present]
    return alt.Size("series:N", scale=alt.Scale(domain=domain, range=sizes), legend=None)


def _alternative(picture: Picture, panel: str, series: Sequence[str]) -> str:
    where = f"{picture.place}, {panel}" if panel else picture.place
    return (
        f"{where}: {picture.y_title} over {picture.x_title} for {', '.join(series)}, ours and as printed. "
        "The table below has all numbers."
    )
