"""Charts over time: shares as lines, and amounts as steps, from one release of a name to the next."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pldp.page.blocks import Lines, Steps
from pldp.tasks.drawing import PALETTE, WIDTH, Scale, Sheet, tick_label, ticks, width, wrapped


def draw_lines(chart: Lines) -> Markup:
    """Shares over releases; the figure beside a name is that of the newest release."""
    sheet = Sheet()
    newest = {point.series: point.figure for point in chart.points if point.row == len(chart.releases) - 1}
    top = (
        sheet.legend([(f"{each.name} {newest.get(n, '')}".rstrip(), each.place) for n, each in enumerate(chart.series)])
        + 6
    )
    low, high = min(point.low for point in chart.points), max(point.high for point in chart.points)
    marks = ticks(low, high, 5)
    room = max(width(tick_label(value, "share")) for value in marks) + 8
    bottom = top + 170
    y = Scale(low, high, bottom, top)
    for value in marks:
        sheet.line(room, y(value), WIDTH, y(value), stroke_opacity="0.14")
        sheet.text(room - 5, y(value) + 4, tick_label(value, "share"), text_anchor="end")
    step = (WIDTH - room - 6) / len(chart.releases)
    dodge = min(5.0, 0.7 * step / max(1, len(chart.series)))

    def x(row: int, series: int) -> float:
        return room + 3 + (row + 0.5) * step + (series - (len(chart.series) - 1) / 2) * dodge

    for number, series in enumerate(chart.series):
        colour = PALETTE[series.place % len(PALETTE)]
        points = [point for point in chart.points if point.series == number]
        path = "L".join(f"{x(point.row, number):.1f},{y(point.value):.1f}" for point in points)
        sheet.put("path", d=f"M{path}", fill="none", stroke=colour, stroke_width=1.2, stroke_opacity="0.65")
        for point in points:
            at = x(point.row, number)
            sheet.line(at, y(point.low), at, y(point.high), stroke=colour, stroke_width=1.4)
            hint = f"{series.name}, {chart.releases[point.row]}: {point.figure}"
            sheet.mark(at, y(point.value), series.place, hint=hint)
    _release_names(sheet, chart.releases, room + 3, step, bottom)
    return sheet.svg(chart.alternative)


def draw_steps(chart: Steps) -> Markup:
    """Upright bars from zero; figures above them where they have room, above the newest in any case."""
    sheet = Sheet()
    top, bottom = 16.0, 136.0
    y = Scale(0.0, max(*chart.amounts, 1e-300), bottom, top)
    step = WIDTH / len(chart.amounts)
    sheet.line(0.0, bottom, WIDTH, bottom, stroke_opacity="0.4")
    for place, (amount, figure) in enumerate(zip(chart.amounts, chart.figures, strict=True)):
        at = (place + 0.5) * step
        wide = min(0.7 * step, 48.0)
        hint = f"{chart.releases[place]}: {figure}"
        sheet.put("rect", hint, x=at - wide / 2, y=y(amount), width=wide, height=bottom - y(amount), fill=PALETTE[0])
        last = place == len(chart.amounts) - 1
        if last or max(map(width, chart.figures)) < step - 4:
            half = width(figure) / 2
            sheet.text(min(max(at, half), WIDTH - half), y(amount) - 4, figure, text_anchor="middle")
    _release_names(sheet, chart.releases, 0.0, step, bottom)
    return sheet.svg(chart.alternative)


def _release_names(sheet: Sheet, releases: Sequence[str], start: float, step: float, bottom: float) -> None:
    """Slanted, and as many as have room."""
    every = max(1, -(-16 // max(1, int(step))))
    for place, name in enumerate(releases):
        if (len(releases) - 1 - place) % every:
            continue
        at, y = start + (place + 0.5) * step, bottom + 12
        short = wrapped(name, 100, 1)[0]
        if width(short) <= step - 4:
            sheet.text(at, y + 2, short, text_anchor="middle")
        else:
            sheet.text(at, y, short, text_anchor="end", transform=f"rotate(-40 {at:.1f} {y:.1f})")
    slanted = any(width(name) > step - 4 for name in releases)
    sheet.height = bottom + (min(70.0, max(width(name) for name in releases) * 0.65 + 16) if slanted else 20.0)
