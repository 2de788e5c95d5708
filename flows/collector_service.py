"""Running the collector: one process, loopback unless told otherwise, no access log.

It says where it listens once it does, and that it has stopped; nothing between.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

import uvicorn

from pldp.client.plan import Plan
from pldp.errors import Outcome, RequestError, SourceError
from pldp.flows.collecting import PLAN, longest_message, signed_plan
from pldp.flows.collector import Collector, application
from pldp.flows.collector_protocol import CONNECTIONS, GuardedProtocol
from pldp.flows.collector_writer import Limits, State
from pldp.flows.options import out
from pldp.tasks.drafts import commit
from pldp.tasks.durable import make_folder
from pldp.tasks.inbox import printable

_FILES = 100
"""That the collector may have open beside its connections."""
_BACKLOG = 2048
"""Connections that the system keeps until they are looked at."""


class _Server(uvicorn.Server):
    """Says so once connections are taken."""

    def __init__(self, config: uvicorn.Config, listens: Callable[[State], None], collector: Collector) -> None:
        super().__init__(config)
        self._listens, self._collector = listens, collector

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listens(await self._collector.writer.state())


def serve(plan_path: Path, folder: Path, host: str, port: int, limits: Limits) -> None:
    """Take messages until the process is told to end by SIGINT or SIGTERM."""
    os.umask(0o077)
    plan, envelope = signed_plan(plan_path)
    make_folder(folder)
    _require_own(folder)
    commit(folder / PLAN, envelope, mode=0o644)  # public, and read by whoever releases
    if (folder / PLAN).read_bytes() != envelope:
        raise SourceError(
            "holds messages to another plan, and a message answers one",
            Outcome.NOTHING_COLLECTED,
            file=printable(folder),
            remedy="Name another folder.",
        )
    _make_room()
    listening = _listener(host, port)
    # Many long questions lead to a long message, which nobody could send to a collector that takes shorter ones only.
    limits = replace(limits, body=max(limits.body, longest_message(plan)))
    collector = Collector(folder, plan, envelope, limits)
    config = uvicorn.Config(
        application(collector),
        http=GuardedProtocol,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=5,
        proxy_headers=False,
    )
    signal.signal(signal.SIGTERM, _interrupt)  # the server ends first, and hands the signal on
    try:
        _Server(config, lambda state: _tell(plan, folder, host, port, state), collector).run([listening])
    except KeyboardInterrupt:
        out.print("Stopped. Every message that was acknowledged is on disk.", highlight=False)


def _require_own(folder: Path) -> None:
    """Everybody who may write to the inbox could exchange the plan, and delete what came in."""
    if folder.stat().st_mode & stat.S_IWOTH:
        raise SourceError(
            "may be written by every user of this machine",
            Outcome.NOTHING_COLLECTED,
            file=printable(folder),
            remedy="Set its mode to 700, or to 2770 where a group shares it.",
        )


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Its connections have it from here; without it an answer's end waits 40 ms for the client's word on its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        number = error.errno or 0  # below 1: a name that is not known
        raise RequestError(
            f"cannot be listened at ({os.strerror(number) if number > 0 else error.strerror})",
            Outcome.NOTHING_COLLECTED,
            field=f"{host}:{port}",
            remedy="Name another --port or --host.",
        ) from None


def _tell(plan: Plan, folder: Path, host: str, port: int, state: State) -> None:
    """Where it listens, until when, where the page is, and how to stop it."""
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    lines = [
        f"Collecting at {url} until {plan.expires:%Y-%m-%d %H:%M} UTC, when the plan expires.",
        f"Page: {url}/#fingerprint={plan.fingerprint}",
        f"Stop with Ctrl+C, or kill {os.getpid()}; `pldp release` closes what came in, also while this runs.",
    ]
    if state is not State.OPEN:
        lines.append(f"No message is taken as long as the inbox {printable(folder)} is {state}; see {url}/health.")
    for line in lines:
        out.print(line, highlight=False, soft_wrap=True, markup=False)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _make_room() -> None:
    """As many files as connections may need: whoever opens them all must not keep the inbox from being opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + _FILES if hard == resource.RLIM_INFINITY else min(CONNECTIONS + _FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
