"""Aggregates: utility over ε on MovieLens-1M and MSNBC, ten thousand profiles, and MSNBC's users end to end.

Pictures and tables (bench/utility.py) go to bench/results/, or to the FOLDER of `python -m bench.aggregates FOLDER`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import yaml

from bench.common import RESULTS, ROOT, Measure, publish
from bench.scale import MEMORY, MEMORY_RATIO, Cost
from bench.utility import DRAWS, SEED, draw, gains, many, table, utility
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates.catalogue import Catalogue

DATA = ROOT.parent / "shared" / "data"
PEOPLE = 989_818
CATEGORIES = 17
TIMES = 4
TIME_RATIO = 1.1
SECONDS = 57.0 / 3  # a third of what it took before ingest was one pass
PROFILES = 10_000
PLAN_SECONDS = 60.0  # measured 15 to 20 with start and imports; a limit against regressions


def main(folder: Path = RESULTS) -> bool:
    measures = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, catalogue in catalogues():
        rows = utility(catalogue)
        rows.write_csv(folder / f"aggregates-{name}.csv")
        (folder / f"aggregates-{name}.md").write_text(table(rows))
        draw(rows, name, folder)
        measures += gains(name, rows) + many(name, catalogue)
    measures += profiles() + scale()
    note = (
        f"Utility: Σ t = 1 drawn from Dirichlet(1), {DRAWS} draws, medians, the implemented noise; ε = 0.05 … 0.4 in "
        f"aggregates-*.csv, .md and pictures. Scale: {CATEGORIES} attributes, a fresh process that has released a tiny "
        "spec."
    )
    return publish("aggregates", "Aggregates: utility and scale", measures, note)


def catalogues() -> Iterator[tuple[str, Catalogue]]:
    """What is there: MovieLens' movies by genre; MSNBC's pages, each of one category."""
    movies = DATA / "ml-1m_movies.dat.gz"
    if movies.exists():
        with gzip.open(movies, "rt", encoding="latin-1") as lines:
            genres = [line.rstrip("\n").split("::")[2].split("|") for line in lines]
        names = sorted({genre for film_genres in genres for genre in film_genres})
        matrix = np.array([[genre in film_genres for genre in names] for film_genres in genres], dtype=np.uint8)
        yield "movielens", dense_catalogue(names, matrix)
    yield "msnbc", dense_catalogue([f"c{i}" for i in range(1, CATEGORIES + 1)], np.eye(CATEGORIES, dtype=np.uint8))


def profiles() -> list[Measure]:
    """From a spec of ten thousand profiles to its plan, by the command: reading, solving, thresholds, tables."""
    catalogue = next((one for name, one in catalogues() if name == "movielens"), None)
    if catalogue is None:
        return []
    shares = np.random.default_rng(SEED).dirichlet(np.ones(len(catalogue.attributes)), PROFILES) + 0.001
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        folder = Path(name)
        rows = [(f"i{i}", catalogue.attributes[j]) for i, row in enumerate(catalogue.rows) for j in np.flatnonzero(row)]
        pl.DataFrame(rows, schema=["item", "attribute"], orient="row").write_csv(folder / "catalogue.csv")
        (folder / "users.csv").write_text("user,profile\n")
        content = {
            "kind": "aggregates",
            "name": "profiles",
            "source": {"path": "items.csv"},
            "users": {"path": "users.csv"},
            "catalogue": {"path": "catalogue.csv"},
            "attributes": list(catalogue.attributes),
            "providers": {"trusted": {"epsilon": 0.4}, "unknown": {"epsilon": 0.05}},
            "profiles": {
                f"p{i}": {name: round(float(t), 3) for name, t in zip(catalogue.attributes, tolerances, strict=True)}
                for i, tolerances in enumerate(shares)
            },
            "default": "p0",
        }
        (folder / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        before, start = os.times(), time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pldp.flows.cli", "plan", str(folder / "spec.yaml")],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        after, seconds = os.times(), time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"the plan of {PROFILES:,} profiles failed:\n{done.stderr[-4000:]}")
    case = f"`pldp plan`, {PROFILES:,} profiles × {len(catalogue.attributes)} attributes × 2 providers: "
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return [
        Measure(case + "time", seconds, " s"),
        Measure(case + "CPU", spent, " s", PLAN_SECONDS, "≤"),
        Measure(case + "lines printed", len(done.stdout.splitlines()), "", 200, "≤"),
    ]


def scale() -> list[Measure]:
    """MSNBC's users, four times as many, and four times these, whom memory must not follow."""
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        folder = Path(name)
        items, real = visits()
        pl.DataFrame({"item": [f"c{i}" for i in range(1, CATEGORIES + 1)]}).with_columns(attribute="item").write_csv(
            folder / "catalogue.csv"
        )
        once, often, most = (_release(folder, items, TIMES**power * PEOPLE) for power in range(3))
    case = f"{'MSNBC' if real else 'made-up users like MSNBC'}: {PEOPLE:,} users × {CATEGORIES} attributes: "
    return [
        Measure(case + "time", once.seconds, " s", SECONDS, "≤"),
        Measure(case + "peak memory above idle", once.above_idle, "B", MEMORY, "≤"),
        Measure(case + "reports on disk, per user and attribute", once.reports / PEOPLE / CATEGORIES / 2, " B"),
        Measure(f"time, {TIMES} times the users", often.seconds / once.seconds, "×", TIMES * TIME_RATIO, "≤"),
        Measure(f"peak memory above idle, {TIMES**2} times the users", most.above_idle, "B", MEMORY, "≤"),
        Measure(
            f"memory above idle, most of the time, {TIMES**2} / {TIMES} times",
            most.held / often.held,
            "×",
            MEMORY_RATIO,
            "≤",
        ),
    ]


