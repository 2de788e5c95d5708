"""A Dask cluster for one run: processes that the command starts and stops, or one that runs already."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pldp import __version__
from pldp.errors import HomeError, Outcome
from pldp.spec.runner import LOCAL, Runner
from pldp.tasks.run import Run
from pldp.tasks.sources.listing import files_at
from pldp.tasks.stage import reason

if TYPE_CHECKING:
    from distributed import Client

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 30
PATIENCE_SECONDS = 120
"""How long a cluster may have no worker at all."""

_QUIET = {
    "logging": {"distributed": "critical"},  # what failed is said by the stage, without anybody's rows
    "distributed.scheduler.http.routes": [],  # no dashboard
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 65536,
    "distributed.nanny.pre-spawn-environ.POLARS_MAX_THREADS": 1,  # which it reads when it is imported
    # Loaded while a process starts, not when work is there.
    "distributed.worker.preload": ["pldp.tasks.shares", "pldp.tasks.perturb", "pldp.tasks.count"],
    # What nobody looks at: it took 4 % of a core in the command and 3 % in each worker, who need them for work.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


@dataclass
class Cluster:
    """A cluster for one run."""

    runner: Runner
    run: Run
    _open: ExitStack = field(default_factory=ExitStack)
    _client: Client | None = None
    ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def place(self) -> str:
        return "a local Dask cluster" if self.runner.dask == LOCAL else f"the Dask scheduler at {self.runner.dask}"

    def begin(self) -> None:
        """Try an address at once, before anything is spent; local processes start while the command reads."""
        if self.runner.dask == LOCAL:
            threading.Thread(target=self._begin, daemon=True).start()
        else:
            self.join()

    def join(self) -> Client:
        """Its client; whoever comes first starts it."""
        with self._lock:
            if self.ended:  # before what begins it came to that
                raise ValueError("a cluster that has ended does not start again")
            if self._client is None:
                self._client = self._join()
            return self._client

    def close(self) -> None:
        """End it, or wait until it has ended."""
        with self._lock:
            self.ended = True
            self._open.close()

    def _begin(self) -> None:
        with suppress(Exception):  # the first stage that needs it tries again, and tells
            self.join()

    def _join(self) -> Client:
        import dask
        import distributed  # noqa: F401 — it adds its defaults to the settings, which come back when this ends

        self._open.enter_context(dask.config.set(_QUIET))
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            client = self._start() if self.runner.dask == LOCAL else self._connect()
        except (OSError, RuntimeError, ValueError) as error:
            raise HomeError(
                f"{self.place} does not answer ({reason(error)})",
                Outcome.RESUMABLE,
                field="runner",
                remedy="Check its address and that it runs.",
            ) from None
        self._open.callback(client.close)
        self._look_at_workers(client)
        return client

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
        """Before the first draw: the same version, and the same storage. Clients' reports are copied to the home."""
        needed = [self.run.folder / "plan.json", *(Path(seen.path) for seen in self.run.inputs if not seen.reports)]
        try:
            client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
            versions: dict[str, tuple[str, Path | None]] = client.run(look, needed)
        except Exception:
            raise HomeError(f"{self.place} has no worker that answers", Outcome.RESUMABLE, field="runner") from None
        for worker, (version, unseen) in versions.items():
            if version != __version__ or unseen is not None:
                rule = f"does not see {unseen}" if unseen else f"has pldp {version}, not {__version__}"
                raise HomeError(
                    f"worker {worker} {rule}",
                    Outcome.RESUMABLE,
                    field="runner",
                    remedy=(
                        "Install the same version everywhere, and keep home and source on storage that every worker "
                        "sees under the same path."
                    ),
                )


def look(needed: Sequence[Path]) -> tuple[str, Path | None]:
    """What a worker has: its version of this package, and the first of these files that it does not see."""
    return __version__, next((path for path in needed if not files_at(path)), None)
