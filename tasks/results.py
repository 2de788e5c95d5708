"""Reading published results: what analysts and commands see. Nothing here can reach the vault."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from pldp.errors import NotFound
from pldp.tasks.home import Home
from pldp.tasks.query import connect_published, statement

UNFINISHED = "unfinished"
_TABLES = (
    "releases",
    "histograms",
    "level_estimates",
    "level_shares",
    "means",
    "quantiles",
    "bins",
    "aggregates",
    "itemsets",
    "rules",
    "budgets",
    "validations",
)


@dataclass(frozen=True)
class PublishedRelease:
    release_id: str
    releases: pl.DataFrame
    histograms: pl.DataFrame
    level_estimates: pl.DataFrame
    level_shares: pl.DataFrame
    means: pl.DataFrame
    quantiles: pl.DataFrame
    bins: pl.DataFrame
    aggregates: pl.DataFrame
    itemsets: pl.DataFrame
    rules: pl.DataFrame
    budgets: pl.DataFrame
    validations: pl.DataFrame
    plan_matches: bool
    """Whether the stored plan still has the hash that was published."""
    statement: dict[str, Any] | None
    """The privacy statement."""

    @property
    def status(self) -> str:
        return str(self.releases["status"][0])

    @property
    def valid(self) -> bool:
        return self.plan_matches and bool(self.validations["passed"].all()) and not self.validations.is_empty()

    def failed_gates(self) -> str:
        failed = self.validations.filter(~pl.col("passed"))["gate"].to_list()
        return ", ".join(failed + ([] if self.plan_matches else ["the stored plan does not have the published hash"]))

    def as_json(self) -> dict[str, Any]:
        tables = {table: getattr(self, table).to_dicts() for table in _TABLES[1:]}
        return {"release_id": self.release_id, **self.releases.to_dicts()[0], **tables, "privacy": self.statement}


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


def read_release(home: Path, wanted: str) -> PublishedRelease:
    """A release by its id, or the newest of a name."""
    known = list_releases(home).filter(pl.col("status") != UNFINISHED)
    found = known.filter(pl.col("release_id") == wanted)
    if found.is_empty():
        found = known.filter(pl.col("name") == wanted)
    if found.is_empty():
        raise NotFound(f"{home}: no release {wanted!r} here. `pldp releases --home {home}` lists them.")
    release_id = str(found["release_id"][0])
    with connect_published(Home(home).results) as connection:
        # Results of an earlier version lack the tables that came later.
        there = {row[0] for row in connection.execute(statement("86_analyst_tables")).fetchall()}
        frames = {
            table: connection.sql(statement(f"80_show_{table}"), params={"release_id": release_id}).pl()
            if table in there
            else pl.DataFrame()
            for table in _TABLES
        }
    folder = Home(home).releases / release_id
    return PublishedRelease(
        release_id=release_id,
        **frames,
        plan_matches=_plan_hash(folder / "plan.json") == frames["releases"]["plan_sha256"][0],
        statement=_read_json(folder / "privacy.json"),
    )


def _plan_hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _read_json(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None
