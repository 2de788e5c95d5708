"""Items, end to end: releases of MSNBC and of a million rows over a thousand items; the picture of identity errors.

The picture (θ± of three methods over the minimum support, Basket, 100 repetitions) goes to results/items-identity.svg.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import vl_convert
import yaml

from bench.common import RESULTS, ROOT, Measure, publish
from bench.items import CATEGORIES, HEADER, ITEMS, MSNBC, made_up
from bench.scale import MEMORY, MEMORY_RATIO, Cost
from pldp.channels.randomness import Keystream
from pldp.papers.aprr.levels import levels_from_frequency
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import Grouped, mask
from pldp.questions.items.mining import Search
from pldp.questions.items.study import Identity, Method, study
from pldp.questions.items.transactions import Columns

BASKET = MSNBC.with_name("basket.txt.gz")
NAMES = ("aprr", "MASK", "GR-PPFM")
MINIMA = tuple(round(0.05 + 0.025 * step, 3) for step in range(9))
SIZES = (4, 2, 2, 2, 1)
REPEATS = 100
SECONDS, LARGE_SECONDS = 60.0, 194.0 / 3
"""The second: a third of what it took before ingest was one pass."""
TIMES = 4
"""The made-up rows are released again, so many times over: memory must not follow the users."""
WARM_UP, WARM_UP_SUPPORT = 1_000, 0.5
"""At the spec's own support the noise of few users finds so many sets that an idle process would seem to need them."""


def main() -> bool:
    measures: list[Measure] = []
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        if MSNBC.exists():
            measures += _release(Path(folder) / "msnbc", "MSNBC: ", *_msnbc(), SECONDS)[0]
        measures += _large(Path(folder))
    if BASKET.exists():
        measures += _identity()
    note = (
        f"MSNBC: 989,818 users, {CATEGORIES} categories, ε = 17, sets of at most 4 at a support of 0.01 "
        f"(data/msnbc-items.yaml). Made up: a million rows over {ITEMS:,} items, about 8 a row, ε = 750 (0.75 an "
        f"item), pairs at a support of 0.02. A fresh process each, which first releases {WARM_UP:,} users: idle is "
        f"what it holds then; their support is {WARM_UP_SUPPORT}. θ± of Basket: means over the minimum "
        "supports of the picture."
    )
    return publish("items_release", "Releases of frequent items", measures, note)


def _large(folder: Path) -> list[Measure]:
    """A million rows over a thousand items, and four times as many."""
    rows, spec = _made_up()
    users = spec["expected"]["users"]
    often = pl.concat([rows.with_columns(pl.col("user") + copy * users) for copy in range(TIMES)])
    more = {**spec, "expected": {"users": TIMES * users}}
    whole, once = _release(folder / "once", "1 M × 1,000: ", rows, spec, LARGE_SECONDS)
    larger, many = _release(folder / "often", f"{TIMES} M × 1,000: ", often, more, None)
    return [
        *whole,
        *larger,
        Measure(f"memory above idle, most of the time, {TIMES} times the users", many / once, "×", MEMORY_RATIO, "≤"),
    ]


def _release(
    folder: Path, case: str, rows: pl.DataFrame, spec: dict[str, Any], limit: float | None
) -> tuple[list[Measure], int]:
    """The whole release, and a small one of the same spec before it; and the memory that it held most of the time."""
    folder.mkdir()
    specs = []
    users = rows["user"].n_unique()
    for name, part in (("tiny", rows.filter(pl.col("user") < WARM_UP)), ("whole", rows)):
        part.write_parquet(folder / f"{name}.parquet")
        content = {**spec, "name": name, "source": {"path": f"{name}.parquet"}}
        if name == "tiny":
            content["itemsets"] = {**spec["itemsets"], "minimum_support": WARM_UP_SUPPORT}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        specs.append(str(folder / f"{name}.yaml"))
    command = [sys.executable, "-m", "bench.scale_worker", str(folder / "home"), *specs]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{case}failed:\n{done.stderr[-4000:]}")
    cost = Cost(**json.loads(done.stdout.splitlines()[-1]))
    measures = [
        Measure(case + "users", users),
        Measure(case + "time", cost.seconds, " s", limit, "≤"),
        Measure(case + "memory of the idle process", cost.idle, "B"),
        Measure(case + "peak memory above idle", cost.above_idle, "B", MEMORY, "≤"),
        Measure(case + "reports on disk, a user", cost.reports / users, " B"),
    ]
    return measures, cost.held


