"""The release: from a spec and its source to published, validated results. One flow for every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from prefect import flow
from prefect.artifacts import create_table_artifact

from pldp.channels.exact import float_above
from pldp.errors import HomeError, Outcome, PldpError, SourceError
from pldp.flows.orchestration import orchestrated
from pldp.flows.pipeline import conclude, draw, threads
from pldp.flows.progress import report, tell
from pldp.flows.runner import running_on, starting
from pldp.spec.runner import RunnerOptions
from pldp.tasks.collect import ingest_source
from pldp.tasks.collector.kept import forget_slot, released_as
from pldp.tasks.home import Home
from pldp.tasks.ingest import begun, ended
from pldp.tasks.landing import land
from pldp.tasks.leftout import remarks
from pldp.tasks.publish import publish, status_of
from pldp.tasks.references import reference_of
from pldp.tasks.run import FORMAT, Run, open_run, require_slot
from pldp.tasks.specfile import SpecFile, load_spec
from pldp.tasks.stage import stage
from pldp.tasks.vaults import forget_vault, leaving_nothing, settle_vault, sweep_vaults
from pldp.tasks.wording import keep_wording, stated_wording

MANUAL = "manual"
_opened: ContextVar[tuple[SpecFile, Run] | None] = ContextVar("opened", default=None)
"""The spec and run that `release` has looked at: a flow's parameters are paths, and nothing is loaded twice."""
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
    runner: RunnerOptions = None,
) -> Released:
    """Run one release under the home's lock; the same identity resumes or is found done."""
    file, source = load_settled(spec_path, source, runner, slot)
    prepared = Home(home).prepare()
    with prepared.locked(wait):
        # A bad spec, a missing source or a finished release needs no orchestration to be told.
        earlier = _released(prepared, file, page.fn)
        if earlier is not None:
            return earlier
        file = land(prepared, file, slot)
        run = open_run(prepared, file, slot)
        earlier = _finished(run, file, page.fn)
        if earlier is not None:
            return earlier
        sweep_vaults(run)
        token = _opened.set((file, run))
        try:
            with begun(run, file), starting(file.spec.runner, run), orchestrated(home):
                return release_flow(str(spec_path), str(home), slot, None if source is None else str(source), runner)
        finally:
            _opened.reset(token)


def load_settled(path: Path, source: Path | None, runner: RunnerOptions, slot: str) -> tuple[SpecFile, Path | None]:
    """The spec with the folder that it reads. A collector's inbox is closed for the slot first; the rest is as ever."""
    file = load_spec(path, source, runner)
    if source is None and file.spec.source.inbox is not None:
        from pldp.flows.collecting import settled

        require_slot(slot)
        source = settled(file, slot)
        file = load_spec(path, source, runner)
    return file, source


@flow(name="release", task_runner=threads(), persist_result=False, validate_parameters=False)
def release_flow(
    spec_path: str, home: str, slot: str = MANUAL, source: str | None = None, runner: RunnerOptions = None
) -> Released:
    """The way of the data. Parameters are paths and names: they end up in the orchestration database."""
    opened = _opened.get()
    if opened is None:  # called as a flow, by a schedule or in somebody's own
        file, _ = load_settled(Path(spec_path), None if source is None else Path(source), runner, slot)
        finished = _released(Home(Path(home)), file, page)
        if finished is not None:
            return finished
        file = land(Home(Path(home)), file, slot)
        opened = file, open_run(Home(Path(home)), file, slot)
        finished = _finished(opened[1], file, page)
        if finished is not None:
            return finished
        sweep_vaults(opened[1])
    file, run = opened
    with running_on(file.spec.runner, run):
        report("ingest", 0)
        with leaving_nothing(run, file), ended():
            reference = reference_of(run, file)  # a bad one is told before anything is spent
            ingested = ingest_source(run, file)
        report("ingest", 1)
        tell(remarks(run) if ingested.received is None else [one.sentence for one in ingested.received.set_aside])
        record_spend(run, slot)
        if run.plan.perturbed_by == "vault":
            draw(run, ingested)
        outcome = conclude(run, ingested, reference)
    report("publish", 0)
    status = publish(run, ingested.n_users, outcome.tables, outcome.verdicts)
    report("publish", 1)
    with _forgotten(run, file, status), _shown_beside(run, outcome.tables if status == "published" else {}):
        report("page", 0)
        problem = page_problem(run, page, stale=keep_wording(run.folder, stated_wording(file.spec)))
        report("page", 1)
    return Released(run.release_id, status, resumed=False, page_problem=problem)


def _finished(run: Run, file: SpecFile, build: Callable[[Path, str], None]) -> Released | None:
    """The release as it was published or refused before, if it was."""
    done = status_of(run.home, run.release_id)
    if done is None:
        return None
    with _forgotten(run, file, done):  # whoever published it may have died before coming to this
        stale = keep_wording(run.folder, stated_wording(file.spec))
        return Released(run.release_id, done, resumed=True, page_problem=page_problem(run, build, stale=stale))


def _released(home: Home, file: SpecFile, build: Callable[[Path, str], None]) -> Released | None:
    """The release of a slot whose reports are deleted, as it is published: its source cannot name it any more."""
    release_id = released_as(file)
    if release_id is None:
        return None
    earlier = _finished(Run(str(home.root), release_id), file, build)
    if earlier is None:
        raise SourceError(
            f"was released as {release_id}, which this home does not have, and its reports were deleted then",
            Outcome.NOTHING_RUN,
            file=file.source,
            remedy="Name the home of that release, or another slot.",
        )
    return earlier


@contextmanager
def _forgotten(run: Run, file: SpecFile, status: str) -> Iterator[None]:
    """The raw values are gone before what comes next; if they are not, that is the release's last word."""
    failure = None
    try:
        forget_vault(run, file, status)
        forget_slot(file, run.release_id, status)
    except HomeError as error:
        failure = error
    yield
    if failure is not None:
        raise failure


@contextmanager
def _shown_beside(run: Run, tables: Mapping[str, pl.DataFrame]) -> Iterator[None]:
    """The first rows of the published tables go to Prefect's page meanwhile, one answer of its server after another."""

    def show() -> None:
        for name, table in tables.items():
            rows = table.head(ARTIFACT_ROWS).to_dicts()
            create_table_artifact(rows, key=name.replace("_", "-"), description=f"Release {run.release_id}")

    with ThreadPoolExecutor(1) as pool:
        shown = pool.submit(copy_context().run, show)  # which knows the flow's run
        yield
        shown.result()


@stage(retries=2)
def page(home: Path, release_id: str) -> None:
    """Loaded here: a release that is there already has its page."""
    from pldp.tasks.page import build_page

    build_page(home, release_id)


def page_problem(run: Run, build: Callable[[Path, str], None], *, stale: bool) -> str | None:
    """Build the page unless it is there and not stale. One that fails takes nothing back of what is published."""
    if not stale and (run.home.pages / f"{run.release_id}.html").exists():
        return None
    try:
        build(run.home.root, run.release_id)
    except PldpError as error:
        return str(error)
    return None


def record_spend(run: Run, slot: str) -> None:
    """Before the first draw: a release that is refused later has spent all the same."""
    plan = run.plan
    settle_vault(run)
    for unit in plan.units:
        run.home.record_spend(
            {
                "release_id": run.release_id,
                "name": plan.name,
                "slot": slot,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "unit": unit,
                "budget": float_above(plan.worst_total(unit)),
                "plan_sha256": plan.sha256,
                "key": run.home.fingerprint(),
                "format": FORMAT,
            }
        )
