"""All releases of a home, and how each name's results went from one release to the next: what the index shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from pldp.page import words
from pldp.page.blocks import Column, Figure, Folded, Lines, Pair, Point, Series, Steps, Table, strong
from pldp.spec.wording import Wording
from pldp.tables.common import SPENDS
from pldp.tasks.home import Home
from pldp.tasks.query import connect_published, statement
from pldp.tasks.schema import stored_tables
from pldp.tasks.wording import read_wording

RELEASES = 60
"""Releases a trend shows, the newest."""

VALUES = 5
"""Values a trend shows, the largest of the newest release."""

LISTED = 500
TREND_CHARTS = 60

_STAMPS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")

Spend = Callable[[Mapping[str, Any]], tuple[str, float | None]]
ReadSpec = Callable[[str], Mapping[str, Any] | None]


def read_index(home: Path, spend_of: Spend, read_spec: ReadSpec) -> dict[str, Any]:
    """`spend_of` tells unit and total of an earlier version's release that has no budgets to add up."""
    with connect_published(Home(home).results) as connection:
        releases = connection.sql(statement("82_page_releases")).pl()
        shares = connection.sql(statement("83_page_trends"), params={"releases": RELEASES, "values": VALUES}).pl()
        known = SPENDS.name in stored_tables(connection)
        spends = connection.sql(statement("82_page_spends")).fetchall() if known else []
    by_release: dict[str, list[tuple[str, float | None]]] = {}
    for release_id, unit, spent in spends:
        by_release.setdefault(release_id, []).append((unit, spent))
    listed = [_with_spends(row, by_release, spend_of) for row in releases.iter_rows(named=True)]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in listed:  # spends of different units are never added
        for unit, spent in row["spends"]:
            groups.setdefault((row["name"], unit), []).append({**row, "spent": spent})
    room, series = TREND_CHARTS, []
    for (name, unit), rows in groups.items():
        # A release of several units has its trends where the widest is.
        first = [row["release_id"] for row in rows if row["spends"][0][0] == unit]
        series_shares = shares.filter(pl.col("release_id").is_in(first))
        newest = rows[0]["release_id"]
        wording = read_wording(Home(home).releases / newest)
        series.append(_series(name, unit, rows, _as_declared(series_shares, read_spec(newest)), room, wording))
        room -= series[-1]["drawn"]
    names = {"n_names": len({name for name, _ in groups}), "n_releases": len(listed)}
    return {"releases": listed[:LISTED], "series": series, "RELEASES": RELEASES, **names}


def _with_spends(
    row: dict[str, Any], by_release: Mapping[str, list[tuple[str, float | None]]], spend_of: Spend
) -> dict[str, Any]:
    """By unit; releases of earlier versions have one."""
    spent, unit = row["spent"], row["unit"]
    if row["release_id"] not in by_release and spent is None:
        stated, spent = spend_of(row)
        unit = unit or stated
    return {**row, "spends": by_release.get(row["release_id"], [(unit, spent)])}


