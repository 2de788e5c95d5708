"""A Dask cluster of its own processes, with workers that die, fail or kill where they are told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.people import digests

if TYPE_CHECKING:
    from distributed import Worker

START = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0", local_directory=sys.argv[2], silence_logs=50,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@dataclass(frozen=True)
class Running:
    address: str
    pid: int
    """Of the process that holds the scheduler."""

    def arm(self, trigger: Trigger) -> None:
        """Every worker that lives now acts once it has committed a file of reports, whichever is first."""
        from distributed import Client

        with Client(self.address) as client:
            client.run(trigger.set)

    def rest(self) -> None:
        """Wait until no worker works: what one has begun outlives the release that wanted it."""
        from distributed import Client

        with Client(self.address) as client:
            while any(client.run(_works).values()):
                time.sleep(0.02)


def _works(dask_worker: Worker) -> bool:
    return bool(dask_worker.state.executing)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Running]:
    script = folder / "cluster.py"
    script.write_text(START)
    process = subprocess.Popen(
        [sys.executable, str(script), str(workers), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    yield Running(process.stdout.readline().strip(), process.pid)
    process.communicate()


@dataclass(frozen=True)
class Trigger:
    """What a worker does after its second commit, and where it notes what was committed by then."""

    kind: str
    note: Path
    reports: Path
    pid: int = 0

    def set(self) -> None:
        import pldp.tasks.perturb
        from pldp.tasks.reports import commit_reports as target

        calls = 0

        def shell(*args: Any) -> int:
            nonlocal calls
            drawn = target(*args)
            calls += 1
            if calls == 2:
                self._act()
            return drawn

        setattr(pldp.tasks.perturb, "commit_reports", shell)  # noqa: B010 — it takes the place of a typed function

    def _act(self) -> None:
        try:
            with self.note.open("x") as handle:
                json.dump(committed(self.reports), handle)
        except FileExistsError:
            return
        if self.kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == "kill the scheduler":
            os.kill(self.pid, signal.SIGKILL)
        else:
            raise ValueError("zqCANARYqz: the whole row stands here")


def committed(reports: Path) -> dict[str, str]:
    """What every committed report file holds; drafts are nobody's, and may be gone before they are read."""
    return digests(reports, drafts=False)
