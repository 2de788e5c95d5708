"""Where stages run: threads of this process, or the workers of a Dask cluster. Results do not depend on it.

A cluster gets names and paths, never data. It runs the stages' own functions, so workers need neither Prefect's server
nor the vault's database. A worker that dies costs what it had in flight: reports are committed one file at a time, and
nobody draws what is committed.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from pldp.errors import PldpError
from pldp.flows import cluster as clusters
from pldp.flows.cluster import Cluster
from pldp.flows.progress import report
from pldp.spec.runner import Runner
from pldp.tasks.run import Run
from pldp.tasks.stage import call, sharing, stage, stage_failed

if TYPE_CHECKING:
    from distributed import Client, Future

Call = tuple[Any, ...]
"""A stage's module and name, and its arguments."""

_POLL_SECONDS = 1.0
_BATCHES = 16
"""Task runs a level: enough to keep cores busy and show progress, few enough not to cost."""
_BATCHES_A_WORKER = 4

_current: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


@contextmanager
def running_on(runner: Runner, run: Run) -> Iterator[None]:
    """Everything that fans out in this block does so on this runner; its cluster ends with the block."""
    if runner.dask is None:
        yield
        return
    cluster = Cluster(runner, run)
    token = _current.set(cluster)
    try:
        with _stoppable(), sharing(_hand_over):
            cluster.begin()
            yield
    finally:
        _current.reset(token)
        cluster.close()


@contextmanager
def _stoppable() -> Iterator[None]:
    """A SIGTERM that nobody handles would end the process as it stands, and leave the workers' folder behind."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def current() -> Cluster | None:
    """The cluster that stages run on now; None for threads."""
    return _current.get()


def batches_of(partitions: int) -> list[Sequence[int]]:
    """Partitions for one call of a stage each."""
    cluster = current()
    workers = 0 if cluster is None else len(cluster.join().scheduler_info()["workers"])
    size = -(-partitions // max(_BATCHES, _BATCHES_A_WORKER * workers))
    return [range(start, min(start + size, partitions)) for start in range(0, partitions, size)]


@stage()
def hand_over(name: str, calls: Sequence[Call]) -> list[Any]:
    """One task run hands all calls to the cluster and waits: a task run of Prefect's on Dask costs 100 ms a call.

    The client is a temporary one: whatever ends this, its calls end with it.
    """
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError
    from prefect_dask import get_dask_client

    cluster = current()
    if cluster is None:
        raise ValueError("there is no cluster to hand over to")
    try:
        with get_dask_client(timeout=clusters.CONNECT_SECONDS, security=cluster.join().security) as client:
            return _results(client, [client.submit(call, *each, pure=False) for each in calls], name)
    except PldpError:
        raise
    except KilledWorker:
        why = "a worker was lost every time it ran; give workers more memory"
    except (CancelledError, CommClosedError, OSError):
        why = f"{cluster.place} was lost"
    except Exception as error:
        why = type(error).__name__
    raise stage_failed(name, why)


def _hand_over(name: str, calls: Sequence[Call]) -> list[Any]:
    """For a stage that spreads its work: it is a task run already."""
    return hand_over.fn(name, [(stage.fn.__module__, stage.fn.__name__, *arguments) for stage, *arguments in calls])


def _results(client: Client, futures: Sequence[Future], name: str) -> list[Any]:
    """In the calls' order; each is fetched as soon as it is there."""
    from distributed import wait

    results: dict[Future, Any] = {}
    seen = time.monotonic()
    report(name, 0, len(futures))
    while len(results) < len(futures):
        waiting = [future for future in futures if future not in results]
        try:
            wait(waiting, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > clusters.PATIENCE_SECONDS:
                raise stage_failed(name, f"no worker for {clusters.PATIENCE_SECONDS} seconds") from None
        results |= {future: future.result() for future in waiting if future.done()}
        report(name, len(results), len(futures))
    return [results[future] for future in futures]
