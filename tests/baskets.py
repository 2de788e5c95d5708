"""What the tests of frequent items share: made-up baskets, users with levels, and a spec for them."""

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

ITEMS = ("bread", "milk", "beer", "wine", "fish", "tea")
LEVELS = ("high", "low")

SPEC: dict[str, Any] = {
    "kind": "items",
    "name": "baskets",
    "source": {"path": "rows.parquet"},
    "items": list(ITEMS),
    "budget": {"total": 12},
    "itemsets": {"minimum_support": 0.1, "length": 3},
    "levels": {"choices": {"high": "1/2", "low": 1}, "dependence": 1},
    "users": {"path": "users.csv", "level": "level"},
    "expected": {"users": 3000},
}


def make_table(n_users: int, seed: int = 1) -> np.ndarray:
    """Users × items, true where held: bread and milk go together, everything else by itself; some have nothing."""
    rng = np.random.default_rng(seed)
    chance = np.array([0.45, 0.4, 0.3, 0.2, 0.12, 0.05])
    table = rng.random((n_users, len(ITEMS))) < chance
    table[:, 1] |= table[:, 0] & (rng.random(n_users) < 0.5)
    return table


def make_rows(n_users: int, seed: int = 1) -> pl.DataFrame:
    """One row a user and item, every seventh twice, shuffled; users without items stand in the users file alone."""
    users, items = np.nonzero(make_table(n_users, seed))
    order = np.random.default_rng(seed).permutation(
        np.concatenate([np.arange(users.size), np.arange(0, users.size, 7)])
    )
    return pl.DataFrame({"user": [f"user-{u}" for u in users[order]], "item": [ITEMS[i] for i in items[order]]})


def make_users(n_users: int, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    levels = np.array(LEVELS)[rng.choice(2, n_users, p=[0.3, 0.7])]
    return pl.DataFrame({"user": [f"user-{u}" for u in range(n_users)], "level": levels})


def true_support(table: np.ndarray, items: list[str]) -> float:
    return float(table[:, [ITEMS.index(item) for item in items]].all(axis=1).mean())


def write_spec(folder: Path, name: str = "spec.yaml", **sections: Any) -> Path:
    """The spec with whole sections replaced, or left out where they are None."""
    path = folder / name
    content = {key: value for key, value in {**deepcopy(SPEC), **sections}.items() if value is not None}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def world(folder: Path, n_users: int = 600, rows: pl.DataFrame | None = None, **sections: Any) -> Path:
    """A folder with rows, users and spec; the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (make_rows(n_users) if rows is None else rows).write_parquet(folder / "rows.parquet")
    make_users(n_users).write_csv(folder / "users.csv")
    return write_spec(folder, **sections)


def opened(spec: Path, home: Path, slot: str = "manual", **options: Any) -> tuple[Run, SpecFile]:
    file = load_spec(spec, evaluation=bool(options.get("evaluation")))
    return open_run(Home(home).prepare(), file, slot, **options), file
