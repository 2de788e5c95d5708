"""Charts: whole SVG, no script, no network, no colour of its own for text; marks that both themes can show."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pldp.page.blocks import Bar, Bars, Chart, Dots, GroupedBars, Lines, Point, Series, Spread, Steps, Strip
from pldp.tasks.charts import FADED, FLAG, draw, draw_strip
from pldp.tasks.drawing import PALETTE, WIDER, WIDTH, Scale, plain, ticks, width, wrapped

LIGHT, DARK = "#fcfcfa", "#14161a"
EVIL = '<script>alert("x")</script>'


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def bar(label: str, value: float = 0.3, *, reliable: bool = True) -> Bar:
    return Bar(label, value, value - 0.1, value + 0.1, f"{100 * value:.1f} %", reliable)


def points(series: int, rows: int) -> tuple[Point, ...]:
    return tuple(Point(row, number, 0.3, 0.2, 0.4, "30.0 %") for row in range(rows) for number in range(series))


CHARTS: dict[str, Callable[[str], Chart]] = {
    "bars": lambda text: Bars(text, (bar(text), bar("b", reliable=False))),
    "totals": lambda text: Bars(text, (Bar(text, -12345.0, -20000.0, 3.0, "−12,345"),), unit="number", axis=text),
    "dots": lambda text: Dots(text, (text, "b"), (Series("high", 0), Series("low", 2)), points(2, 2)),
    "budgets": lambda text: GroupedBars(text, (text,), (Series("high", 0), Series("low", 1)), points(2, 1), "ε"),
    "trend": lambda text: Lines(text, ("1", "2"), (Series(text, 0), Series("b", 1)), points(2, 2)),
    "steps": lambda text: Steps(text, ("1", text), (3.0, 4.0), ("3", "4")),
    "spread": lambda text: Spread(
        text, (0.0, 10.0), (Bar(text, 4.0, 3.0, 5.0, "4.0"),), ((0.0, 5.0, 0.4), (5.0, 10.0, 0.6))
    ),
}
KINDS = tuple(CHARTS)


def drawing(kind: str, text: str = "a") -> str:
    return draw(CHARTS[kind](text))


@pytest.mark.parametrize("colour", PALETTE)
def test_marks_stand_out_on_light_and_dark(colour: str) -> None:
    """WCAG 1.4.11: graphics need 3:1."""
    assert contrast(colour, LIGHT) >= 3
    assert contrast(colour, DARK) >= 3


@pytest.mark.parametrize("kind", KINDS)
class TestEveryChart:
    def test_is_one_image_with_a_text_alternative(self, kind: str) -> None:
        svg = drawing(kind, "says all")
        assert svg.startswith('<svg class="chart" role="img" aria-label="says all" viewBox="0 0 340 ')
        assert svg.endswith("</svg>")
        assert svg.count("<svg") == 1
        assert svg.count("<g") == svg.count("</g>")

    def test_neither_asks_the_network_nor_names_an_id(self, kind: str) -> None:
        svg = drawing(kind)
        assert not re.search(r"https?:|url\(|href|<style|<image| id=", svg)

    def test_takes_the_colour_of_the_page(self, kind: str) -> None:
        svg = drawing(kind)
        texts = re.findall(r"<text [^>]*>", svg)
        assert texts
        assert all('fill="currentColor"' in text for text in texts)
        own = {colour.lower() for colour in PALETTE} | {FADED.lower()}
        painted = re.findall(r'(?:fill|stroke)="([^"]*)"', svg)
        assert {colour.lower() for colour in painted} <= own | {"none", "transparent", "currentcolor"}

    def test_escapes_what_a_spec_says(self, kind: str) -> None:
        svg = drawing(kind, EVIL)
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg

    def test_is_the_same_every_time(self, kind: str) -> None:
        assert drawing(kind) == drawing(kind)


def test_unreliable_values_are_named_dashed_and_dimmed() -> None:
    svg = drawing("bars")
    assert f">{FLAG}b<" in svg
    assert f">{FLAG}a<" not in svg
    assert ">not reliable<" in svg
    assert 'stroke-dasharray="3,2"' in svg
    assert FADED in svg
    sound = draw(Bars("x", (bar("a"), bar("b"))))
    assert "not reliable" not in sound
    assert "dasharray" not in sound


def test_values_stand_in_the_order_given() -> None:
    names = ["zeta", "alpha", "mid", "beta"]
    svg = draw(Bars("x", tuple(bar(name) for name in names)))
    assert [text for text in re.findall(r">([^<>]+)</text>", svg) if text in names] == names


def test_a_level_looks_the_same_whoever_else_was_chosen() -> None:
    assert PALETTE[2] in drawing("dots")  # low, the third of the known
    assert PALETTE[1] not in drawing("dots")


def test_what_no_screen_can_show_is_replaced() -> None:
    assert plain("a\x00b\x1bc\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert "\x0b" not in drawing("bars", "a\x0bb").replace('aria-label="a\x0bb"', "")


def test_every_bar_has_its_figure_and_it_stays_within_the_picture() -> None:
    """Also where bars reach far and figures are long."""
    bars = tuple(Bar("a name", value, 0.0, value, f"{value:,.0f}") for value in (9e9, 1.0, 5e8, -1e9))
    svg = draw(Bars("x", bars, unit="number"))
    placed = {text: float(x) for x, text in re.findall(r'<text x="([\d.]+)" [^>]*>([^<>]*)</text>', svg)}
    for each in bars:
        assert placed[each.figure] + width(each.figure) <= WIDTH
    assert "Largest" not in svg


@pytest.mark.parametrize("form", [Bars, Dots])
def test_names_and_figures_stay_within_the_picture_in_a_wider_font(form: type) -> None:
    """As they are drawn where there is neither Arial nor a font of its widths."""
    name = "Brötchen + Öl (alle Sorten)"
    bars, dots = Bars("x", (bar(name, 0.9),)), Dots("x", (name,), (Series("high", 0),), points(1, 1))
    texts = re.findall(r'<text x="([\d.]+)"([^>]*)>([^<>]*)</text>', draw(bars if form is Bars else dots))
    ends = [(float(x), settings, WIDER * width(text)) for x, settings, text in texts]
    assert all(x - room >= 0 for x, settings, room in ends if 'anchor="end"' in settings)
    assert all(x + room <= WIDTH for x, settings, room in ends if "anchor" not in settings)


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.integers(2, 8))
def test_ticks_are_few_round_and_within(low: float, reach: float, most: int) -> None:
    assume(reach > 1e-6 * abs(low))  # what a double can tell apart
    found = ticks(low, low + reach, most)
    assert len(found) <= most + 1
    assert all(low - 1e-6 * reach <= tick <= low + reach * (1 + 1e-6) for tick in found)
    assert found == sorted(set(found))


@given(st.text(max_size=80), st.floats(20, 200), st.integers(1, 3))
def test_wrapped_names_fit(text: str, room: float, lines: int) -> None:
    found = wrapped(text, room, lines)
    assert len(found) <= lines
    assert all(width(line) <= room + width("W…") for line in found), "at least a letter is shown"


def test_names_break_where_a_reader_would() -> None:
    assert wrapped("frontpage + news + business", 100) == ["frontpage + news +", "business"]
    assert wrapped("Outlying-US(Guam-USVI-etc)", 120) == ["Outlying-US(Guam-", "USVI-etc)"]
    assert wrapped("x" * 200, 100, 1)[0].endswith("…")
    assert wrapped("x" * 20 + " + milk", 100) == ["x" * 18, "xx + milk"], "sets of one long item differ by the other"
    assert wrapped("寿司" * 6, 100) == ["寿司" * 4 + "寿", "司" + "寿司"]
    assert wrapped("short", 100) == ["short"]


def test_a_scale_holds_what_lies_beyond_its_ends() -> None:
    scale = Scale(0.0, 10.0, 100.0, 200.0)
    assert [scale(value) for value in (-5.0, 0.0, 5.0, 10.0, 99.0)] == [100, 100, 150, 200, 200]
    assert Scale(3.0, 3.0, 1.0, 2.0)(3.0) == 1.0


def test_an_estimate_beyond_its_bounds_is_an_arrow_and_a_drowned_one_is_hollow() -> None:
    inside = draw_strip(Strip("says all", (0.0, 100.0), 40.0, 30.0, 50.0))
    assert 'role="img" aria-label="says all"' in inside
    assert inside.count("<circle") == 1
    assert f'fill="{PALETTE[0]}"' in inside
    beyond = draw_strip(Strip("x", (0.0, 100.0), -3.0, 0.0, 5.0, reliable=False))
    assert "<circle" not in beyond
    assert 'fill="none"' in beyond
    assert (
        draw_strip(Strip("x", (0.0, 1.0), 0.5, 0.4, 0.6, True, ((0.0, 0.5, 0.2), (0.5, 1.0, 0.8)))).count("<rect") == 2
    )
