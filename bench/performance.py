"""docs/performance.md: what the other benchmarks found last beside what is required, where time goes, and a picture.

`python -m bench performance` reads bench/results/, runs nothing, and rewrites the part of the document that it made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bench.common import RESULTS, ROOT, short
from bench.scale import STAGE, STAGE_CPU

DOCUMENT = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "pictures" / "performance.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NAMES = ("startup", "kernel", "peers", "ingest", "scale", "runners", "groupby", "aggregates", "items_release")
LIMIT_SECONDS = 140 / 100e6
"""Of one user: 100 M in 140 s."""
_STAGE = re.compile(rf"^([\d.]+) M users: ({STAGE_CPU}|{STAGE})(.+)$")
_SIZE = re.compile(r"^([\d.]+) M users: (time|CPU time)$")


def main(arguments: Sequence[str] = ()) -> bool:
    """Write the table of all results that are there; whether every requirement in them is met."""
    results = {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in NAMES if _there(name)}
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    written = table(results)
    if "scale" in results:
        draw(points(results["scale"]["measures"]), PICTURE)
        written += f"\n![Seconds against users, beside the limit](pictures/{PICTURE.name})\n"
        written += "\n" + profile(results["scale"]["measures"])
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{written}\n{END}{rest.partition(END)[2]}")
    missed = [row["what"] for content in results.values() for row in content["measures"] if not row["passed"]]
    print(f"{DOCUMENT}: {len(results)} of {len(NAMES)} benchmarks have results.")
    for what in missed:
        print(f"missed: {what}")
    return not missed


def _there(name: str) -> bool:
    return (RESULTS / f"{name}.json").exists()


def table(results: dict[str, Any]) -> str:
    """Every line that has a requirement."""
    lines = ["| | measured | required | |", "| --- | ---: | ---: | --- |"]
    for name, content in results.items():
        for row in content["measures"]:
            if row["limit"] is not None:
                required = f"{row['bound']} {short(row['limit'])}{row['unit']}"
                verdict = "" if row["passed"] else "missed"
                lines.append(
                    f"| `{name}`: {row['what']} | {short(row['value'])}{row['unit']} | {required} | {verdict} |"
                )
    return "\n".join(lines) + "\n"


def profile(measures: Sequence[dict[str, Any]]) -> str:
    """Where a release's time goes: seconds, and CPU seconds of the command, by stage and number of users."""
    cells: dict[str, dict[str, dict[str, float]]] = {}
    for row in measures:
        size = _STAGE.match(row["what"])
        if size:
            cells.setdefault(size[3], {}).setdefault(size[1], {})[size[2]] = row["value"]
    sizes = list(dict.fromkeys(size for by_size in cells.values() for size in by_size))
    lines = [
        "| stage | " + " | ".join(f"{size} M users: s (CPU s)" for size in sizes) + " |",
        "| --- |" + " ---: |" * len(sizes),
    ]
    for stage, by_size in cells.items():
        shown = (by_size.get(size) for size in sizes)
        figures = ["" if one is None else f"{short(one[STAGE])} ({short(one.get(STAGE_CPU, 0.0))})" for one in shown]
        lines.append(f"| {stage} | " + " | ".join(figures) + " |")
    return "\n".join(lines) + "\n"


def points(measures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Seconds by users and by what they are: wall time, CPU time, and the most that is allowed."""
    rows = []
    for row in measures:
        size = _SIZE.match(row["what"])
        if size:
            rows.append({"users": float(size[1]) * 1e6, "seconds": row["value"], "line": size[2]})
    sizes = sorted({row["users"] for row in rows})
    return rows + [{"users": users, "seconds": users * LIMIT_SECONDS, "line": "limit"} for users in sizes]


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Cost against users, both on scales of powers of ten."""
    import altair as alt

    x = alt.X("users:Q", scale=alt.Scale(type="log"), title="users")
    y = alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds after start-up")
    chart = alt.Chart(pl.DataFrame(rows)).mark_line(point=True)
    chart.encode(x=x, y=y, color=alt.Color("line:N", title=None)).properties(width=420, height=240).save(str(path))
