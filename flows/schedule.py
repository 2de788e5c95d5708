"""The release as a schedule runs it: its slot is its scheduled start, and a missed slot is skipped."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId, LogFilterLevel
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.states import Completed

from pldp.errors import GateFailed, Outcome, SpecError
from pldp.flows.pipeline import threads
from pldp.flows.release import Released, load_settled, release_flow
from pldp.spec.schedule import slot_of
from pldp.tasks.failures import Failure, describe, say, tell
from pldp.tasks.home import Home
from pldp.tasks.landing import land
from pldp.tasks.publish import status_of
from pldp.tasks.run import Run, open_run
from pldp.tasks.settings import settle
from pldp.tasks.specfile import SpecFile, load_spec
from pldp.tasks.stage import guarded
from pldp.tasks.vaults import forget_vault

GRACE = "PLDP_GRACE"
"""Minutes after its slot in which a run may still start."""

GRACE_MINUTES = 10.0

OWN_PROCESS = "PREFECT__FLOW_RUN_ID"
"""In the environment of a process that Prefect started for one run alone."""

_NOT_LOADED = "Unexpected exception encountered when trying to load flow"
"""How Prefect's log begins for it; a traceback follows."""


def grace() -> timedelta:
    """How long after its time a slot may still start: GRACE_MINUTES, unless the environment says otherwise."""
    return timedelta(minutes=float(os.environ.get(GRACE, GRACE_MINUTES)))


def is_missed(due: datetime, now: datetime) -> bool:
    """Nobody served when the slot was due. Running it now would only crowd out, or double, the next one."""
    return now - due > grace()


def report_failure(flow: Any, flow_run: FlowRun, state: State[Any]) -> None:
    """For a run that failed, crashed or was stopped. Prefect logs what a hook raises and goes on."""
    parameters = flow_run.parameters
    home, spec = Path(parameters["home"]), Path(parameters["spec_path"])
    slot = parameters.get("slot") or slot_of(flow_run.expected_start_time or datetime.now(UTC))
    data: Any = state.data  # the exception, or a record around it
    error, message = describe(getattr(data, "result", data))
    if state.is_crashed() and (cause := _load_error(flow_run)):
        error, message = "NotStarted", f"The run could not begin ({cause}). Nothing was read, drawn or spent."
    tell(
        Home(home),
        Failure(
            run=flow_run.name,
            spec=str(spec),
            slot=slot,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            error=error,
            message=message,
            resume=shlex.join(["pldp", "release", str(spec), "--home", str(home), "--slot", slot]),
        ),
    )


@flow(
    name="scheduled-release",
    task_runner=threads(),
    persist_result=False,
    validate_parameters=False,
    on_failure=[report_failure],
    on_crashed=[report_failure],
    on_cancellation=[report_failure],
)
@guarded
def scheduled_release(spec_path: str, home: str, slot: str | None = None) -> State[Any]:
    """One slot of a schedule. Parameters are paths and names; `slot` is for an operator who runs one by hand."""
    if OWN_PROCESS in os.environ:
        atexit.register(_end_quietly)
    due = _due()
    if slot is None and due is not None and is_missed(due, datetime.now(UTC)):
        return _skipped(spec_path, f"slot {slot_of(due)} was missed: nothing served it then")
    file = load_spec(Path(spec_path))
    prepared = Home(Path(home).resolve()).prepare()
    settle(prepared.root)
    named = slot or slot_of(_start())
    with prepared.locked(wait=True):
        if slot is None and due is not None and _is_superseded(file, due, datetime.now(UTC)):
            return _skipped(spec_path, f"slot {named} waited for another release until the next slot was due")
        file, _ = load_settled(Path(spec_path), None, None, named)
        done = _taken(prepared, file, named) or release_flow.fn(spec_path, str(prepared.root), named)
    if done.status == "refused":
        raise GateFailed(f"Release {done.release_id} was refused by a gate: `pldp validate` names it", Outcome.SPENT)
    outcome = f"{done.release_id} {'is there already; nothing was drawn' if done.resumed else 'published'}"
    say(f"{spec_path}, slot {named}: {outcome}.{f' No page: {done.page_problem}' if done.page_problem else ''}")
    return Completed(message=outcome)


def _end_quietly() -> None:
    """DuckDB's types, which Prefect's threads still hold as the interpreter ends, would be told as leaks: forty lines a
    slot on the terminal of serve. All that matters has been said by then, and the exit code stays what it is."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _load_error(flow_run: FlowRun) -> str | None:
    """Why a run's process could not load this flow. It holds no data yet, and only the server's log has it."""
    wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run.id]), level=LogFilterLevel(ge_=logging.ERROR))
    try:
        with get_client(sync_client=True) as client:
            logs = client.read_logs(wanted)
    except Exception as error:
        say(f"The log of run {flow_run.name} cannot be read ({type(error).__name__}).")
        return None
    messages = [log.message for log in logs if log.message.startswith(_NOT_LOADED)]
    return messages[0].strip().splitlines()[-1] if messages else None


def _run() -> FlowRun | None:
    context = FlowRunContext.get()
    return context.flow_run if context is not None else None


def _start() -> datetime:
    """When this run was meant to start. It stays the same however often the run is retried."""
    run = _run()
    return (run and run.expected_start_time) or datetime.now(UTC)


def _due() -> datetime | None:
    """The slot of a run that the schedule made and that starts for the first time; nothing else can be missed."""
    run = _run()
    if run is None or not run.auto_scheduled or run.run_count > 1:
        return None
    return run.expected_start_time


def _is_superseded(file: SpecFile, due: datetime, now: datetime) -> bool:
    """The newer slot is waiting too: one release of the two is enough, and waiting runs never pile up."""
    schedule = file.spec.schedule
    return schedule is not None and is_missed(due, now) and schedule.following(due) <= now


def _taken(home: Home, file: SpecFile, slot: str) -> Released | None:
    """The release that has spent this slot, if it is done: a slot spends once, even when the source has changed."""
    name = file.spec.name
    for spent in home.spends():
        if spent["name"] == name and spent.get("slot") == slot:
            release_id = str(spent["release_id"])
            status = status_of(home, release_id)
            if status is not None:
                forget_vault(Run(str(home.root), release_id), file, status)  # if who published it died before this
                return Released(release_id, status, resumed=True)
            if open_run(home, land(home, file, slot), slot).release_id != release_id:
                raise SpecError(
                    f"slot {slot} was begun as {release_id}, and the spec or its source has changed since",
                    Outcome.NOTHING_SPENT,
                    file=file.path,
                    remedy="Bring them back and run it again to resume, or wait for the next slot.",
                )
    return None


def _skipped(spec_path: str, reason: str) -> State[Any]:
    say(f"{spec_path}: {reason}. Skipped; nothing was spent.")
    return Completed(name="Skipped", message=reason)
