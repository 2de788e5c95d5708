"""All releases of a home, and how each name's results went from one release to the next: what the index shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from pldp.tasks import charts, words
from pldp.tasks.home import Home
from pldp.tasks.query import connect_published, statement

RELEASES = 60
"""Releases a trend shows, the newest."""

VALUES = 5
"""Values a trend shows, the largest of the newest release."""

LISTED = 500
TREND_CHARTS = 60

_STAMPS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")

Declared = Callable[[str], tuple[str, str | None]]


def read_index(home: Path, declared: Declared) -> dict[str, Any]:
    """`declared` are unit and total that a release's spec gives: what a refused release, without budgets, has spent."""
    with connect_published(Home(home).results) as connection:
        releases = connection.sql(statement("82_page_releases")).pl()
        shares = connection.sql(statement("83_page_trends"), params={"releases": RELEASES, "values": VALUES}).pl()
    listed = [_with_spend(row, declared) for row in releases.iter_rows(named=True)]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in listed:  # spends of different units are never added
        groups.setdefault((row["name"], row["unit"]), []).append(row)
    room, series = TREND_CHARTS, []
    for (name, unit), rows in groups.items():
        trends = shares.filter(pl.col("release_id").is_in([row["release_id"] for row in rows]))
        series.append(_series(name, unit, rows, trends, room))
        room -= len(series[-1]["trends"])
    names = {"n_names": len({name for name, _ in groups}), "n_releases": len(listed)}
    return {"releases": listed[:LISTED], "series": series, "RELEASES": RELEASES, **names}


def _with_spend(row: dict[str, Any], declared: Declared) -> dict[str, Any]:
    if row["spent"] is None:
        unit, total = declared(row["release_id"])
        row["unit"] = row["unit"] or unit
        row["spent"] = None if total is None else float(Fraction(total))
    return row


def _series(
    name: str, unit: str, newest_first: list[dict[str, Any]], shares: pl.DataFrame, room: int
) -> dict[str, Any]:
    """One name and unit: users and what has been spent, and attributes' largest values where there is a trend."""
    rows = newest_first[::-1]
    spent = 0.0
    for row in rows:
        spent += row["spent"] or 0.0
        row["spent_so_far"] = spent
    rows = rows[-RELEASES:]
    view: dict[str, Any] = {
        "name": name,
        "unit": unit,
        "rows": rows,
        "n_releases": len(newest_first),
        "spent": spent,
        "unknown": sum(row["spent"] is None for row in newest_first),
        "users": None,
        "spends": None,
        "trends": [],
        "left_out": 0,
    }
    if len(rows) < 2:
        return view
    for row, stamp in zip(rows, stamps([row["created_at"] for row in rows]), strict=True):
        row["stamp"] = stamp
    labels = [row["stamp"] for row in rows]
    view["users"] = charts.series(
        [{"release": row["stamp"], "amount": row["n_users"]} for row in rows],
        labels,
        "users",
        f"Bar chart of users over {len(rows)} releases of {name}, {rows[0]['n_users']:,} at first and "
        f"{rows[-1]['n_users']:,} in the newest. The table below has all numbers.",
    )
    view["spends"] = charts.series(
        [{"release": row["stamp"], "amount": row["spent_so_far"]} for row in rows],
        labels,
        "ε spent so far",
        f"Bar chart of the most that {words.UNITS[unit]} in all releases of {name} has spent, growing to {spent:.4g} "
        f"over {len(newest_first)} releases. The table below has all numbers.",
    )
    stamp_of = {row["release_id"]: row["stamp"] for row in rows}
    if len(set(shares["release_id"]) & set(stamp_of)) > 1:
        attributes = [(str(key[0]), part) for key, part in shares.group_by("attribute", maintain_order=True)]
        view["trends"] = [_trend(name, attribute, part, stamp_of) for attribute, part in attributes[: max(0, room)]]
        view["left_out"] = len(attributes) - len(view["trends"])
    return view


def _trend(name: str, attribute: str, part: pl.DataFrame, stamp_of: dict[str, str]) -> dict[str, Any]:
    """A published release may be older than the newest ones, refused ones included: it is left out."""
    rows = [{**row, "release": stamp_of[row["release_id"]]} for row in part.to_dicts() if row["release_id"] in stamp_of]
    values = [row["value"] for row in part.unique(["place"], keep="last").sort("place").iter_rows(named=True)]
    digits = words.decimals(min(row["standard_error"] for row in rows))
    newest = {row["value"]: words.percent(row["frequency"], digits) for row in rows}
    said = "; ".join(f"{value} {newest[value]}" for value in values if value in newest)
    alternative = (
        f"Line chart of {attribute} in {name}: shares of its {len(values)} largest values over releases, with error "
        f"bars. In the newest: {said}. The table below has all numbers."
    )
    fields = ("release", "value", "frequency", "ci_low", "ci_high")
    points = [{field: row[field] for field in fields} for row in rows]
    seen = {row["release"] for row in rows}
    return {
        "attribute": attribute,
        "rows": rows[::-1],
        "decimals": digits,
        "chart": charts.trend(points, values, [stamp for stamp in stamp_of.values() if stamp in seen], alternative),
    }


def stamps(moments: Sequence[datetime]) -> list[str]:
    """The shortest dates that tell all moments apart; numbered where not even seconds do."""
    for form in _STAMPS:
        written = [moment.strftime(form) for moment in moments]
        if len(set(written)) == len(written):
            return written
    return [f"{stamp} ({number})" for number, stamp in enumerate(written, start=1)]
