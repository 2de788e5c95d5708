"""How many messages a collector takes per second of one core, with every check and one sync per batch.

`python -m bench collector`. Required is a rate per CPU second of the collector's process, so a loaded machine matters
little; the rate by the wall clock stands beside the share of its core that the collector had. With `--quiet`, for a
machine that does nothing else and has at least two cores, the same rate is required by the wall clock.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common import Measure, publish

if TYPE_CHECKING:
    from tests.flows.test_collector import Launched

MESSAGES = 20_000
CONNECTIONS = 256
"""At a time, each of which sends its next message once the one before is acknowledged: enough that some always wait."""
REQUIRED = 2000.0
"""Messages per CPU second; and per second of a core of its own."""


def main(arguments: Sequence[str] = ()) -> bool:
    from tests.flows.test_collector import Service

    class Alone(Service):
        def launch(self, *words: object) -> Launched:
            return Started(self.folder, *words)

    parser = argparse.ArgumentParser(prog="python -m bench collector")
    parser.add_argument("--quiet", action="store_true", help="require the rate by the wall clock too")
    quiet = parser.parse_args(arguments).quiet
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        service = Alone(Path(name))
        bodies = [service.message() for _ in range(MESSAGES)]
        service.start()
        try:
            assert service.process is not None
            pid = service.process.pid
            assert pid is not None
            cores = pin(pid)
            before, began = _cpu(pid), time.perf_counter()
            accepted = asyncio.run(send_all(service.port, bodies))
            wall, cpu = time.perf_counter() - began, _cpu(pid) - before
            memory = _memory(pid)
        finally:
            service.stop(signal.SIGTERM)
    measures = [
        Measure("messages acknowledged", float(accepted), limit=float(MESSAGES)),
        Measure("messages per CPU second of the collector", accepted / cpu, "/s", REQUIRED),
        Measure("messages per second, wall", accepted / wall, "/s", REQUIRED if quiet else None),
        Measure("cores", float(len(cores)), limit=2.0 if quiet else None),
        Measure("share of its core that the collector had", cpu / wall * 100, " %"),
        Measure("memory after", memory, " MB", 300.0, "≤"),
    ]
    return publish("collector", f"Collector: {MESSAGES:,} messages over {CONNECTIONS} connections", measures)


class Started:
    """A command of its own: its memory is what a collector takes."""

    def __init__(self, folder: Path, *words: object) -> None:
        command = [sys.executable, "-m", "pldp.flows.cli", *map(str, words)]
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=log)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        self._process.wait(timeout)


def pin(collector: int) -> set[int]:
    """The collector has one core to itself, and whoever sends the others, where there are several; the cores."""
    cores = os.sched_getaffinity(0)
    first, *others = sorted(cores)
    if others:
        for thread in Path(f"/proc/{collector}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {first})
        os.sched_setaffinity(0, set(others))
    return cores


async def send_all(port: int, bodies: list[bytes]) -> int:
    waiting = iter(bodies)
    accepted = 0

    async def one() -> None:
        nonlocal accepted
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in waiting:
            writer.write(b"POST /reports HTTP/1.1\r\nHost: c\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            accepted += head.startswith(b"HTTP/1.1 202")
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return accepted


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
