"""Schedules on a Prefect server: one deployment a spec, the slots nobody served, and the loop that runs them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.states import Cancelled, Crashed
from prefect.types.entrypoint import EntrypointType

from pldp.errors import HomeError, Outcome
from pldp.flows.own_server import OwnServer
from pldp.flows.schedule import grace, is_missed, report_failure, scheduled_release
from pldp.flows.serve import Served
from pldp.spec.schedule import slot_of
from pldp.tasks.failures import say
from pldp.tasks.home import Home

SCHEDULER_SECONDS = 180
"""A working scheduler plans a new deployment's runs within seconds."""

_HORIZON = timedelta(days=30)
_PAGE = 200
_UNDER_WAY = (StateType.PENDING, StateType.RUNNING)


def run_schedules(served: Sequence[Served], server: OwnServer | str) -> None:
    """Serve until a signal; runs under way are then stopped, and told as failures."""
    asyncio.run(_run(served, server))


async def _run(served: Sequence[Served], server: OwnServer | str) -> None:
    runner = Runner(name="pldp", limit=None)  # the home's lock lets one run at a time; a limit would make others late
    began = datetime.now(UTC)
    ids = [await _deploy(runner, one) for one in served]
    async with get_client() as client:
        await skip_missed(client, ids)
        await close_abandoned(client, ids, served[0].home)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    running = asyncio.create_task(runner.start())
    await asyncio.sleep(0)  # the runner installs a handler of its own in its first step; ours replaces it
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    announcing = asyncio.create_task(_announce(dict(zip(ids, served, strict=True)), began, server))
    watching = asyncio.create_task(_watch(server))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopping, watching, announcing}, return_when=asyncio.FIRST_COMPLETED)
        if announcing.done() and announcing.exception() is None:
            await asyncio.wait({running, stopping, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        await _stop(runner, running, server)
        for task in (announcing, watching):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _stop(runner: Runner, running: asyncio.Task[None], server: OwnServer | str) -> None:
    """Runs under way end; with a server that has died, whatever cannot be written there is nobody's business."""
    try:
        if not running.done():
            await runner.astop()
        await running
    except Exception:
        if isinstance(server, str) or not server.turns_out_ended():
            raise


async def _deploy(runner: Runner, one: Served) -> UUID:
    deployment = await scheduled_release.ato_deployment(
        name=one.deployment,
        schedule=Cron(one.schedule.cron, timezone=one.schedule.timezone),
        parameters={"spec_path": str(one.spec), "home": str(one.home)},
        description=f"Releases {one.name} into its home, one slot at a time.",
        tags=["pldp"],
        paused=False,  # the last serve paused it when it stopped
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    deployment.work_pool_name = None
    return await runner.aadd_deployment(deployment)


async def _runs(
    client: PrefectClient, ids: Sequence[UUID], states: Sequence[StateType], after: datetime | None = None
) -> list[FlowRun]:
    wanted = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=list(ids)),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))),
        expected_start_time=FlowRunFilterExpectedStartTime(after_=after) if after is not None else None,
    )
    runs: list[FlowRun] = []
    while page := await client.read_flow_runs(flow_run_filter=wanted, limit=_PAGE, offset=len(runs)):
        runs += page
    return runs


async def skip_missed(client: PrefectClient, ids: Sequence[UUID]) -> int:
    """Close the slots that came while nobody served, before the runner sees them. How many there were.

    The server plans runs ahead, up to a hundred; after days without a serve all of them are late and would start
    together. Future ones it plans anew by itself, and what an operator triggered or retries by hand stays.
    """
    now = datetime.now(UTC)
    missed = [
        run
        for run in await _runs(client, ids, [StateType.SCHEDULED])
        if run.auto_scheduled
        and run.run_count == 0
        and run.expected_start_time is not None
        and is_missed(run.expected_start_time, now)
    ]
    for run in missed:
        skipped: State[Any] = Cancelled(name="Skipped", message="Missed: nothing served this slot")
        await client.set_flow_run_state(run.id, skipped, force=True)
    if missed:
        say(f"Skipped {len(missed)} slots that came while nothing served; nothing was spent on them.")
    return len(missed)


async def close_abandoned(client: PrefectClient, ids: Sequence[UUID], home: Path) -> int:
    """Tell of runs that a killed serve left under way; nobody else would. How many there were."""
    try:
        with Home(home).locked():
            left = await _runs(client, ids, _UNDER_WAY)
            for run in left:
                state: State[Any] = Crashed(message="The serve that ran it was killed")
                await client.set_flow_run_state(run.id, state, force=True)
                await asyncio.to_thread(report_failure, scheduled_release, run, state)
    except HomeError:
        return 0  # one of them lives on and will end by itself
    return len(left)


async def _watch(server: OwnServer | str) -> None:
    """Ends with an error when our server does. One that is not ours may come back."""
    while isinstance(server, str) or not server.has_ended:
        await asyncio.sleep(1)
    raise server.ended()


async def _announce(served: dict[UUID, Served], began: datetime, server: OwnServer | str) -> None:
    """Say every spec's first slot, as the server has planned it: its clock and its cron fire, not ours.

    A server that accepts schedules and never fires them, as a temporary one does, is refused.
    """
    waiting = {}
    for key, one in served.items():
        computed = one.schedule.following(began)
        if computed < began + _HORIZON:
            waiting[key] = one
        else:
            _say_served(one, computed)  # a server may plan it later
    until = asyncio.get_running_loop().time() + SCHEDULER_SECONDS
    async with get_client() as client:
        while waiting:
            for key, slot in (await first_slots(client, list(waiting), began)).items():
                _say_served(waiting.pop(key), slot)
            if waiting and asyncio.get_running_loop().time() > until:
                raise HomeError(
                    f"The server at {server if isinstance(server, str) else server.url} plans no runs: it is a "
                    "temporary one, or its scheduler is off",
                    Outcome.NOTHING_RUN,
                    remedy="Use `prefect server start`, or unset PREFECT_API_URL.",
                )
            await asyncio.sleep(1)


def _say_served(one: Served, first: datetime) -> None:
    say(f"Serving {one.spec} at '{one.schedule.cron}' {one.schedule.timezone}; next slot {slot_of(first)}.")


async def first_slots(client: PrefectClient, ids: Sequence[UUID], began: datetime) -> dict[UUID, datetime]:
    """Of every deployment that has a run planned since we began to serve, or a late one left, the earliest."""
    slots: dict[UUID, datetime] = {}
    # In any state: a run of a cron of every minute may have started already.
    for run in await _runs(client, ids, list(StateType), after=began - grace()):
        slot, key, state = run.expected_start_time, run.deployment_id, run.state and run.state.type
        if slot is None or key is None or not run.auto_scheduled or state == StateType.CANCELLED:
            continue
        if slot >= began or state in (StateType.SCHEDULED, *_UNDER_WAY):
            slots[key] = min(slot, slots.get(key, slot))
    return slots
