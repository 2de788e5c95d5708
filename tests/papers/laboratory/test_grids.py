"""Maps of the best method and named numbers: in order, with every name and number, and safe."""

from __future__ import annotations

import re

from pldp.papers.laboratory.grids import draw_panel
from pldp.papers.model import Compared, Fact, Picture, Point

GRID = Picture(place="Best", title="", x_title="ε; k", y_title="", kind="grid")
DOTS = Picture(place="Losses", title="", x_title="", y_title="loss", kind="dots")
EVIL = "<script>alert('x')</script>"
CELLS = tuple(
    Point(place="Best", panel=panel, series=series, x=f"{epsilon}; {k}", value=0.001 * k)
    for panel in ("few", "many")
    for epsilon in ("10", "0.5")
    for k, series in ((16, "k-RR, em"), (2, f"{EVIL}, em"), (4, "subset, oc+"))
)


def words(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_a_map_names_the_best_of_every_cell_with_its_error() -> None:
    told = words(draw_panel(GRID, "few", CELLS, ()))
    assert told.count("k-RR") == told.count("subset") == 2
    assert told.count("1.6 %") == told.count("0.4 %") == 2
    assert {"ε", "k", "k-RR, em", "subset, oc+"} <= set(told)


def test_its_axes_are_in_the_order_of_numbers() -> None:
    told = [word for word in words(draw_panel(GRID, "few", CELLS, ())) if re.fullmatch(r"[\d.]+", word)]
    assert told == ["0.5", "10", "2", "4", "16"]


def test_names_cannot_become_markup() -> None:
    assert "<script" not in draw_panel(GRID, "few", CELLS, ())
    dots = (Point(place="Losses", series="loss", x=EVIL, value=0.2),)
    assert "<script" not in draw_panel(DOTS, "", dots, ())


def test_dots_stand_by_size_with_what_is_printed() -> None:
    points = [
        Point(place="Losses", series="loss", x=name, value=value, standard_error=0.01)
        for name, value in (("much", 0.3), ("less", 0.1))
    ]
    fact = Fact(place="Losses", series="loss", x="less", printed=0.12, half_width=0.01)
    svg = draw_panel(DOTS, "", points, [Compared(fact=fact, point=points[1], verdict="agrees")])
    told = words(svg)
    assert told.index("less") < told.index("much")
    assert "loss" in told
    alone = draw_panel(DOTS, "", points, ())
    assert svg.count("<path") == alone.count("<path") + 1
