"""Charts of pages as inline SVG, drawn here: neither script nor network nor another engine is needed for a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from markupsafe import Markup

from pldp.page.blocks import Bar, Bars, Chart, Dots, GroupedBars, Lines, Series, Spread, Steps, Strip
from pldp.tasks.courses import draw_lines, draw_steps
from pldp.tasks.drawing import PALETTE, SIZE, WIDER, WIDTH, Scale, Sheet, tick_label, ticks, width, wrapped

FLAG = "◦ "
"""Before the name of a value that is not reliable."""

RELIABLE, UNRELIABLE = "reliable", "not reliable"
FADED = PALETTE[0] + "24"

_NAMES = 132.0
"""The most room that names of rows get."""
_ROW = 22.0
_GAP = 5.0
_LEGEND = 17.0
"""The height of a legend of one line."""


@singledispatch
def draw(chart: Chart) -> Markup:
    """A chart as one image with a text alternative."""
    raise TypeError(f"no picture of {type(chart).__name__}")


def _row_height(series: int, names: Sequence[Sequence[str]]) -> float:
    return max(_ROW, 7.5 * series + 4, *(12.0 * len(lines) + 4 for lines in names))


def _names(rows: Sequence[str], reliable: Sequence[bool] = ()) -> tuple[list[list[str]], float]:
    """The lines of every row's name, marked where not reliable, and the room that they take."""
    lines = [wrapped(row, _NAMES / WIDER) for row in rows]
    for line, sound in zip(lines, reliable, strict=False):
        line[0] = line[0] if sound else FLAG + line[0]
    return lines, max((width(line) * WIDER for each in lines for line in each), default=0.0) + 8


def _axis(sheet: Sheet, scale: Scale, top: float, bottom: float, unit: str, title: str) -> None:
    """Pale lines at round numbers, and the numbers below; room for them is the sheet's own."""
    clear = -1e9
    for value in ticks(scale.low, scale.high, 4):
        x, text = scale(value), tick_label(value, unit)
        sheet.line(x, top, x, bottom, stroke_opacity="0.14")
        half = width(text) / 2
        middle = min(max(x, half), WIDTH - half)
        if middle - half > clear:
            sheet.text(middle, bottom + 14, text, text_anchor="middle")
            clear = middle + half + 4
    if scale.low < 0 < scale.high:
        sheet.line(scale(0.0), top, scale(0.0), bottom, stroke_opacity="0.6")
    sheet.height = bottom + 18
    if title:
        sheet.text((scale.start + scale.stop) / 2, bottom + 29, title, text_anchor="middle")
        sheet.height += 15


def _beside_figures(
    low: float, high: float, start: float, ends: Sequence[tuple[float, str]], size: float = SIZE
) -> Scale:
    """A scale that leaves room for the figure at each end."""
    stop = WIDTH - 8
    for end, figure in ends:
        part = (end - low) / (high - low) if high > low else 0.0
        room = WIDTH - 2 - _GAP - width(figure, size) * WIDER - start
        stop = min(stop, start + room / part) if part > 0 else stop
    return Scale(low, high, start, max(stop, start + 20))


@draw.register
def _bars(chart: Bars) -> Markup:
    """Bars from zero with intervals, each figure behind its interval."""
    sheet = Sheet()
    shown = chart.legend or not all(bar.reliable for bar in chart.bars)
    top = _state_legend(sheet) if shown else 4.0
    if chart.beside > 1:
        top = _LEGEND
    names, room = _names([bar.label for bar in chart.bars], [bar.reliable for bar in chart.bars])
    low = min(0.0, *(min(bar.value, bar.low) for bar in chart.bars))
    high = max(0.0, *(max(bar.value, bar.high) for bar in chart.bars))
    scale = _beside_figures(low, high, room, [(max(bar.value, bar.high), bar.figure) for bar in chart.bars])
    alike = _row_height(chart.beside, names) if chart.beside > 1 else 0.0
    heights = [alike or _row_height(1, [lines]) for lines in names]
    _axis(sheet, scale, top, top + sum(heights), chart.unit, chart.axis)
    y = top
    for bar, lines, height in zip(chart.bars, names, heights, strict=True):
        middle = y + height / 2
        sheet.label(room - 6, middle, lines)
        _bar(sheet, bar, scale, middle, 14.0)
        sheet.text(scale(max(bar.value, bar.high)) + _GAP, middle + 4, bar.figure)
        y += height
    return sheet.svg(chart.alternative)


