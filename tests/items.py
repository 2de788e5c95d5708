"""What the tests of aggregates share: made-up users with items, a catalogue, and a spec for them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from pldp.tasks.home import Home
from pldp.tasks.run import Run, open_run
from pldp.tasks.specfile import SpecFile, load_spec
from tests.pldp.questions.aggregates.world import ATTRIBUTES, KINDS, PROFILES, SPEC

N_ITEMS = 20


def make_catalogue() -> pl.DataFrame:
    rows = [(f"film-{item}", attribute) for item in range(N_ITEMS) for attribute in KINDS[item % len(KINDS)]]
    return pl.DataFrame(rows, schema=["item", "attribute"], orient="row")


def make_items(n_users: int, seed: int = 1) -> pl.DataFrame:
    """A few items each, some of them several times; every fiftieth user has none."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, n_users)
    sizes[::50] = 0
    users = np.repeat(np.arange(n_users), sizes)
    films = rng.choice(N_ITEMS, users.size, p=np.arange(N_ITEMS, 0, -1) / (N_ITEMS * (N_ITEMS + 1) / 2))
    return pl.DataFrame({"user": [f"user-{i}" for i in users], "item": [f"film-{i}" for i in films]})


def make_users(n_users: int, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    profiles = np.array(PROFILES)[rng.choice(2, n_users, p=[0.7, 0.3])]
    return pl.DataFrame({"user": [f"user-{i}" for i in range(n_users)], "profile": profiles})


def true_totals(items: pl.DataFrame, cap: int | None = None) -> np.ndarray:
    """By a join, an attribute a place: another way than the pipeline's."""
    counted = items.group_by("user", "item").agg(n=pl.len())
    if cap is not None:
        counted = counted.with_columns(pl.col("n").clip(0, cap))
    totals = counted.join(make_catalogue(), on="item").group_by("attribute").agg(pl.col("n").sum())
    known = dict(totals.iter_rows())
    return np.array([known[attribute] for attribute in ATTRIBUTES])


def write_spec(folder: Path, **sections: Any) -> Path:
    """The spec with whole sections replaced, or left out where they are None."""
    path = folder / "spec.yaml"
    content = {key: value for key, value in {**deepcopy(SPEC), **sections}.items() if value is not None}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def world(folder: Path, n_users: int = 600, items: pl.DataFrame | None = None, **sections: Any) -> Path:
    """A folder with items, users, catalogue and spec; the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (make_items(n_users) if items is None else items).write_parquet(folder / "items.parquet")
    make_users(n_users).write_csv(folder / "users.csv")
    make_catalogue().write_csv(folder / "catalogue.csv")
    return write_spec(folder, **sections)


def opened(spec: Path, home: Path, slot: str = "manual", **options: Any) -> tuple[Run, SpecFile]:
    file = load_spec(spec)
    return open_run(Home(home).prepare(), file, slot, **options), file
