"""Flows run on a server that the operator configured, or on one of our own; never on one that Prefect starts itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.context import AsyncClientContext, FlowRunContext, SyncClientContext
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_RESULTS_PERSIST_BY_DEFAULT,
    PREFECT_SERVER_EPHEMERAL_ENABLED,
    PREFECT_TASKS_DEFAULT_PERSIST_RESULT,
    temporary_settings,
)

from pldp.errors import PldpError
from pldp.flows.own_server import OwnServer
from pldp.flows.progress import report
from pldp.flows.server import require_reachable, run_server

if TYPE_CHECKING:
    from prefect.settings.legacy import Setting

_SAFE = {
    PREFECT_SERVER_EPHEMERAL_ENABLED: False,
    PREFECT_RESULTS_PERSIST_BY_DEFAULT: False,
    PREFECT_TASKS_DEFAULT_PERSIST_RESULT: False,
}

_SENDERS = logging.getLogger("prefect._internal.concurrency")
"""Of what Prefect sends beside a run. What it still has to send when the run is over has no server any more, and its
complaints would stand below our own last words."""

GATES = ("pldp.expectations.runner",)
"""Brings Great Expectations, which takes seconds to import."""


@contextmanager
def orchestrated(home: Path, *, loading: Sequence[str] = GATES) -> Iterator[None]:
    """For the block that runs a flow, whether or not Prefect was imported before a server was chosen.

    The modules that it needs late are loaded beside, from the time on in which nothing is done but wait for the server.
    """
    if FlowRunContext.get() is not None:  # in somebody's own flow, on the server that it runs on
        with temporary_settings(_SAFE | _hosts_server()):
            yield
        return
    server = run_server(home)
    threading.Thread(target=_load, args=(loading,), name="pldp-loading", daemon=True).start()
    if server is None:
        require_reachable()
        with temporary_settings(_SAFE):
            yield
        return
    report("start", 0)
    server.wait()
    report("start", 1)
    _SENDERS.disabled = False
    try:
        with temporary_settings(_SAFE | alone_with(server)):
            yield
    except Exception as error:
        if not isinstance(error, PldpError) and server.turns_out_ended():
            raise server.ended() from None
        raise
    finally:
        _SENDERS.disabled = True  # its level is a setting of Prefect


def _hosts_server() -> dict[Setting, Any]:
    """The address of the server that a host's flow runs on. Prefect may have started it by itself: then no setting
    names it, and we, who never start one so, would have none."""
    host = SyncClientContext.get() or AsyncClientContext.get()
    return {} if PREFECT_API_URL.value() or host is None else {PREFECT_API_URL: str(host.client.api_url).rstrip("/")}


def alone_with(server: OwnServer) -> dict[Setting, Any]:
    """Settings of runs on a server of our own. It ends with them, so it listens to no heartbeats, and to stop sending
    them takes up to a second."""
    return {
        PREFECT_API_URL: server.url,
        PREFECT_API_AUTH_STRING: server.password,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
    }


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        with suppress(Exception):  # whoever needs it imports it again, and has the error
            import_module(module)