def _bar(sheet: Sheet, bar: Bar, scale: Scale, middle: float, height: float) -> None:
    start, stop = sorted((scale(0.0), scale(bar.value)))
    look = {} if bar.reliable else {"stroke_dasharray": "3,2"}
    state = "" if bar.reliable else f", {UNRELIABLE}"
    sheet.put(
        "rect",
        f"{bar.label}: {bar.figure}{state}",
        x=start,
        y=middle - height / 2,
        width=max(stop - start, 0.5),
        height=height,
        fill=PALETTE[0] if bar.reliable else FADED,
        stroke=PALETTE[0],
        stroke_width=1.2,
        **look,
    )
    if bar.high > bar.low:
        sheet.interval(scale(bar.low), scale(bar.high), middle)


def _state_legend(sheet: Sheet) -> float:
    x = 2.0
    for name, fill, dash in ((RELIABLE, PALETTE[0], {}), (UNRELIABLE, FADED, {"stroke_dasharray": "3,2"})):
        sheet.put("rect", x=x, y=2.0, width=9, height=9, fill=fill, stroke=PALETTE[0], stroke_width=1.2, **dash)
        sheet.text(x + 14, 11.0, name)
        x += 28 + width(name)
    return _LEGEND


def _legend(sheet: Sheet, series: Sequence[Series]) -> float:
    return sheet.legend([(each.name, each.place) for each in series]) if len(series) > 1 else 4.0


@draw.register
def _dots(chart: Dots) -> Markup:
    """Every series has a line of its own inside a row."""
    sheet = Sheet()
    top = _legend(sheet, chart.series)
    names, room = _names(chart.rows)
    low, high = min(0.0, *(point.low for point in chart.points)), max(point.high for point in chart.points)
    scale = Scale(low, high, room, WIDTH - 8)
    step = _row_height(len(chart.series), names)
    _axis(sheet, scale, top, top + step * len(names), "share", chart.axis)
    for place, lines in enumerate(names):
        sheet.label(room - 6, top + (place + 0.5) * step, lines)
    inner = (step - 4) / len(chart.series)
    for point in chart.points:
        series = chart.series[point.series]
        y = top + point.row * step + 2 + (point.series + 0.5) * inner
        sheet.interval(scale(point.low), scale(point.high), y, PALETTE[series.place % len(PALETTE)], ends=0)
        sheet.mark(scale(point.value), y, series.place, 2.8, f"{chart.rows[point.row]}, {series.name}: {point.figure}")
    return sheet.svg(chart.alternative)


@draw.register
def _grouped(chart: GroupedBars) -> Markup:
    sheet = Sheet()
    top = _legend(sheet, chart.series)
    names, room = _names(chart.rows)
    high = max(point.value for point in chart.points)
    scale = _beside_figures(0.0, high, room, [(point.value, point.figure) for point in chart.points], 10)
    thick = 12.0
    step = max(thick * len(chart.series) + 7, *(12.0 * len(lines) + 4 for lines in names))
    _axis(sheet, scale, top, top + step * len(names), "number", chart.axis)
    for place, lines in enumerate(names):
        sheet.label(room - 6, top + (place + 0.5) * step, lines)
    for point in chart.points:
        series = chart.series[point.series]
        y = top + (point.row + 0.5) * step + (point.series - (len(chart.series) - 1) / 2) * thick
        hint = f"{chart.rows[point.row]}, {series.name}: {point.figure}"
        colour = PALETTE[series.place % len(PALETTE)]
        sheet.put("rect", hint, x=room, y=y - 3.5, width=max(scale(point.value) - room, 0.5), height=7, fill=colour)
        sheet.mark(scale(point.value), y, series.place, 3.0)
        sheet.text(scale(point.value) + _GAP + 1, y + 3.5, point.figure, font_size=10)
    return sheet.svg(chart.alternative)


