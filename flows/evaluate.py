"""The evaluation: the release's own stages with the truth beside them. It stays on the vault's side."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from prefect import flow

from pldp.flows.kinds import Asked, kind_for
from pldp.flows.orchestration import orchestrated
from pldp.flows.pipeline import threads
from pldp.flows.progress import report, tell
from pldp.flows.runner import running_on
from pldp.tasks.home import Home
from pldp.tasks.leftout import remarks
from pldp.tasks.query import connect
from pldp.tasks.run import Run
from pldp.tasks.tables import validation_rows
from pldp.tasks.vaults import forget_vault

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@dataclass(frozen=True)
class Evaluated:
    evaluation_id: str
    folder: Path
    n_users: int
    tables: Mapping[str, pl.DataFrame]
    """What the study of the kind made, by name."""
    verdicts: tuple[Verdict, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "evaluation_id": self.evaluation_id,
            "n_users": self.n_users,
            **{name: frame.to_dicts() for name, frame in self.tables.items()},
            "validations": [vars(verdict) for verdict in self.verdicts],
        }


def evaluate(
    spec_path: Path,
    home: Path,
    *,
    repeat: int | None = None,
    seed: int | None = None,
    keep_levels: bool = False,
    source: Path | None = None,
) -> Evaluated:
    kind_for(spec_path).load(spec_path, source, None, evaluation=True)
    Home(home).prepare()
    given = None if source is None else str(source)
    with orchestrated(home):
        return evaluate_flow(str(spec_path), str(home), repeat, seed, keep_levels, given)


@flow(name="evaluate", task_runner=threads(), persist_result=False, validate_parameters=False)
def evaluate_flow(
    spec_path: str, home: str, repeat: int | None, seed: int | None, keep_levels: bool, source: str | None
) -> Evaluated:
    """One run of the pipeline, then whatever the kind repeats."""
    kind = kind_for(Path(spec_path))
    file = kind.load(Path(spec_path), None if source is None else Path(source), None, evaluation=True)
    slot = "evaluation" if seed is not None else f"evaluation-{secrets.token_hex(8)}"
    run = kind.open(Home(Path(home)), file, slot, evaluation=True, seed=seed)
    with running_on(file.spec.runner, run):
        report("ingest", 0)
        ingested = kind.ingest(run, file)
        report("ingest", 1)
        tell(remarks(run))
        kind.draw(run, file, ingested)
        done = kind.study(run, file, ingested, Asked(repeat, seed, keep_levels))
    _keep(run, {**done.tables, "validations": validation_rows(done.verdicts)})
    forget_vault(run, file)
    return Evaluated(run.release_id, run.folder, ingested.n_users, done.tables, done.verdicts)


def _keep(run: Run, tables: Mapping[str, pl.DataFrame]) -> None:
    """The evaluation's own database, in its folder on the vault's side; no command publishes it."""
    path = run.folder / "evaluation.duckdb"
    path.unlink(missing_ok=True)
    with connect(path) as connection:
        for table, frame in tables.items():
            connection.from_arrow(frame.to_arrow()).create(table)
