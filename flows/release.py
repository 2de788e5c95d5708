"""The release: from a spec and its source to published, validated results. One flow for every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prefect import flow
from prefect.artifacts import create_table_artifact

from pldp.channels.exact import float_above
from pldp.errors import HomeError, PldpError
from pldp.flows.kinds import kind_for
from pldp.flows.orchestration import orchestrated
from pldp.flows.pipeline import threads
from pldp.flows.progress import report, tell
from pldp.flows.runner import running_on
from pldp.tasks.home import Home
from pldp.tasks.leftout import remarks
from pldp.tasks.publish import publish, status_of
from pldp.tasks.run import AnyFile, AnyRun
from pldp.tasks.specfile import Given
from pldp.tasks.stage import stage
from pldp.tasks.vaults import forget_vault, leaving_nothing, settle_vault, sweep_vaults
from pldp.tasks.wording import keep_wording, stated_wording

MANUAL = "manual"
ARTIFACT_ROWS = 1000
"""Rows of a table that the orchestration's database is given; the results have all."""


@dataclass(frozen=True)
class Released:
    release_id: str
    status: str
    resumed: bool
    """Whether the release was there already and nothing was drawn."""
    page_problem: str | None = None
    """Why there is no page; the release stands without it."""


def release(
    spec_path: Path,
    home: Path,
    *,
    slot: str = MANUAL,
    source: Path | None = None,
    wait: bool = False,
    runner: Given = None,
) -> Released:
    """Run one release under the home's lock; the same identity resumes or is found done."""
    kind = kind_for(spec_path)
    file = kind.load(spec_path, source, runner, evaluation=False)
    prepared = Home(home).prepare()
    with prepared.locked(wait):
        # A bad spec, a missing source or a finished release needs no orchestration to be told.
        run = kind.open(prepared, file, slot)
        found = _finished(run, file, page.fn)
        if found is not None:
            return found
        with orchestrated(home):
            return release_flow(str(spec_path), str(home), slot, None if source is None else str(source), runner)


@flow(name="release", task_runner=threads(), persist_result=False, validate_parameters=False)
def release_flow(
    spec_path: str, home: str, slot: str = MANUAL, source: str | None = None, runner: Given = None
) -> Released:
    """The way of the data. Parameters are paths and names: they end up in the orchestration database."""
    kind = kind_for(Path(spec_path))
    file = kind.load(Path(spec_path), None if source is None else Path(source), runner, evaluation=False)
    run = kind.open(Home(Path(home)), file, slot)
    found = _finished(run, file, page)
    if found is not None:
        return found
    sweep_vaults(run)
    with running_on(file.spec.runner, run):
        report("ingest", 0)
        with leaving_nothing(run):
            ingested = kind.ingest(run, file)
        report("ingest", 1)
        tell(remarks(run))
        record_spend(run, slot)
        kind.draw(run, file, ingested)
        outcome = kind.conclude(run, file, ingested)
    report("publish", 0)
    status = publish(run, ingested.n_users, outcome.tables, outcome.verdicts)
    report("publish", 1)
    with _forgotten(run, file, status):
        report("page", 0)
        problem = page_problem(run, page, stale=keep_wording(run.folder, stated_wording(file.spec)))
        report("page", 1)
    if status == "published":
        for table in kind.artifacts:
            rows = outcome.tables[table].head(ARTIFACT_ROWS).to_dicts()
            create_table_artifact(rows, key=table, description=f"Release {run.release_id}")
    return Released(run.release_id, status, resumed=False, page_problem=problem)


def _finished(run: AnyRun, file: AnyFile, build: Callable[[Path, str], None]) -> Released | None:
    """The release as it was published or refused before, if it was."""
    done = status_of(run.home, run.release_id)
    if done is None:
        return None
    with _forgotten(run, file, done):  # whoever published it may have died before coming to this
        stale = keep_wording(run.folder, stated_wording(file.spec))
        return Released(run.release_id, done, resumed=True, page_problem=page_problem(run, build, stale=stale))


@contextmanager
def _forgotten(run: AnyRun, file: AnyFile, status: str) -> Iterator[None]:
    """The raw values are gone before what comes next; if they are not, that is the release's last word."""
    failure = None
    try:
        forget_vault(run, file, status)
    except HomeError as error:
        failure = error
    yield
    if failure is not None:
        raise failure


@stage(retries=2)
def page(home: Path, release_id: str) -> None:
    """Loaded here: a release that is there already has its page."""
    from pldp.tasks.page import build_page

    build_page(home, release_id)


def page_problem(run: AnyRun, build: Callable[[Path, str], None], *, stale: bool) -> str | None:
    """Build the page unless it is there and not stale. One that fails takes nothing back of what is published."""
    if not stale and (run.home.pages / f"{run.release_id}.html").exists():
        return None
    try:
        build(run.home.root, run.release_id)
    except PldpError as error:
        return str(error)
    return None


def record_spend(run: AnyRun, slot: str) -> None:
    """Before the first draw: a release that is refused later has spent all the same."""
    plan = run.plan
    settle_vault(run)
    run.home.record_spend(
        {
            "release_id": run.release_id,
            "name": plan.name,
            "slot": slot,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "unit": plan.unit,
            "budget": float_above(plan.worst_total),
            "plan_sha256": plan.sha256,
            "key": run.home.fingerprint(),
        }
    )
