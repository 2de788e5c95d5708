"""Charts as inline SVG: drawn by Altair, rendered here, so that a page needs neither script nor network.

Text and axes take the page's colour, and marks have a contrast of 3 or more on light and dark alike. Whatever a colour
tells, a shape, a dash or a place tells too. A chart is as wide as a phone: it grows on a desk and stays legible.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup, escape

PALETTE = ("#0072B2", "#D55E00", "#008F68", "#B8609A", "#96701F", "#767B84")
"""After Okabe and Ito, the pale ones darkened."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
"""Seven against six colours: no pair comes twice before the forty-third."""

WIDTH = 340
RELIABLE, UNRELIABLE = "reliable", "not reliable"
FLAG = "◦ "
"""Before the name of a value that is not reliable."""

INK = "currentColor"
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""What the renderer measures labels with; other fonts would run out of the picture."""

_SHORT = 11
"""Letters of a name of which three fit in a line of the legend; of longer ones, two."""

_OPENING = re.compile(r'<svg [^>]*viewBox="([^"]*)"[^>]*>')
_FADED = alt.Scale(domain=[RELIABLE, UNRELIABLE], range=[PALETTE[0], PALETTE[0] + "24"])
_DASHED = alt.Scale(domain=[RELIABLE, UNRELIABLE], range=[[1, 0], [3, 2]])

Rows = Sequence[dict[str, Any]]


def histogram(rows: Rows, alternative: str, *, row_height: float, span: tuple[float, float]) -> Markup:
    """Combined shares. Rows: value, frequency, ci_low, ci_high, reliable."""
    shown = [
        {
            **_pick(row, "frequency", "ci_low", "ci_high"),
            "value": ("" if row["reliable"] else FLAG) + plain(row["value"]),
            "state": RELIABLE if row["reliable"] else UNRELIABLE,
        }
        for row in rows
    ]
    base = inline(shown, y=_names("value"))
    legend = top_legend(symbolType="square", symbolStrokeWidth=1.2)
    bars = base.mark_bar(strokeWidth=1.2).encode(
        x=_shares("frequency", span),
        stroke=alt.Stroke("state:N", scale=alt.Scale(domain=[RELIABLE, UNRELIABLE], range=[PALETTE[0]]), legend=legend),
        fill=alt.Fill("state:N", scale=_FADED, legend=legend),
        strokeDash=alt.StrokeDash("state:N", scale=_DASHED, legend=legend),
    )
    return render(bars + _whiskers(base), alternative, height=_rows(row_height))


def level_estimates(
    rows: Rows,
    levels: Sequence[str],
    known: Sequence[str],
    alternative: str,
    *,
    row_height: float,
    span: tuple[float, float],
) -> Markup:
    """Shares as each level alone estimates them. Rows: value, level, frequency, ci_low, ci_high.

    A level looks as it does among all that are `known`, whether or not somebody chose the others.
    """
    shown = [
        {**_pick(row, "frequency", "ci_low", "ci_high", "level"), "value": plain(row["value"]), "zero": 0}
        for row in rows
    ]
    base = inline(shown, y=_names("value"), yOffset=alt.YOffset("level:N", sort=list(levels)))
    colour, shape = _told_apart("level", levels, known)
    whiskers = base.mark_rule(strokeWidth=1.4).encode(x=_shares("ci_low", span), x2="ci_high:Q", color=colour)
    points = base.mark_point(filled=True, size=30, opacity=1).encode(x="frequency:Q", color=colour, shape=shape)
    nought = inline(shown[:1]).mark_rule(color=INK, opacity=0.6).encode(x="zero:Q")
    return render(nought + whiskers + points, alternative, height=_rows(row_height))


def budgets(rows: Rows, levels: Sequence[str], alternative: str) -> Markup:
    """What a user spends on each attribute. Rows: attribute, level, epsilon."""
    base = inline(list(rows), y=_names("attribute"), yOffset=alt.YOffset("level:N", sort=list(levels)))
    colour, shape = _told_apart("level", levels)
    x = alt.X("epsilon:Q", title="budget ε", axis=quiet_axis(format="~g"))
    stems = base.mark_bar(height={"band": 0.55}).encode(x=x, color=colour)
    heads = base.mark_point(filled=True, size=34, opacity=1).encode(x="epsilon:Q", color=colour, shape=shape)
    return render(stems + heads, alternative, height=_rows(11 * len(levels) + 8))


def totals(rows: Rows, alternative: str) -> Markup:
    """Sums with intervals. Rows: attribute, total, ci_low, ci_high."""
    shown = [{**_pick(row, "total", "ci_low", "ci_high"), "attribute": plain(row["attribute"])} for row in rows]
    base = inline(shown, y=_names("attribute"))
    x = alt.X("total:Q", title="total", axis=quiet_axis(format="~s", tickCount=5))
    return render(base.mark_bar(color=PALETTE[0]).encode(x=x) + _whiskers(base), alternative, height=_rows(24))


def trend(rows: Rows, values: Sequence[str], releases: Sequence[str], alternative: str) -> Markup:
    """The largest values' shares, release by release. Rows: release, value, frequency, ci_low, ci_high."""
    shown = [{**row, "value": plain(row["value"])} for row in rows]
    ordered = [plain(value) for value in values]
    base = inline(shown, x=_releases(releases), xOffset=alt.XOffset("value:N", sort=ordered))
    colour, shape = _told_apart("value", ordered)
    y = alt.Y("frequency:Q", title="share", axis=quiet_axis(format="~%"))
    lines = base.mark_line(strokeWidth=1.2, opacity=0.65).encode(y=y, color=colour)
    points = base.mark_point(filled=True, size=34, opacity=1).encode(y=y, color=colour, shape=shape)
    whiskers = base.mark_rule(strokeWidth=1.4).encode(y="ci_low:Q", y2="ci_high:Q", color=colour)
    return render(lines + whiskers + points, alternative, height=230)