@draw.register
def _spread(chart: Spread) -> Markup:
    """Bins on top, mean and quantiles below them, on the same axis."""
    sheet = Sheet()
    names, room = _names([bar.label for bar in chart.bars])
    figures = max(width(bar.figure) * WIDER for bar in chart.bars) + _GAP
    scale = Scale(*chart.bounds, room, WIDTH - 2 - figures)
    top = 56.0 if chart.bins else 4.0
    _axis(sheet, scale, 4.0, top + _ROW * len(names), "number", "")
    _bins(sheet, chart.bins, scale, top - 4, 48.0, "1")
    for place, (bar, lines) in enumerate(zip(chart.bars, names, strict=True)):
        middle = top + (place + 0.5) * _ROW
        sheet.label(room - 6, middle, lines)
        sheet.interval(scale(bar.low), scale(bar.high), middle)
        sheet.mark(scale(bar.value), middle, 0, 3.6, f"{bar.label}: {bar.figure}")
        sheet.text(WIDTH - 2, middle + 4, bar.figure, text_anchor="end")
    return sheet.svg(chart.alternative)


def _bins(
    sheet: Sheet, bins: Sequence[tuple[float, float, float]], scale: Scale, bottom: float, height: float, opacity: str
) -> None:
    most = max((share for _, _, share in bins), default=0.0)
    for low, high, share in bins:
        if share > 0:
            tall = height * share / most
            wide = max(scale(high) - scale(low) - 0.5, 0.5)
            sheet.put(
                "rect", x=scale(low), y=bottom - tall, width=wide, height=tall, fill=PALETTE[0], fill_opacity=opacity
            )


def draw_strip(strip: Strip) -> Markup:
    """A small chart for a cell: the bounds as a line, the interval, and the estimate; hollow if not reliable."""
    sheet = Sheet(width=150.0, height=35.0)
    scale = Scale(*strip.bounds, 6.0, 144.0)
    _bins(sheet, strip.bins, scale, 22.0, 20.0, "0.35")
    sheet.line(6.0, 22.0, 144.0, 22.0, stroke_opacity="0.4")
    for x in (6.0, 144.0):
        sheet.line(x, 18.0, x, 22.0, stroke_opacity="0.4")
    for x, anchor, bound in ((2.0, "start", strip.bounds[0]), (148.0, "end", strip.bounds[1])):
        sheet.text(x, 33.0, tick_label(bound, "number"), text_anchor=anchor, font_size=10)
    sheet.interval(scale(strip.low), scale(strip.high), 11.0)
    at, beyond = scale(strip.at), not strip.bounds[0] <= strip.at <= strip.bounds[1]
    fill = PALETTE[0] if strip.reliable else "none"
    if beyond:  # the estimate lies outside: an arrow says where
        tip = -5.0 if strip.at < strip.bounds[0] else 5.0
        sheet.put(
            "path", d=f"M{at + tip:.1f},11L{at:.1f},7L{at:.1f},15Z", fill=fill, stroke=PALETTE[0], stroke_width=1.2
        )
    else:
        sheet.put("circle", cx=at, cy=11.0, r=3.6, fill=fill, stroke=PALETTE[0], stroke_width=1.4)
    return sheet.svg(strip.alternative, "strip")


draw.register(Lines, draw_lines)
draw.register(Steps, draw_steps)
