"""Where stages run: threads of this process, or the workers of a Dask cluster. Results do not depend on it.

A cluster gets names and paths, never data. It runs the stages' own functions, so workers need neither Prefect's server
nor the vault's database. A worker that dies costs what it had in flight: reports are committed one file at a time, and
nobody draws what is committed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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

JOINING = "workers"
"""What is reported while workers start."""
_POLL_SECONDS = 1.0
_BATCHES, _BATCHES_A_CORE = 4, 2
"""Task runs a level, at least so many: enough to keep cores busy and show progress, few enough not to cost: each takes
Prefect's server 15 ms of a core, of 10 million people's reports in a second."""
_BATCHES_A_WORKER = 4

_current: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


@contextmanager
def running_on(runner: Runner, run: Run) -> Iterator[None]:
    """Everything that fans out in this block does so on this runner; its cluster ends with the block.

    It is one that `starting` has begun, or it begins now.
    """
    if runner.dask is None:
        yield
        return
    with ExitStack() as stack:
        if current() is None:
            stack.enter_context(starting(runner, run))
        cluster = _cluster()
        try:
            report(JOINING, 0)
            join_workers()
            report(JOINING, 1)
            with sharing(_hand_over):
                yield
        finally:
            # Its end takes a while, in which the command goes on; `starting` waits for it.
            threading.Thread(target=cluster.close, name="pldp-closing").start()


@contextmanager
def starting(runner: Runner, run: Run) -> Iterator[None]:
    """Begin the runner's cluster, if it has one, for whatever runs on it in this block; it has ended with the block."""
    if runner.dask is None:
        yield
        return
    cluster = Cluster(runner, run)
    token = _current.set(cluster)
    try:
        with _stoppable():
            cluster.begin()
            yield
    finally:
        _current.reset(token)
        cluster.close()


@stage()
def join_workers() -> None:
    """Wait until workers are there, and see that they fit: a stage of its own, for it is no work on data."""
    _cluster().join()


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


def _cluster() -> Cluster:
    cluster = current()
    if cluster is None:
        raise ValueError("there is no cluster to hand over to")
    return cluster


def batches_of(partitions: int) -> list[Sequence[int]]:
    """Partitions for one call of a stage each."""
    cluster = current()
    workers = 0 if cluster is None else len(cluster.join().scheduler_info()["workers"])
    wanted = max(_BATCHES, _BATCHES_A_CORE * (os.cpu_count() or 1), _BATCHES_A_WORKER * workers)
    size = -(-partitions // wanted)
    return [range(start, min(start + size, partitions)) for start in range(0, partitions, size)]


@stage()
def hand_over(name: str, calls: Sequence[Call]) -> list[Any]:
    """One task run hands all calls to the cluster and waits: a task run of Prefect's on Dask costs 100 ms a call.

    Whatever ends this, its calls end with it. All stages have one client: a new one takes longer than 16 calls.
    """
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    cluster = _cluster()
    client = cluster.join()
    futures: list[Future] = []
    try:
        futures += [client.submit(call, *each, pure=False) for each in calls]
        return _results(client, futures, name)
    except PldpError:
        raise
    except KilledWorker:
        why = "a worker was lost every time it ran; give workers more memory"
    except (CancelledError, CommClosedError, OSError):
        why = f"{cluster.place} was lost"
    except Exception as error:
        why = type(error).__name__
    finally:
        if any(not future.done() for future in futures):
            with suppress(Exception):  # of a scheduler that is lost; they ended with it
                client.cancel(futures)
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
