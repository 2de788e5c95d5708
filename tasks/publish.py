"""Publish: one replacement. All tables of a release appear together or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pldp import __version__
from pldp.channels.exact import float_above
from pldp.errors import HomeError, Outcome
from pldp.questions.statement import privacy_statement
from pldp.questions.tables import published_table
from pldp.tables.common import RELEASES, SPENDS, VALIDATIONS
from pldp.tasks.contents import record_contents
from pldp.tasks.drafts import commit, draft_of
from pldp.tasks.durable import sync_folder
from pldp.tasks.home import Home
from pldp.tasks.query import connect, connect_published, refuse_log, statement
from pldp.tasks.run import Run
from pldp.tasks.schema import insert_rows, prepare_tables
from pldp.tasks.stage import stage
from pldp.tasks.tables import frame, of_release, validation_rows

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

KEPT = 2
"""Results files kept beside the current one, for analysts who opened them by their own name."""

_NUMBERED = re.compile(r"results-(\d+)\.duckdb(?:\.wal)?")


@stage(retries=2)
def publish(run: Run, n_users: int, tables: Mapping[str, pl.DataFrame], verdicts: tuple[Verdict, ...]) -> str:
    """Add a release to the results; its status. A refused one leaves its row, its gates and its spends, nothing else.

    A repeat finds the release there and changes nothing.
    """
    if run.evaluation:
        raise HomeError("An evaluation knows the truth and cannot be published", Outcome.NOTHING_PUBLISHED)
    home = run.home
    present = status_of(home, run.release_id)
    if present is not None:
        return present
    status = "published" if all(verdict.passed for verdict in verdicts) else "refused"
    rows = {RELEASES.name: _release_row(run, n_users, status), VALIDATIONS.name: validation_rows(verdicts)}
    # A refused release has spent its budget too, so its users are told what they spent.
    rows |= tables if status == "published" else {name: rows for name, rows in tables.items() if name == SPENDS.name}
    content = json.dumps(privacy_statement(run.plan, run.release_id, n_users), indent=2)
    commit(run.folder / "privacy.json", content.encode(), mode=0o644)
    _replace(home, run.release_id, rows)
    return status


def _release_row(run: Run, n_users: int, status: str) -> pl.DataFrame:
    plan = run.plan
    opened = json.loads((run.folder / "opened.json").read_text())
    return frame(
        RELEASES,
        {
            "name": [plan.name],
            "status": [status],
            "created_at": [datetime.fromisoformat(opened["at"]).replace(tzinfo=None)],
            "n_users": [n_users],
            "spec_sha256": [run.spec_sha256],
            "plan_sha256": [plan.sha256],
            "code_version": [__version__],
            "worst_epsilon": [float_above(plan.worst_total(plan.units[0]))],
            "protects": [plan.units[0]],
        },
    )


def status_of(home: Home, release_id: str) -> str | None:
    """How a release ended, published or refused; None while it has not."""
    if not home.results.exists():
        return None
    with connect_published(home.results) as connection:
        row = connection.execute(statement("71_publish_present"), {"release_id": release_id}).fetchone()
    return None if row is None else str(row[0])


def _replace(home: Home, release_id: str, rows: Mapping[str, pl.DataFrame]) -> None:
    """Build the next results file beside the current one, then swap the link.

    Whoever has the current file open keeps it; nobody ever sees half a release.
    """
    current = home.results.resolve() if home.results.exists() else None
    number = 1 + max((int(match[1]) for match in map(_NUMBERED.fullmatch, os.listdir(home.root)) if match), default=0)
    following = home.root / f"results-{number}.duckdb"
    draft = draft_of(home.results)
    try:
        if current is not None:
            refuse_log(current)
            shutil.copyfile(current, draft)
            draft.chmod(0o600)
        with connect(draft) as connection:
            connection.execute("BEGIN")
            prepare_tables(connection)
            for name, content in rows.items():
                insert_rows(connection, published_table(name), of_release(content, release_id))
            connection.execute("COMMIT")
            connection.execute("CHECKPOINT")
        draft.chmod(0o444)
        with draft.open("rb") as handle:
            os.fsync(handle.fileno())
        record_contents(home, release_id, draft, following.name)
        draft.rename(following)
        sync_folder(home.root)  # before the link, which must never lead nowhere
        _point(home.results, following)
        sync_folder(home.root)  # and before older files go
    finally:
        for left_over in home.root.glob(f"{draft.name}*"):
            left_over.unlink()
    _forget(home, number)


def _point(link: Path, target: Path) -> None:
    temporary = draft_of(link)
    temporary.symlink_to(target.name)
    temporary.replace(link)


def _forget(home: Home, number: int) -> None:
    for entry in os.listdir(home.root):
        match = _NUMBERED.fullmatch(entry)
        if match and int(match[1]) < number - KEPT:
            (home.root / entry).unlink()
