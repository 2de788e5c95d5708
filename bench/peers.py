"""Our release path against pure-ldp and multi-freq-ldpy, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Measure, medians, publish
from pldp.brr import BRR
from pldp.combine import Combined, combine_linear, estimate_levels
from pldp.protocol import Reports, Values
from pldp.randomness import Keystream
from tasks.perturb import read_reports, write_reports

HERE = Path(__file__).resolve().parent
DOMAINS = {16: 4_000_000, 100: 1_000_000}
LEVELS = (Fraction(1, 3), Fraction(1, 2), Fraction(1))
LEVEL_SHARES = (0.3, 0.3, 0.4)
PARTITION = 1 << 18
ROUNDS = 7
OURS, FILES = "ours", "ours in files"


@dataclass(frozen=True)
class Peer:
    """What to install, how many users a round bears, and how many times faster we must be, by domain size."""

    name: str
    packages: tuple[str, ...]
    users: int
    required: dict[int, float]


PEERS = (
    Peer("pure-ldp", ("pure-ldp==1.2.0", "scikit-learn", "statsmodels", "xxhash<4"), 20_000, {16: 250, 100: 45}),
    Peer("multi-freq-ldpy", ("multi-freq-ldpy==0.2.5", "scipy", "xxhash<4"), 100_000, {16: 25, 100: 10}),
)


class Worker:
    """A peer's process, kept alive over the rounds."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        command = [str(_interpreter(peer)), str(HERE / "peer_worker.py"), peer.name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds_a_user(self, size: int, users: int) -> float:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{size} {users}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        # The sum of k cells has variance k · v(1) / n with v(1) = 3.92; six standard errors never fail in practice.
        off = abs(answer["total"] - 1)
        assert off < 6 * (3.92 * size / users) ** 0.5, f"{self.peer.name}: estimates are off by {off:.2f} in total"
        return float(answer["seconds"]) / users

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _interpreter(peer: Peer) -> Path:
    """The peer's Python; the environment is made on first use and marked only when complete."""
    folder = HERE / ".venvs" / peer.name
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists() or complete.read_text() != "\n".join(peer.packages):
        print(f"installing {peer.name} into {folder.relative_to(HERE.parent)}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", *peer.packages], check=True)
        complete.write_text("\n".join(peer.packages))
    return python


def main() -> bool:
    workers = [Worker(peer) for peer in PEERS]
    try:
        measures = [measure for size, users in DOMAINS.items() for measure in _measure(size, users, workers)]
    finally:
        for worker in workers:
            worker.stop()
    note = (
        f"Users per CPU-second, {ROUNDS} interleaved rounds, medians. Peers: SUE, ε = 1, one level, reports discarded "
        "as soon as they allow. Ours: three levels (1/3, 1/2, 1), split, drawn from the kernel's keys, packed, kept, "
        "counted, estimated, combined by oc+; in files: written to Parquet and read back besides."
    )
    return publish("peers", "Peers: perturb + aggregate + estimate", measures, note)


def _measure(size: int, users: int, workers: Sequence[Worker]) -> list[Measure]:
    rng = np.random.default_rng(42)
    values = rng.integers(0, size, users).astype(np.uint16)
    levels = rng.choice(len(LEVELS), users, p=LEVEL_SHARES).astype(np.uint8)
    timed: dict[str, Callable[[], float]] = {
        OURS: lambda: _seconds_a_user(size, values, levels, None),
        FILES: lambda: _in_files(size, values, levels),
    }
    for worker in workers:
        timed[worker.peer.name] = partial(worker.seconds_a_user, size, worker.peer.users)
        worker.seconds_a_user(size, 100)  # warm
    taken = medians(timed, ROUNDS)
    case = f"k = {size}: "
    speeds = [Measure(case + name, 1 / seconds, "/s") for name, seconds in taken.items()]
    ratios = [
        Measure(f"{case}{name} / {peer.name}", taken[peer.name] / taken[name], "×", limit)
        for peer in (worker.peer for worker in workers)
        for name, limit in ((OURS, peer.required[size]), (FILES, None))
    ]
    return speeds + ratios


def _in_files(size: int, values: Values, levels: NDArray[np.uint8]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return _seconds_a_user(size, values, levels, Path(folder))


def _seconds_a_user(size: int, values: Values, levels: NDArray[np.uint8], folder: Path | None) -> float:
    start = time.process_time()
    combined = _release(size, values, levels, folder)
    taken = time.process_time() - start
    assert abs(combined.frequency.sum() - 1) < 0.5
    return taken / values.size


def _release(size: int, values: Values, levels: NDArray[np.uint8], folder: Path | None) -> Combined:
    """The release path on arrays: every partition and level has a fresh secure stream, and its reports are kept."""
    protocols = tuple(BRR.for_budget(size, level) for level in LEVELS)
    support = np.zeros((len(LEVELS), size), dtype=np.int64)
    kept: dict[tuple[int, int], Reports] = {}
    for start in range(0, values.size, PARTITION):
        part, chosen = values[start : start + PARTITION], levels[start : start + PARTITION]
        for level, protocol in enumerate(protocols):
            # Several times faster than a mask as an index.
            reports = protocol.perturb(np.compress(chosen == level, part), Keystream.secure())
            if folder:
                path = folder / str(level) / f"{start}.parquet"
                write_reports(path, reports)
                reports = read_reports(path)
            else:
                kept[level, start] = reports
            support[level] += protocol.support(reports)
    n = np.bincount(levels, minlength=len(LEVELS))
    return combine_linear("oc+", estimate_levels(support, n, protocols))
