"""Where stages run: threads of this process, or the workers of a Dask cluster. Results do not depend on it.

A cluster gets names and paths, never data. It runs the stages' own functions, so workers need neither Prefect's server
nor the vault's database. A worker that dies costs what it had in flight: reports are committed one file at a time, and
nobody draws what is committed.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from flows.progress import report
from pldp import __version__
from pldp.errors import HomeError, PldpError, StageFailed
from pldp.spec_runner import LOCAL, Runner
from tasks.run import AnyRun
from tasks.stage import call, reason, sentence, stage

if TYPE_CHECKING:
    from distributed import Client, Future

Call = tuple[Any, ...]
"""A stage's module and name, and its arguments."""

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 30
PATIENCE_SECONDS = 120
"""How long a cluster may have no worker at all."""

_POLL_SECONDS = 1.0
_BATCHES = 16
"""Task runs a level: enough to keep cores busy and show progress, few enough not to cost."""
_BATCHES_A_WORKER = 4
_QUIET = {
    "logging": {"distributed": "critical"},  # what failed is said by the stage, without anybody's rows
    "distributed.scheduler.http.routes": [],  # no dashboard
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 65536,
}


@dataclass
class Cluster:
    """A cluster for one run, started or joined when a stage first needs it."""

    runner: Runner
    run: AnyRun
    _open: ExitStack = field(default_factory=ExitStack)
    _client: Client | None = None

    @property
    def place(self) -> str:
        return "a local Dask cluster" if self.runner.dask == LOCAL else f"the Dask scheduler at {self.runner.dask}"

    def join(self) -> Client:
        if self._client is None:
            import dask
            import distributed  # noqa: F401 — it adds its defaults to the settings, which come back when this ends

            self._open.enter_context(dask.config.set(_QUIET))
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            try:
                client = self._start() if self.runner.dask == LOCAL else self._connect()
            except (OSError, RuntimeError, ValueError) as error:
                raise HomeError(
                    f"runner: {self.place} does not answer ({reason(error)}). Check its address and that it runs. "
                    "Nothing of this release was published; run the same command again to resume."
                ) from None
            self._open.callback(client.close)
            self._look_at_workers(client)
            self._client = client
        return self._client

    def close(self) -> None:
        self._open.close()
        self._client = None

    def _start(self) -> Client:
        """Processes on loopback; whoever reaches a scheduler can run code as its user, so they speak TLS among them."""
        from distributed import LocalCluster
        from distributed.security import Security

        # Spilled or crashed, whatever workers leave lies in the vault and goes with it.
        folder = self.run.vault.with_name("workers")
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        folder.mkdir(mode=0o700)
        self._open.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = self._open.enter_context(
            LocalCluster(
                n_workers=0,  # so that it is ours to stop before the first of them starts
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                protocol="tls://",
                security=Security.temporary(),
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
                memory_limit=self.runner.memory or "auto",
                local_directory=str(folder),
                silence_logs=logging.CRITICAL,
            )
        )
        cluster.scale(self.runner.workers or os.cpu_count() or 1)
        return cluster.get_client()

    def _connect(self) -> Client:
        from distributed import Client

        return Client(self.runner.dask, timeout=CONNECT_SECONDS)

    def _look_at_workers(self, client: Client) -> None:
        """Before the first draw: the same version, and the same storage."""
        try:
            client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
            found: dict[str, tuple[str, bool]] = client.run(look, str(self.run.folder / "plan.json"))
        except Exception:
            raise HomeError(
                f"runner: {self.place} has no worker that answers. Nothing of this release was published; "
                "run the same command again to resume."
            ) from None
        for worker, (version, sees) in found.items():
            if version != __version__ or not sees:
                rule = f"has pldp {version}, not {__version__}" if sees else f"does not see the home {self.run.root}"
                raise HomeError(
                    f"runner: worker {worker} {rule}. Install the same version everywhere, and give a --home on "
                    "storage that every worker sees under the same path. Nothing of this release was published."
                )


_current: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


@contextmanager
def running_on(runner: Runner, run: AnyRun) -> Iterator[None]:
    """Everything that fans out in this block does so on this runner; its cluster ends with the block."""
    if runner.dask is None:
        yield
        return
    cluster = Cluster(runner, run)
    token = _current.set(cluster)
    try:
        with _stoppable():
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


def look(plan: str) -> tuple[str, bool]:
    """What a worker has: its version of this package, and whether it sees the run's plan."""
    return __version__, os.path.exists(plan)


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
        with get_dask_client(timeout=CONNECT_SECONDS, security=cluster.join().security) as client:
            return _results(client, [client.submit(call, *each, pure=False) for each in calls], name)
    except PldpError:
        raise
    except KilledWorker:
        why = "a worker was lost every time it ran; give workers more memory"
    except (CancelledError, CommClosedError, OSError):
        why = f"{cluster.place} was lost"
    except Exception as error:
        why = type(error).__name__
    raise StageFailed(sentence(name, why))


def _results(client: Client, futures: Sequence[Future], name: str) -> list[Any]:
    """In the calls' order; each is fetched as soon as it is there."""
    from distributed import wait

    found: dict[Future, Any] = {}
    seen = time.monotonic()
    report(name, 0, len(futures))
    while len(found) < len(futures):
        waiting = [future for future in futures if future not in found]
        try:
            wait(waiting, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE_SECONDS:
                raise StageFailed(sentence(name, f"no worker for {PATIENCE_SECONDS} seconds")) from None
        found |= {future: future.result() for future in waiting if future.done()}
        report(name, len(found), len(futures))
    return [found[future] for future in futures]