def numbers(rows: Rows, bins: Rows, bounds: tuple[float, float], alternative: str) -> Markup:
    """A mean and quantiles on the declared bounds, the distribution behind them. Rows: what, at, ci_low, ci_high."""
    axis, scale = quiet_axis(format="~s", tickCount=5), alt.Scale(domain=list(bounds), nice=False)
    base = inline(rows, y=_names("what"))
    whiskers = base.mark_rule(color=INK, strokeWidth=1.4).encode(
        x=alt.X("ci_low:Q", title=None, axis=axis, scale=scale), x2="ci_high:Q"
    )
    points = base.mark_point(filled=True, size=40, opacity=1, color=PALETTE[0], clip=True).encode(x="at:Q")
    height = 22 * len(rows) + 6
    if not bins:
        return render(whiskers + points, alternative, height=height)
    behind = (
        inline([{**row, "zero": 0} for row in bins])
        .mark_rect(color=PALETTE[0], opacity=0.25)
        .encode(
            x=alt.X("bin_low:Q", title=None, axis=axis, scale=scale),
            x2="bin_high:Q",
            y=alt.Y("frequency:Q", axis=None),
            y2="zero:Q",
        )
    )
    return render(alt.layer(behind, whiskers + points).resolve_scale(y="independent"), alternative, height=height + 40)


def series(rows: Rows, releases: Sequence[str], title: str, alternative: str) -> Markup:
    """One number a release, from zero. Rows: release, amount."""
    axis = quiet_axis(format=",.0f", tickMinStep=1) if title == "users" else quiet_axis(format="~g")
    bars = (
        inline(rows, x=_releases(releases))
        .mark_bar(color=PALETTE[0])
        .encode(y=alt.Y("amount:Q", title=title, axis=axis))
    )
    return render(bars, alternative, height=150)


def plain(text: str) -> str:
    """Without the characters that neither a screen nor XML can take."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _pick(row: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {field: row[field] for field in fields}


def inline(rows: Rows, **encoding: Any) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows))).encode(**encoding)


def _whiskers(base: alt.Chart) -> Any:
    """Intervals with ends that can be seen, in the colour of the text."""
    rule = base.mark_rule(color=INK, strokeWidth=1.3).encode(x="ci_low:Q", x2="ci_high:Q")
    ends = [base.mark_tick(color=INK, size=7, thickness=1.3).encode(x=f"{end}:Q") for end in ("ci_low", "ci_high")]
    return alt.layer(rule, *ends)


def _names(field: str) -> alt.Y:
    axis = alt.Axis(labelLimit=118, labelPadding=5, ticks=False, domain=False, labelOverlap=False)
    return alt.Y(f"{field}:N", sort=None, title=None, axis=axis, scale=alt.Scale(paddingInner=0.25, paddingOuter=0.1))


def _rows(height: float) -> alt.Step:
    """So many pixels a name, however many marks share its row."""
    return alt.Step(height, **{"for": "position"})


def _releases(releases: Sequence[str]) -> alt.X:
    axis = quiet_axis(labelAngle=-40, labelOverlap="greedy", grid=False, labelLimit=110)
    return alt.X("release:N", sort=list(releases), title=None, axis=axis, scale=alt.Scale(paddingInner=0.35))


def _shares(field: str, span: tuple[float, float]) -> alt.X:
    return alt.X(
        f"{field}:Q", title="share", axis=quiet_axis(format="~%", tickCount=5), scale=alt.Scale(domain=list(span))
    )


def quiet_axis(**options: Any) -> alt.Axis:
    return alt.Axis(**{"domain": False, "tickColor": INK, "tickOpacity": 0.4, **options})


def top_legend(**options: Any) -> alt.Legend:
    return alt.Legend(**{"orient": "top", "title": None, "columns": 3, "labelLimit": 78, "offset": 6, **options})


def _told_apart(field: str, members: Sequence[str], known: Sequence[str] | None = None) -> tuple[alt.Color, alt.Shape]:
    """A colour and a shape for each; one legend shows both."""
    domain, several = list(known or members), len(members) > 1
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(domain))]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(domain))]
    room = {} if max(map(len, members)) <= _SHORT else {"columns": 2, "labelLimit": 125}
    legend = top_legend(symbolOpacity=1, values=list(members), **room) if several else None
    return (
        alt.Color(f"{field}:N", scale=alt.Scale(domain=domain, range=colours), legend=legend),
        alt.Shape(f"{field}:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend),
    )


def render(chart: alt.Chart | alt.LayerChart, alternative: str, height: Any) -> Markup:
    """Render, and make the picture one thing for a screen reader: an image with a text alternative."""
    text = {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    }
    dressed = (
        chart.properties(
            width=WIDTH, height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"), padding=2
        )
        .configure(aria=False, background="transparent", font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(gridColor=INK, gridOpacity=0.14, **text)
        .configure_legend(**{name: setting for name, setting in text.items() if "title" not in name})
    )
    drawn = vl_convert.vegalite_to_svg(dressed.to_dict(validate=False), allowed_base_urls=[])
    opening = _OPENING.match(drawn)
    if opening is None:
        raise ValueError("the renderer returned no SVG")
    tag = Markup('<svg class="chart" role="img" aria-label="{}" viewBox="{}">').format(escape(alternative), opening[1])
    # The renderer has escaped every text of the spec that stands in it.
    return tag + Markup(drawn[opening.end() :])  # noqa: S704
