"""The serve command: every spec's schedule, until it is told to stop."""

from __future__ import annotations

import hashlib
import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pldp.errors import Outcome, SpecError, quoted
from pldp.flows.server import alone, scheduling_server
from pldp.spec.schedule import Schedule
from pldp.tasks.failures import COMMAND, read_failures, say
from pldp.tasks.home import Home
from pldp.tasks.specfile import load_spec


@dataclass(frozen=True)
class Served:
    """One spec with its schedule; `deployment` is its name on the server, which other homes may share."""

    name: str
    spec: Path
    home: Path
    schedule: Schedule

    @property
    def deployment(self) -> str:
        return f"{self.name}-{hashlib.sha256(bytes(self.home)).hexdigest()[:8]}"


def served(specs: Sequence[Path], home: Path) -> tuple[Served, ...]:
    """What there is to serve; a spec that cannot be scheduled stops everything before anything starts."""
    schedules = []
    for path in specs:
        spec = load_spec(path).spec
        if spec.schedule is None:
            raise SpecError(
                "is required to serve a spec, such as schedule: '0 3 * * *'",
                Outcome.NOTHING_RUN,
                file=path,
                field="schedule",
                remedy="Add it, or run `pldp release` by hand.",
            )
        schedules.append(Served(spec.name, path.resolve(), home.resolve(), spec.schedule))
    twice = [name for name, times in Counter(one.name for one in schedules).items() if times > 1]
    if twice:
        raise SpecError(
            "must differ between the specs of one home",
            Outcome.NOTHING_RUN,
            field="name",
            value=f"{quoted(twice[0])} more than once",
        )
    return tuple(schedules)


def serve(
    specs: Sequence[Path],
    home: Path,
    *,
    port: int | None = None,
    on_failure: str | None = None,
    grace_minutes: float | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. A server of our own stops with us; one that was there stays."""
    schedules = served(specs, home)
    prepared = Home(home.resolve()).prepare()
    if on_failure is not None:
        os.environ[COMMAND] = on_failure
    if grace_minutes is not None:
        os.environ["PLDP_GRACE"] = str(grace_minutes)
    before = signal.signal(signal.SIGTERM, _interrupt)  # so that a server we started is stopped on the way out
    try:
        with alone(prepared), scheduling_server(prepared.root, port) as server:
            from pldp.flows.deployments import run_schedules

            failures = read_failures(prepared)
            if failures:
                say(f"{len(failures)} runs failed earlier, the last at {failures[-1].at}: see {prepared.failures}.")
            run_schedules(schedules, server)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
    say("Stopped. Nothing is scheduled any more; the next serve goes on with the next slot.")


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