def visits() -> tuple[pl.DataFrame, bool]:
    """One row a visit, users numbered; drawn with MSNBC's mean length where it is not there."""
    path = DATA / "msnbc990928.seq.gz"
    if path.exists():
        with gzip.open(path, "rt") as lines:
            sequences = [line.split() for line in lines if line[:1].isdigit()]
        users = np.repeat(np.arange(len(sequences)), [len(sequence) for sequence in sequences])
        items = np.concatenate([np.array(sequence, dtype=np.int8) for sequence in sequences])
        return pl.DataFrame({"user": users.astype(np.int32), "item": items}), True
    rng = np.random.default_rng(SEED)
    users = np.repeat(np.arange(PEOPLE, dtype=np.int32), rng.geometric(1 / 4.75, PEOPLE))
    return pl.DataFrame({"user": users, "item": rng.integers(1, CATEGORIES + 1, users.size, dtype=np.int8)}), False


def _release(folder: Path, items: pl.DataFrame, users: int) -> Cost:
    specs = []
    for size in (1_000, users):
        source, spec = folder / f"{size}.parquet", folder / f"{size}.yaml"
        if not source.exists():
            copies = [items.with_columns(pl.col("user") + copy * PEOPLE) for copy in range(-(-size // PEOPLE))]
            visited = pl.concat(copies).filter(pl.col("user") < size)
            visited.with_columns(item=pl.format("c{}", "item")).write_parquet(source)
        content = {
            "kind": "aggregates",
            "name": f"visits-{size}",
            "source": {"path": source.name},
            "catalogue": {"path": "catalogue.csv"},
            "attributes": [f"c{i}" for i in range(1, CATEGORIES + 1)],
            "providers": {"trusted": {"epsilon": 0.4}, "unknown": {"epsilon": 0.05}},
            "profiles": {"even": f"1/{CATEGORIES}"},
        }
        spec.write_text(yaml.safe_dump(content, sort_keys=False))
        specs.append(str(spec))
    command = [sys.executable, "-m", "bench.scale_worker", str(folder / f"{users}-home"), *specs]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the release of {users} users failed:\n{done.stderr[-4000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(0 if main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS) else 1)
