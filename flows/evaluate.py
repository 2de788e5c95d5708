"""The evaluation: the release's own stages with the truth beside them. It stays on the vault's side."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from prefect import flow

from pldp.errors import Outcome as Happened
from pldp.errors import RequestError
from pldp.flows.orchestration import orchestrated
from pldp.flows.pipeline import Outcome, conclude, draw, everybody, threads
from pldp.flows.planned import as_frame
from pldp.flows.progress import report, tell
from pldp.flows.runner import running_on
from pldp.questions.question import Repeats, Rows
from pldp.questions.rows import joined
from pldp.tables.common import BUDGETS
from pldp.tasks.collect import ingest_source
from pldp.tasks.combine import StoredReports
from pldp.tasks.home import Home
from pldp.tasks.ingest import Ingested
from pldp.tasks.landing import land, landed
from pldp.tasks.leftout import remarks
from pldp.tasks.query import connect
from pldp.tasks.references import reference_of
from pldp.tasks.run import Run, open_run
from pldp.tasks.specfile import SpecFile, load_spec
from pldp.tasks.stage import guarded
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
    dependence: float | None = None,
    source: Path | None = None,
) -> Evaluated:
    """Compare the estimates of a spec file with the truth, over repetitions; nothing is published.

    `source` stands in for the spec's. With `keep_levels` repetitions deal nobody another level; `dependence` is the Γ
    as far as which they also deal levels by what people hold. What comes back has the tables of the study and the
    verdicts of all gates; SpecError or SourceError before anything runs.
    """
    file = load_spec(spec_path, source, evaluation=True)
    file.refuse_evaluation()
    refuse_dealing(file, dependence, keep_levels=keep_levels)
    Home(home).prepare()
    source_path = None if source is None else str(source)
    with orchestrated(home):
        return evaluate_flow(str(spec_path), str(home), repeat, seed, keep_levels, dependence, source_path)


@flow(name="evaluate", task_runner=threads(), persist_result=False, validate_parameters=False)
def evaluate_flow(
    spec_path: str,
    home: str,
    repeat: int | None,
    seed: int | None,
    keep_levels: bool,
    dependence: float | None,
    source: str | None,
) -> Evaluated:
    """One run of the pipeline, then whatever the kind repeats."""
    file = load_spec(Path(spec_path), None if source is None else Path(source), evaluation=True)
    file.refuse_evaluation()
    slot = "evaluation" if seed is not None else f"evaluation-{secrets.token_hex(8)}"
    file = land(Home(Path(home)), file, slot, evaluation=True)
    run = open_run(Home(Path(home)), file, slot, evaluation=True, seed=seed)
    with landed(file), running_on(file.spec.runner, run):
        report("ingest", 0)
        ingested = ingest_source(run, file)
        report("ingest", 1)
        tell(remarks(run))
        draw(run, ingested)
        people = everybody(run, ingested)
        outcome = conclude(run, ingested, reference_of(run, file, people), people)
        tables = _study(run, ingested, outcome, Repeats(repeat, seed, keep_levels, run.stream, dependence=dependence))
    _keep(run, {**tables, "validations": validation_rows(outcome.verdicts)})
    forget_vault(run, file)
    return Evaluated(run.release_id, run.folder, ingested.n_users, tables, outcome.verdicts)


def refuse_dealing(file: SpecFile, dependence: float | None, *, keep_levels: bool) -> None:
    """Levels that cannot be dealt by what people hold, or are asked to be kept as well."""
    if dependence is None:
        return
    if not 1 <= dependence < math.inf:
        rule, stated = "must be a number of at least 1", f"{dependence:g}"
        raise RequestError(rule, Happened.NOTHING_RUN, field="--dependence", value=stated)
    if keep_levels:
        rule = "--dependence deals people's levels anew and --keep-levels keeps them: give one of both"
        raise RequestError(rule, Happened.NOTHING_RUN)
    reasons = [question.not_dealt for question in file.plan.questions]
    if all(reason is not None for reason in reasons):
        why = "; ".join(f"{question.kind}: {question.not_dealt}" for question in file.plan.questions)
        rule = f"--dependence would change nothing, as nobody's level can be dealt by what they hold ({why})"
        raise RequestError(rule, Happened.NOTHING_RUN, file=file.path, remedy="Leave it out.")


def _study(run: Run, ingested: Ingested, outcome: Outcome, repeats: Repeats) -> dict[str, pl.DataFrame]:
    """Every question beside its truth, and whatever its kind repeats; tables of one name stand below each other."""
    people, parts = everybody(run, ingested), []
    questions = run.plan.questions
    for number, question in enumerate(questions):
        report("repeat", number, len(questions))
        stored = StoredReports(run, question, ingested.partitions)
        truth = None if outcome.truths is None else outcome.truths[number]
        study: Callable[..., dict[str, Rows]] = guarded(question.study)
        parts.append(study(people, truth, outcome.results[number], replace(repeats, reports=stored)))
    report("repeat", len(questions), len(questions))
    names = dict.fromkeys(name for part in parts for name in part)
    tables = {name: joined([part[name] for part in parts if name in part]) for name in names}
    budgets = outcome.tables[BUDGETS.name]
    return {**{name: as_frame(rows) for name, rows in tables.items()}, BUDGETS.name: budgets}


def _keep(run: Run, tables: Mapping[str, pl.DataFrame]) -> None:
    """The evaluation's own database, in its folder on the vault's side; no command publishes it."""
    path = run.folder / "evaluation.duckdb"
    path.unlink(missing_ok=True)
    with connect(path) as connection:
        for table, frame in tables.items():
            if not frame.columns:
                continue  # nothing of it, so nothing says what its columns would be
            connection.from_arrow(frame.to_arrow()).create(table)
