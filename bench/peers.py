"""Our release path, and every protocol alone, against pure-ldp and multi-freq-ldpy in environments of their own."""

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
from pldp.channels.protocol import PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.channels.unary import BRR
from pldp.channels.words import from_words, to_words
from pldp.estimate.combine import Combined, combine_linear, estimate_levels
from pldp.tasks.reports import commit_reports, read_reports

HERE = Path(__file__).resolve().parent
DOMAINS = {16: 4_000_000, 100: 1_000_000}
LEVELS = (Fraction(1, 3), Fraction(1, 2), Fraction(1))
LEVEL_SHARES = (0.3, 0.3, 0.4)
PARTITION = 1 << 18
ROUNDS = 7
OURS, FILES = "ours", "ours in files"


REQUIRED_ALONE = 10.0  # times faster, every protocol, unless the peer has a requirement of its own


@dataclass(frozen=True)
class Peer:
    """What to install, which protocols it has, how many users a round of each bears, and how many times faster our
    whole release path must be than its unary encoding, by domain size.
    """

    name: str
    packages: tuple[str, ...]
    users: dict[str, int]
    required: dict[int, float]
    alone: float = REQUIRED_ALONE


PEERS = (
    Peer(
        "pure-ldp",
        ("pure-ldp==1.2.0", "scikit-learn", "statsmodels", "xxhash<4"),
        {"krr": 200_000, "brr": 20_000, "oue": 20_000, "olh": 5_000},
        {16: 450, 100: 65},
    ),
    Peer(
        "multi-freq-ldpy",
        ("multi-freq-ldpy==0.2.5", "scipy", "xxhash<4"),
        {"krr": 200_000, "brr": 100_000, "oue": 100_000, "olh": 5_000, "subset": 50_000},
        {16: 25, 100: 10},
        alone=100.0,
    ),
)


class Worker:
    """A peer's process, kept alive over the rounds."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        # -P: a module beside the worker is named numbers, and would stand in for the standard one.
        command = [str(interpreter(peer.name, peer.packages)), "-P", str(HERE / "peer_worker.py"), peer.name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds_a_user(self, protocol: str, size: int, users: int) -> float:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{protocol} {size} {users}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        # The sum of k cells has variance at most k · v(1) / n, v(1) = 3.92 as for unary encoding; six standard errors
        # never fail in practice.
        off = abs(answer["total"] - 1)
        assert off < 6 * (3.92 * size / users) ** 0.5, f"{self.peer.name}: estimates are off by {off:.2f} in total"
        return float(answer["seconds"]) / users

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def interpreter(name: str, packages: Sequence[str]) -> Path:
    """A peer's Python; the environment is made on first use and marked only when complete."""
    folder = HERE / ".venvs" / name
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists() or complete.read_text() != "\n".join(packages):
        print(f"installing {name} into {folder.relative_to(HERE.parent)}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", *packages], check=True)
        complete.write_text("\n".join(packages))
    return python


def main() -> bool:
    workers = [Worker(peer) for peer in PEERS]
    try:
        measures = [
            measure
            for size, users in DOMAINS.items()
            for measure in _measure(size, users, workers) + _alone(size, users, workers)
        ]
    finally:
        for worker in workers:
            worker.stop()
    note = (
        f"Users per CPU-second, {ROUNDS} interleaved rounds, medians. Peers: SUE, ε = 1, one level, reports discarded "
        "as soon as they allow. Ours: three levels (1/3, 1/2, 1), split, drawn from the kernel's keys, packed, kept, "
        "counted, estimated, combined by oc+; in files: written to Parquet and read back besides. By the name of a "
        "protocol: that one alone, ε = 1, one level, both sides."
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
        timed[worker.peer.name] = partial(worker.seconds_a_user, BRR.name, size, worker.peer.users[BRR.name])
        worker.seconds_a_user(BRR.name, size, 100)  # warm
    taken = medians(timed, ROUNDS)
    case = f"k = {size}: "
    speeds = [Measure(case + name, 1 / seconds, "/s") for name, seconds in taken.items()]
    ratios = [
        Measure(f"{case}{name} / {peer.name}", taken[peer.name] / taken[name], "×", limit)
        for peer in (worker.peer for worker in workers)
        for name, limit in ((OURS, peer.required[size]), (FILES, None))
    ]
    return speeds + ratios


def _alone(size: int, users: int, workers: Sequence[Worker]) -> list[Measure]:
    """Every protocol by itself, beside that of every peer that has it."""
    values = np.random.default_rng(42).integers(0, size, users).astype(np.uint16)
    measures = []
    for name, kind in PROTOCOLS.items():
        protocol = kind.for_budget(size, Fraction(1))
        timed: dict[str, Callable[[], float]] = {OURS: partial(_protocol_seconds, protocol, values)}
        for worker in workers:
            if name in worker.peer.users:
                worker.seconds_a_user(name, size, 100)  # warm
                timed[worker.peer.name] = partial(worker.seconds_a_user, name, size, worker.peer.users[name])
        taken = medians(timed, ROUNDS)
        case = f"{name}, k = {size}: "
        measures += [Measure(case + who, 1 / seconds, "/s") for who, seconds in taken.items()]
        measures += [
            Measure(f"{case}ours / {peer.name}", taken[peer.name] / taken[OURS], "×", peer.alone)
            for peer in (worker.peer for worker in workers)
            if peer.name in taken
        ]
    return measures


def _protocol_seconds(protocol: PureProtocol, values: Values) -> float:
    """CPU seconds a user: every partition has a fresh secure stream, and its reports are kept."""
    start = time.process_time()
    parts = [values[first : first + PARTITION] for first in range(0, values.size, PARTITION)]
    kept = [protocol.perturb(part, Keystream.secure()) for part in parts]
    support = np.sum([protocol.support(reports) for reports in kept], axis=0)
    shares = protocol.estimate(support, values.size)
    taken = time.process_time() - start
    assert abs(shares.sum() - 1) < 0.5
    return taken / values.size


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
                commit_reports(path, to_words(reports))
                reports = from_words(read_reports(path), protocol.report_bytes)
            else:
                kept[level, start] = reports
            support[level] += protocol.support(reports)
    n = np.bincount(levels, minlength=len(LEVELS))
    return combine_linear("oc+", estimate_levels(support, n, protocols))