def _msnbc() -> tuple[pl.DataFrame, dict[str, Any]]:
    spec = yaml.safe_load((ROOT / "data" / "msnbc-items.yaml").read_text())
    with gzip.open(MSNBC, "rt") as lines:
        rows = [{int(word) - 1 for word in line.split()} for number, line in enumerate(lines) if number >= HEADER]
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    items = np.array(spec["items"], dtype=object)[np.fromiter((item for row in rows for item in row), dtype=np.int64)]
    return pl.DataFrame({"user": users, "item": items.astype(str)}), spec


def _made_up() -> tuple[pl.DataFrame, dict[str, Any]]:
    offsets, items = made_up()
    users = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    names = [f"item{number:04d}" for number in range(ITEMS)]
    spec = {
        "kind": "items",
        "items": names,
        "protocol": "bounded",
        "budget": {"total": 3 * ITEMS // 4},  # a spec's largest is 1,000
        "itemsets": {"minimum_support": 0.02, "length": 2},
        "expected": {"users": len(offsets) - 1},
    }
    named = pl.Series(names).gather(items)
    return pl.DataFrame({"user": users, "item": named}), spec


def _identity() -> list[Measure]:
    with gzip.open(BASKET, "rt") as lines:
        baskets = [line.rstrip("\r\n").split("\t") for line in lines]
    names = sorted({item for basket in baskets for item in basket})
    table = np.array([[name in basket for name in names] for basket in baskets])
    rows = [Columns.of_table(table)]
    shares = tuple(Fraction(size, len(names)) for size in SIZES)
    aprr = ItemChannels.aprr(levels_from_frequency(table.sum(axis=0), SIZES), len(SIZES), Fraction(9))
    channels: tuple[ItemChannels | Grouped, ...] = (aprr, mask(len(names)), Grouped.of(len(names), shares))
    methods = [Method(name, [channel], rows) for name, channel in zip(NAMES, channels, strict=True)]
    identities = study(methods, MINIMA, Search(0.05, 3), REPEATS, lambda *labels: Keystream.seeded(42, *labels), 42)
    picture(identities, RESULTS / "items-identity.svg")
    return [
        Measure(
            f"Basket, {name}: {what}", float(np.mean([getattr(row, field) for row in identities if row.method == name]))
        )
        for field, what in (("made_up", "θ⁺, sets made up"), ("missed", "θ⁻, sets missed"))
        for name in NAMES
    ]


def picture(identities: list[Identity], path: Path) -> None:
    """Two panels, one line a method, with twice the standard error of the mean."""
    rows = []
    for row in identities:
        for panel, mean, error in (
            ("θ⁺, sets made up", row.made_up, row.made_up_error),
            ("θ⁻, sets missed", row.missed, row.missed_error),
        ):
            ends = {"low": max(mean - 2 * error, 0.0), "high": mean + 2 * error}
            rows.append({"method": row.method, "minimum": row.minimum, "panel": panel, "share": mean, **ends})
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("minimum:Q", title="minimum support", axis=alt.Axis(format="~%")),
        color=alt.Color("method:N", title=None),
    )
    y = alt.Y("share:Q", title="by the truly frequent sets")
    layers = base.mark_line().encode(y=y) + base.mark_point(filled=True, size=40, opacity=1).encode(
        y=y, shape=alt.Shape("method:N", title=None)
    )
    layers += base.mark_rule().encode(y="low:Q", y2="high:Q")
    chart = layers.properties(width=300, height=220).facet(column=alt.Column("panel:N", title=None))
    path.parent.mkdir(exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(chart.to_dict()))
