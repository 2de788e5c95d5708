"""Reading published results: what analysts and commands see. Nothing here can reach the vault."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from pldp.errors import NotFound, Outcome
from pldp.tables.common import RELEASES, VALIDATIONS
from pldp.tables.declaration import RELEASE
from pldp.tasks.home import Home
from pldp.tasks.query import connect_published, statement
from pldp.tasks.schema import read_rows

UNFINISHED = "unfinished"


@dataclass(frozen=True)
class PublishedRelease:
    """One release, as its results have it."""

    release_id: str
    tables: Mapping[str, pl.DataFrame]
    """Its rows of every published table by name, without the release: empty where it has none."""
    plan_matches: bool
    """Whether the stored plan still has the hash that was published."""
    statement: dict[str, Any] | None
    """The privacy statement."""

    @property
    def releases(self) -> pl.DataFrame:
        """The release's own row."""
        return self.tables[RELEASES.name]

    @property
    def validations(self) -> pl.DataFrame:
        """What its gates said."""
        return self.tables[VALIDATIONS.name]

    @property
    def status(self) -> str:
        return str(self.releases["status"][0])

    @property
    def valid(self) -> bool:
        return self.plan_matches and bool(self.validations["passed"].all()) and not self.validations.is_empty()

    def failed_gates(self) -> str:
        several = self.validations["question"].drop_nulls().n_unique() > 1
        failed = [
            f"{row['gate']} of {row['question']}" if several and row["question"] else row["gate"]
            for row in self.validations.filter(~pl.col("passed")).iter_rows(named=True)
        ]
        return ", ".join(failed + ([] if self.plan_matches else ["the stored plan does not have the published hash"]))

    def as_json(self) -> dict[str, Any]:
        """Everything about it, for machines."""
        rows = {name: table.to_dicts() for name, table in self.tables.items()}
        (release,) = rows.pop(RELEASES.name)
        return {RELEASE: self.release_id, **release, **rows, "privacy": self.statement}


def list_releases(home: Path) -> pl.DataFrame:
    """Every release of a home, newest first, with the most a user spent on it.

    One that spent but never reached its end is listed as unfinished: its budget is gone all the same.
    """
    results = Home(home).results
    spends = pl.DataFrame(
        [
            {
                "release_id": spent["release_id"],
                "name": spent["name"],
                "created_at": datetime.fromisoformat(spent["at"]).replace(tzinfo=None),
                "spent": float(spent["budget"]),
                "unit": spent.get("unit", "user"),
            }
            for spent in Home(home).spends()
        ],
        schema={
            "release_id": pl.String,
            "name": pl.String,
            "created_at": pl.Datetime("us"),
            "spent": pl.Float64,
            "unit": pl.String,
        },
    )
    if not results.exists():
        return spends.with_columns(status=pl.lit(UNFINISHED), n_users=pl.lit(None, dtype=pl.Int64))
    with connect_published(results) as connection:
        frame = connection.sql(statement("81_show_all")).pl()
    finished = frame.join(spends.select("release_id", "spent", "unit"), on="release_id", how="left")
    unfinished = spends.join(frame, on="release_id", how="anti").with_columns(status=pl.lit(UNFINISHED))
    return pl.concat([finished, unfinished], how="diagonal").sort("created_at", "release_id", descending=[True, False])


def no_release(home: Path, wanted: str) -> NotFound:
    """The error of a release that is not there."""
    remedy = f"`pldp releases --home {home}` lists them."
    return NotFound(f"no release {wanted!r} here", Outcome.NOTHING_CHANGED, file=home, remedy=remedy)


def read_release(home: Path, wanted: str) -> PublishedRelease:
    """A release by its id, or the newest of a name."""
    known = list_releases(home).filter(pl.col("status") != UNFINISHED)
    matching = known.filter(pl.col("release_id") == wanted)
    if matching.is_empty():
        matching = known.filter(pl.col("name") == wanted)
    if matching.is_empty():
        raise no_release(home, wanted)
    release_id = str(matching["release_id"][0])
    with connect_published(Home(home).results) as connection:
        tables = {name: rows.drop(RELEASE) for name, rows in read_rows(connection, release_id).items()}
    folder = Home(home).releases / release_id
    return PublishedRelease(
        release_id=release_id,
        tables=tables,
        plan_matches=_plan_hash(folder / "plan.json") == tables[RELEASES.name]["plan_sha256"][0],
        statement=_read_json(folder / "privacy.json"),
    )


def _plan_hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _read_json(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None
