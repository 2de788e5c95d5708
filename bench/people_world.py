"""Made-up people who are asked every kind of question: as tables for the pipeline, and one by one for clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from pldp.client import totals
from pldp.client.plan import Plan
from tests import baskets, items
from tests.pldp.questions.aggregates.world import ATTRIBUTES, PROFILES
from tests.pldp.questions.aggregates.world import SPEC as FILMS

MEALS = ("soup", "salad", "pasta", "nothing")
EDGES = (0, 20, 40, 60, 120)
BOUNDS = {"income": (0, 9000), "rent": (0, 3000)}
LEVELS = ("high", "mid", "low")
CAP = 2
TABLES = {
    "histograms": (("attribute", "value"), "unbiased_frequency", "unbiased_standard_error"),
    "means": (("attribute",), "mean", "standard_error"),
    "itemsets": (("items",), "support", "standard_error"),
    "aggregates": (("provider", "attribute"), "total", "standard_error"),
}
"""Of each table: its key, an estimate without bias, and the error of that."""

Answers = tuple[dict[str, Any], dict[str, str], dict[str, int]]
"""Of one person: answers by attribute, a choice by question, and how much numbers matter."""


@dataclass(frozen=True)
class Crowd:
    """The people as tables."""

    people: pl.DataFrame
    takers: pl.DataFrame
    held: np.ndarray
    """People × items of a basket."""
    films: pl.DataFrame
    users: pl.DataFrame

    def write(self, folder: Path) -> None:
        """What the pipeline reads."""
        self.people.write_parquet(folder / "people.parquet")
        takers, places = np.nonzero(self.held)
        rows = {"user": [f"user-{i}" for i in takers], "item": [baskets.ITEMS[i] for i in places]}
        pl.DataFrame(rows).write_parquet(folder / "rows.parquet")
        self.takers.write_csv(folder / "takers.csv")
        self.films.write_parquet(folder / "items.parquet")
        self.users.write_csv(folder / "users.csv")

    def answers(self, plan: Plan, *, hidden: bool) -> Iterator[Answers]:
        """What each of them tells a client of their own."""
        if hidden:
            for row in self.people.iter_rows(named=True):
                yield {"meal": row["meal"], "age": row["age"]}, dict.fromkeys(plan.questions, row["level"]), {}
            return
        weights = {film: dict.fromkeys(kinds, 1) for film, kinds in _catalogue().items()}
        seen = _counts(self.films)
        rows = zip(
            self.people.iter_rows(named=True), self.held, self.takers["level"], self.users["profile"], strict=True
        )
        for row, basket, level, profile in rows:
            answered = {name: row[name] for name in ("meal", "age", *BOUNDS)}
            answered["items"] = [item for item, has in zip(baskets.ITEMS, basket, strict=True) if has]
            answered |= totals(plan.questions["aggregates"], weights, seen.get(row["id"], {}))
            chosen = dict.fromkeys(plan.questions, row["level"]) | {"items": level, "aggregates": profile}
            yield answered, chosen, {name: row[f"{name}_matters"] for name in BOUNDS}

    def truth(self) -> dict[str, float]:
        """Of every estimate, by table and key."""
        n, meals = self.people.height, self.people["meal"].to_list()
        bins = np.searchsorted(EDGES[1:-1], self.people["age"].to_numpy(), side="right")
        names = [f"[{low}, {high})" for low, high in pairwise(EDGES)]
        names[-1] = f"[{EDGES[-2]}, {EDGES[-1]}]"
        ages = [names[i] for i in bins]
        columns = {"meal": meals, "age": ages, "both": [f"{m} × {a}" for m, a in zip(meals, ages, strict=True)]}
        known = {}
        for name, column in columns.items():
            for value, count in pl.Series(column).value_counts().iter_rows():
                known[f"histograms {name} {value}"] = count / n
        for name, (low, high) in BOUNDS.items():
            known[f"means {name}"] = float(self.people[name].clip(low, high).mean())  # type: ignore[arg-type]
        for size in (1, 2):
            for places in combinations(range(len(baskets.ITEMS)), size):
                key = [baskets.ITEMS[i] for i in places]
                known[f"itemsets {key}"] = float(self.held[:, list(places)].all(axis=1).mean())
        sums = items.true_totals(self.films, CAP)
        for provider in ("shop", "ads"):
            known |= {f"aggregates {provider} {name}": float(sums[i]) for i, name in enumerate(ATTRIBUTES)}
        return known


def _catalogue() -> dict[str, list[str]]:
    return dict(items.make_catalogue().group_by("item").agg("attribute").iter_rows())


def _counts(films: pl.DataFrame) -> dict[str, dict[str, int]]:
    """How often each person has each film."""
    counts: dict[str, dict[str, int]] = {}
    for user, item, n in films.group_by("user", "item").agg(pl.len()).iter_rows():
        counts.setdefault(user, {})[item] = n
    return counts


def crowd(n: int, seed: int) -> Crowd:
    """Skewed answers; levels and profiles chosen without regard to them."""
    rng = np.random.default_rng(seed)
    ids = [f"user-{i}" for i in range(n)]
    people = pl.DataFrame(
        {
            "id": ids,
            "meal": np.array(MEALS)[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])],
            "age": np.minimum(rng.gamma(3, 12, n), 119).round(1),
            "income": (rng.beta(2, 6, n) * 9000).round(),
            "rent": rng.normal(600, 400, n).round(),
            "income_matters": rng.choice([0, 1, 3], n),
            "rent_matters": rng.choice([1, 2], n),
            "level": np.array(LEVELS)[rng.choice(3, n, p=[0.5, 0.3, 0.2])],
        }
    )
    takers = pl.DataFrame({"user": ids, "level": np.array(baskets.LEVELS)[rng.choice(2, n, p=[0.3, 0.7])]})
    users = pl.DataFrame({"user": ids, "profile": np.array(PROFILES)[rng.choice(2, n, p=[0.7, 0.3])]})
    return Crowd(people, takers, baskets.make_table(n, seed), items.make_items(n, seed), users)


ASKED: list[dict[str, Any]] = [
    {
        "attributes": [
            {"name": "meal", "values": list(MEALS)},
            {"name": "age", "kind": "binned", "edges": list(EDGES)},
            {"name": "both", "kind": "crosstab", "of": ["meal", "age"]},
            *({"name": name, "kind": "number", "bounds": list(bounds)} for name, bounds in BOUNDS.items()),
        ],
        "numbers": {
            "sampling": 2,
            "tau": 2,
            "weights": True,
            "importance": {name: f"{name}_matters" for name in BOUNDS},
        },
        "budget": {"total": 8},
        "levels": {"dependence": 1},
    },
    {key: baskets.SPEC[key] for key in ("kind", "items", "budget", "itemsets", "levels")},
    {key: FILMS[key] for key in ("kind", "catalogue", "attributes", "providers", "profiles", "default")}
    | {"count": {"cap": CAP}},
]
HIDDEN: dict[str, Any] = {
    "attributes": ASKED[0]["attributes"][:3],
    "budget": {"total": 8},
    "mechanism": "krr",
    "combination": {"method": "auem"},
    "levels": {"dependence": 1, "visibility": "hidden", "epsilon_p": 1, "max_leak": 900},
}
READ = (
    {"source": {"path": "people.parquet", "user_id": "id"}},
    {"source": {"path": "rows.parquet"}, "users": {"path": "takers.csv", "level": "level"}},
    {"source": {"path": "items.parquet"}, "users": {"path": "users.csv"}},
)


def write_spec(folder: Path, *, hidden: bool, inbox: bool) -> Path:
    """The questions to people's clients, or the same to their tables."""
    entries = [dict(one) for one in ([HIDDEN] if hidden else ASKED)]
    if not inbox:
        entries[0]["levels"] = {**entries[0]["levels"], "column": "level"}
        entries = [one | read for one, read in zip(entries, READ, strict=False)]
    content: dict[str, Any] = {"name": "people"}
    content |= {"source": {"inbox": "inbox"}, "retention": {"inbox": "keep"}} if inbox else {}
    content |= entries[0] if hidden else {"questions": entries}
    items.make_catalogue().write_csv(folder / "catalogue.csv")
    path = folder / ("sent.yaml" if inbox else "read.yaml")
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path
