"""Charts: whole SVG, no script, no network, no colour of its own for text; marks that both themes can show."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pldp.tasks import charts

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


def row(value: str, frequency: float = 0.3, **more: Any) -> dict[str, Any]:
    ends = {"ci_low": frequency - 0.1, "ci_high": frequency + 0.1}
    return {"value": value, "frequency": frequency, "reliable": True, **ends, **more}


def draw(kind: str, value: str = "a") -> str:
    span = (0.0, 0.5)
    match kind:
        case "histogram":
            return charts.histogram([row(value), row("b", reliable=False)], value, row_height=20, span=span)
        case "levels":
            rows = [row(value, level=level) for level in ("high", "low")]
            known = ["high", "mid", "low"]
            return charts.level_estimates(rows, ["high", "low"], known, value, row_height=20, span=span)
        case "budgets":
            spent = [{"attribute": value, "level": level, "epsilon": 1.0} for level in ("high", "low")]
            return charts.budgets(spent, ["high", "low"], value)
        case "trend":
            rows = [row(name, release=release) for release in ("1", "2") for name in (value, "b")]
            return charts.trend(rows, [value, "b"], ["1", "2"], value)
    return charts.series([{"release": "1", "amount": 3}, {"release": "2", "amount": 4}], ["1", "2"], "users", value)


KINDS = ("histogram", "levels", "budgets", "trend", "series")


@pytest.mark.parametrize("colour", charts.PALETTE)
def test_marks_stand_out_on_light_and_dark(colour: str) -> None:
    """WCAG 1.4.11: graphics need 3:1."""
    assert contrast(colour, LIGHT) >= 3
    assert contrast(colour, DARK) >= 3


@pytest.mark.parametrize("kind", KINDS)
class TestEveryChart:
    def test_is_one_image_with_a_text_alternative(self, kind: str) -> None:
        svg = draw(kind, "says all")
        assert svg.startswith('<svg class="chart" role="img" aria-label="says all" viewBox="0 0 340 ')
        assert svg.endswith("</svg>")
        assert svg.count("<svg") == 1
        assert svg.count("<g") == svg.count("</g>")

    def test_neither_asks_the_network_nor_names_an_id(self, kind: str) -> None:
        svg = draw(kind)
        assert not re.search(r"https?:|url\(|href|<style|<image| id=", svg)

    def test_takes_the_colour_of_the_page(self, kind: str) -> None:
        svg = draw(kind)
        texts = re.findall(r"<text [^>]*>", svg)
        assert texts
        assert all('fill="currentColor"' in text for text in texts)
        own = {colour.lower() for colour in charts.PALETTE} | {charts.PALETTE[0].lower() + "24"}
        painted = re.findall(r'(?:fill|stroke)="([^"]*)"', svg)
        assert {colour.lower() for colour in painted} <= own | {"none", "transparent", "currentcolor"}

    def test_escapes_what_a_spec_says(self, kind: str) -> None:
        svg = draw(kind, EVIL)
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg

    def test_is_the_same_every_time(self, kind: str) -> None:
        assert draw(kind) == draw(kind)


def test_unreliable_values_are_named_dashed_and_dimmed() -> None:
    svg = draw("histogram")
    assert f">{charts.FLAG}b<" in svg
    assert f">{charts.FLAG}a<" not in svg
    assert ">not reliable<" in svg
    assert 'stroke-dasharray="3,2"' in svg


def test_values_stand_in_the_order_given() -> None:
    names = ["zeta", "alpha", "mid", "beta"]
    svg = charts.histogram([row(name) for name in names], "x", row_height=20, span=(0, 1))
    assert [text for text in re.findall(r">([^<>]+)</text>", svg) if text in names] == names


def test_a_level_looks_the_same_whoever_else_was_chosen() -> None:
    assert charts.PALETTE[2] in draw("levels")  # low, the third of the known
    assert charts.PALETTE[1] not in draw("levels")


def test_what_no_screen_can_show_is_replaced() -> None:
    assert charts.plain("a\x00b\x1bc\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert "\x0b" not in draw("histogram", "a\x0bb").replace('aria-label="a\x0bb"', "")