def _as_declared(shares: pl.DataFrame, spec: Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """Shares by attribute, attributes and values in the order of the newest spec: the same from release to release.

    Without a spec attributes stand by name and values by their size.
    """
    declared: dict[str, list[str]] = {
        str(part["name"]): list(part.get("values") or ())
        for part in (spec or {}).get("attributes") or ()
        if isinstance(part, Mapping)
    }
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in shares.iter_rows(named=True):
        groups.setdefault(row["attribute"], []).append(row)
    names = [*(name for name in declared if name in groups), *(name for name in groups if name not in declared)]
    ordered = {}
    for name in names:
        places = {value: place for place, value in enumerate(declared.get(name, ()))}
        ordered[name] = sorted(
            groups[name],
            key=lambda row, places=places: (  # type: ignore[misc]
                row["created_at"], row["release_id"], places.get(row["value"], len(places)), row["place"],
            ),
        )  # fmt: skip
    return ordered


def _series(
    name: str,
    unit: str,
    newest_first: list[dict[str, Any]],
    shares: dict[str, list[dict[str, Any]]],
    room: int,
    wording: Wording,
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
        "title": wording.title or name,
        "unit": unit,
        "n_shown": len(rows),
        "n_releases": len(newest_first),
        "spent": spent,
        "unknown": sum(row["spent"] is None for row in newest_first),
        "course": None,
        "trends": None,
        "drawn": 0,
        "left_out": 0,
    }
    if len(rows) < 2:
        return view
    for row, stamp in zip(rows, stamps([row["created_at"] for row in rows]), strict=True):
        row["stamp"] = stamp
    view["course"] = _course(name, unit, rows, len(newest_first))
    stamp_of = {row["release_id"]: row["stamp"] for row in rows}
    released = {row["release_id"] for part in shares.values() for row in part}
    if len(released & set(stamp_of)) > 1:
        drawn = list(shares)[: max(0, room)]
        figures = tuple(_trend(name, attribute, shares[attribute], stamp_of, wording) for attribute in drawn)
        view |= {
            "trends": Pair(figures) if figures else None,
            "drawn": len(drawn),
            "left_out": len(shares) - len(drawn),
        }
    return view


def _course(name: str, unit: str, rows: list[dict[str, Any]], n_releases: int) -> tuple[Pair, Folded]:
    """Users and spends, release by release."""
    stamped = tuple(row["stamp"] for row in rows)
    users = Steps(
        f"Bar chart of users over {len(rows)} releases of {name}, {rows[0]['n_users']:,} at first and "
        f"{rows[-1]['n_users']:,} in the newest. The table below has all numbers.",
        stamped,
        tuple(float(row["n_users"]) for row in rows),
        tuple(f"{row['n_users']:,}" for row in rows),
    )
    spends = Steps(
        f"Bar chart of the most that {words.UNITS[unit]} in all releases of {name} has spent, growing to "
        f"{rows[-1]['spent_so_far']:.4g} over {n_releases} releases. The table below has all numbers.",
        stamped,
        tuple(row["spent_so_far"] for row in rows),
        tuple(words.above(row["spent_so_far"]) if row["spent_so_far"] else "0" for row in rows),
    )
    captions = ("Users.", f"ε spent so far by {words.protected(unit)} in all releases.")
    figures = tuple(
        Figure((strong(caption), " One step per release."), chart)
        for caption, chart in zip(captions, (users, spends), strict=True)
    )
    titles = ("opened, UTC", "release", "status", "users", "spent ε", "spent so far")
    columns = tuple(Column((title,), words=title in ("release", "status")) for title in titles)
    lines = tuple(
        (
            (row["stamp"],),
            (row["release_id"],),
            (row["status"],),
            (f"{row['n_users']:,}",),
            ("unknown" if row["spent"] is None else words.above(row["spent"]),),
            (words.above(row["spent_so_far"]) if row["spent_so_far"] else "0",),
        )
        for row in rows[::-1]
    )
    title = f"Users and spends of {name} in numbers"
    return Pair(figures), Folded((title,), (Table(title, columns, lines),))


def _trend(name: str, attribute: str, part: list[dict[str, Any]], stamp_of: dict[str, str], wording: Wording) -> Figure:
    """A published release may be older than the newest ones, refused ones included: it is left out."""
    rows = [{**row, "release": stamp_of[row["release_id"]]} for row in part if row["release_id"] in stamp_of]
    seen = {row["release"] for row in rows}
    releases = [stamp for stamp in stamp_of.values() if stamp in seen]
    values = [row["value"] for row in rows if row["release"] == releases[-1]]
    values += [value for value in dict.fromkeys(row["value"] for row in rows) if value not in values]
    digits = words.decimals(min(row["standard_error"] for row in rows))
    label, shown = wording.attribute(attribute), {value: wording.value(attribute, value) for value in values}
    newest = [row for row in rows if row["release"] == releases[-1]]
    said = "; ".join(f"{shown[row['value']]} {words.percent(row['frequency'], digits)}" for row in newest)
    chart = Lines(
        f"Line chart of {label} in {name}: shares of its {len(values)} largest values over releases, with error "
        f"bars. In the newest: {said}. The table below has all numbers.",
        tuple(releases),
        tuple(Series(shown[value], place) for place, value in enumerate(values)),
        tuple(
            Point(
                releases.index(row["release"]),
                values.index(row["value"]),
                row["frequency"],
                row["ci_low"],
                row["ci_high"],
                words.percent(row["frequency"], digits),
            )
            for row in rows
        ),
    )
    titles = ("opened, UTC", "value", "share", "standard error", "interval")
    columns = tuple(Column((title,), words=title == "value") for title in titles)
    lines = tuple(
        (
            (row["release"],),
            (shown[row["value"]],),
            (words.percent(row["frequency"], digits),),
            (words.percent(row["standard_error"], digits),),
            (f"{words.percent(row['ci_low'], digits)} to {words.percent(row['ci_high'], digits)}",),
        )
        for release in releases[::-1]
        for row in rows
        if row["release"] == release
    )
    caption = (strong(f"{label}:"), " shares of the values that are largest in the newest release, with intervals.")
    table = Table(f"{label} of {name} in numbers", columns, lines)
    return Figure(caption, chart, (Folded((f"{label} in numbers",), (table,)),))


def stamps(moments: Sequence[datetime]) -> list[str]:
    """The shortest dates that tell all moments apart; numbered where not even seconds do."""
    for form in _STAMPS:
        written = [moment.strftime(form) for moment in moments]
        if len(set(written)) == len(written):
            return written
    return [f"{stamp} ({number})" for number, stamp in enumerate(written, start=1)]
