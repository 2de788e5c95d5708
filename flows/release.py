"""The release: from a spec and its source to published, validated histograms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prefect import flow
from prefect.artifacts import create_table_artifact

from flows.pipeline import conclude, draw, forget_vault, threads
from flows.progress import report
from pldp.errors import PldpError
from pldp.exact import float_above
from tasks.collect import collect
from tasks.combine import references_of
from tasks.home import Home
from tasks.ingest import ingest
from tasks.numbers import number_tables
from tasks.publish import publish, status_of
from tasks.run import AnyRun, open_run
from tasks.specfile import AGGREGATES, kind_of, load_spec
from tasks.stage import stage
from tasks.tables import budget_rows, level_rows, share_rows

MANUAL = "manual"


@dataclass(frozen=True)
class Released:
    release_id: str
    status: str
    resumed: bool
    """Whether the release was there already and nothing was drawn."""
    page_problem: str | None = None
    """Why there is no page; the release stands without it."""


def release(
    spec_path: Path, home: Path, *, slot: str = MANUAL, source: Path | None = None, wait: bool = False
) -> Released:
    """Run one release under the home's lock; the same identity resumes or is found done."""
    if kind_of(spec_path) == AGGREGATES:
        from flows.aggregates import release_aggregates

        return release_aggregates(spec_path, home, slot=slot, source=source, wait=wait)
    file = load_spec(spec_path, source)
    prepared = Home(home).prepare()
    with prepared.locked(wait):
        # A bad spec, a missing source or a finished release needs no orchestration to be told.
        run = open_run(prepared, file, slot)
        done = status_of(prepared, run.release_id)
        if done is not None:
            forget_vault(run, file)  # whoever published it may have died before coming to this
            return Released(run.release_id, done, resumed=True, page_problem=page_problem(run, page.fn))
        return release_flow(str(spec_path), str(home), slot, None if source is None else str(source))


@flow(name="release", task_runner=threads(), persist_result=False, validate_parameters=False)
def release_flow(spec_path: str, home: str, slot: str = MANUAL, source: str | None = None) -> Released:
    """The way of the data. Parameters are paths and names: they end up in the orchestration database."""
    file = load_spec(Path(spec_path), None if source is None else Path(source))
    run = open_run(Home(Path(home)), file, slot)
    done = status_of(run.home, run.release_id)
    if done is not None:
        forget_vault(run, file)
        return Released(run.release_id, done, resumed=True, page_problem=page_problem(run, page))
    references = references_of(run, file)
    if file.spec.source.reports is not None:
        report("collect", 0)
        ingested = collect(run, file)
        report("collect", 1)
        record_spend(run, slot)
    else:
        report("ingest", 0)
        ingested = ingest(run, file)
        report("ingest", 1)
        record_spend(run, slot)
        draw(run, ingested)
    outcome = conclude(run, ingested, references)
    budgets = budget_rows(run.plan, outcome.supports, outcome.numbers)
    tables = {
        "histograms": outcome.rows,
        "budgets": budgets,
        **(
            {"level_estimates": level_rows(run.plan, outcome.estimates)}
            if run.plan.hidden is None
            else {"level_shares": share_rows(run.plan, outcome.supports)}
        ),
        **number_tables(run.plan, outcome.numbers),
    }
    report("publish", 0)
    status = publish(run, ingested.n_users, tables, outcome.verdicts)
    report("publish", 1)
    forget_vault(run, file)
    report("page", 0)
    problem = page_problem(run, page)
    report("page", 1)
    if status == "published":
        create_table_artifact(outcome.rows.to_dicts(), key="histograms", description=f"Release {run.release_id}")
        create_table_artifact(budgets.to_dicts(), key="budgets", description=f"Budgets of {run.release_id}")
    return Released(run.release_id, status, resumed=False, page_problem=problem)


@stage(retries=2)
def page(home: Path, release_id: str) -> None:
    """Charts take a second to load, and a release that is there already has its page."""
    from tasks.page import build_page

    build_page(home, release_id)


def page_problem(run: AnyRun, build: Callable[[Path, str], None]) -> str | None:
    """Build the page unless it is there. A page that fails takes nothing back of what is published."""
    if (run.home.pages / f"{run.release_id}.html").exists():
        return None
    try:
        build(run.home.root, run.release_id)
    except PldpError as error:
        return str(error)
    return None


def record_spend(run: AnyRun, slot: str) -> None:
    """Before the first draw: a release that is refused later has spent all the same."""
    plan = run.plan
    run.home.record_spend(
        {
            "release_id": run.release_id,
            "name": plan.name,
            "slot": slot,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "unit": plan.unit,
            "budget": float_above(plan.worst_total),
            "plan_sha256": plan.sha256,
        }
    )
