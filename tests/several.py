"""What the tests of a release of several kinds share: the same people in a table, with baskets and with films."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from tests import baskets, items, people
from tests.pldp.questions.aggregates.world import SPEC as FILMS_SPEC

ONCE = ("name", "expected")


def entry(spec: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """A spec of one kind as an entry: without what is said once."""
    return {key: value for key, value in {**deepcopy(spec), **sections}.items() if key not in ONCE}


PEOPLE = entry(people.SPEC, budget={"total": 4})
BASKETS = entry(baskets.SPEC, users={"path": "takers.csv", "level": "level"})
FILMS = entry(FILMS_SPEC)
SENT = [
    {**PEOPLE, "levels": {"dependence": 1}, "source": None},
    {**BASKETS, "users": None, "source": None},
    {**FILMS, "users": None, "source": None},
]
"""The same where clients' reports are the source."""
SPEC: dict[str, Any] = {"name": "several", "expected": {"users": 2000}}


def write_spec(folder: Path, *entries: dict[str, Any], **sections: Any) -> Path:
    path = folder / "spec.yaml"
    asked = [{key: value for key, value in entry.items() if value is not None} for entry in entries]
    content = {**SPEC, "questions": asked, **sections}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def world(folder: Path, n_users: int = 2000, **sections: Any) -> Path:
    """A folder with all tables of the same people and a spec that asks everything; the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    people.make_people(n_users).write_parquet(folder / "people.parquet")
    baskets.make_rows(n_users).write_parquet(folder / "rows.parquet")
    baskets.make_users(n_users).write_csv(folder / "takers.csv")
    items.make_items(n_users).write_parquet(folder / "items.parquet")
    items.make_users(n_users).write_csv(folder / "users.csv")
    items.make_catalogue().write_csv(folder / "catalogue.csv")
    return write_spec(folder, *sections.pop("questions", (PEOPLE, BASKETS, FILMS)), **sections)


def stranger(folder: Path, times: int) -> None:
    """Rows of a basket of somebody who stands in no table of people."""
    rows = pl.read_parquet(folder / "rows.parquet")
    more = pl.DataFrame({"user": ["nobody"] * times, "item": ["bread"] * times})
    pl.concat([rows, more]).write_parquet(folder / "rows.parquet")
