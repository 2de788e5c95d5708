"""What the pictures of reproductions share: Altair's charts in the colours of our pages, rendered to inline SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup, escape

from pldp.tasks.drawing import INK

WIDTH = 340
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""What the renderer measures labels with; other fonts would run out of the picture."""

_OPENING = re.compile(r'<svg [^>]*viewBox="([^"]*)"[^>]*>')

Rows = Sequence[dict[str, Any]]


def inline(rows: Rows, **encoding: Any) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows))).encode(**encoding)


def quiet_axis(**options: Any) -> alt.Axis:
    return alt.Axis(**{"domain": False, "tickColor": INK, "tickOpacity": 0.4, **options})


def top_legend(**options: Any) -> alt.Legend:
    return alt.Legend(**{"orient": "top", "title": None, "columns": 3, "labelLimit": 78, "offset": 6, **options})


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
