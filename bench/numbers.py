"""Numbers: reports a second beside plain NumPy and peers' Laplace noise, and memory that does not grow with users."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from bench.common import ROOT, Measure, cpu_seconds, medians, publish
from bench.peers import interpreter
from pldp.channels.numeric.domain import CODES, Codes, Floats
from pldp.channels.randomness import Keystream
from pldp.questions.numbers.choice import MECHANISMS
from pldp.questions.numbers.plan import NumbersPlan
from pldp.questions.numbers.reports import count_numbers, report_numbers
from pldp.questions.numbers.resolve import plan_numbers
from pldp.questions.numbers.spec import Number, Numbers

ATTRIBUTES = 32
TOTAL = Fraction(10)
USERS = 1 << 18
PARTITION = 1 << 16
LARGE = (1_000_000, 10_000_000)
ROUNDS = 7
CHUNKS = (1 << 12, 1 << 16, USERS)  # the one that suits plain NumPy best counts
REQUIRED = {"pm": 1.0, "duchi": 1.0, "hm": 1.0}
MEMORY_RATIO = 1.2
REQUIRED_OF_PEERS = 10.0
PEERS: dict[str, tuple[tuple[str, ...], int]] = {
    "diffprivlib": (("diffprivlib==0.6.6", "scikit-learn<1.7"), 20_000),  # it imports what 1.7 has no more
    "python-dp": (("python-dp==1.1.5",), 20_000),
    "opendp": (("opendp==0.16.0",), 4_000),
}
"""What to install, and how many values a round bears. None has PM, Duchi or HM; all have Laplace noise, the yardstick
of the papers too. pure-ldp and multi-freq-ldpy have frequencies only. So plain NumPy stands for PM, Duchi and HM."""
HERE = Path(__file__).resolve().parent


def main() -> bool:
    rng = np.random.default_rng(42)
    x = rng.uniform(-1, 1, USERS)
    codes = ((x + 1) / 2 * CODES).astype(np.uint32)
    epsilon = TOTAL / 3
    stream = Keystream.secure()
    runs: dict[str, Callable[[], object]] = {
        name: partial(MECHANISMS[name].for_budget(epsilon).perturb, codes, stream)
        for name in ("pm", "duchi", "hm", "laplace")
    }
    for chunk in CHUNKS:
        runs[f"plain pm {chunk}"] = partial(_chunks, _plain_pm, x, float(epsilon), chunk)
        runs[f"plain duchi {chunk}"] = partial(_chunks, _plain_duchi, x, float(epsilon), chunk)
        runs[f"plain hm {chunk}"] = partial(_chunks, _plain_hm, x, float(epsilon), chunk)
    plan = _plan()
    many = rng.integers(0, CODES + 1, (ATTRIBUTES, PARTITION), dtype=np.uint32)
    runs["whole"] = partial(_whole, plan, many, (many & np.uint32(1)).astype(np.float32), stream)
    peers = {name: _Peer(name) for name in PEERS}
    try:
        taken = medians(
            {name: partial(cpu_seconds, run) for name, run in runs.items()}
            | {name: peer.seconds_a_report for name, peer in peers.items()},
            ROUNDS,
        )
    finally:
        for peer in peers.values():
            peer.stop()
    measures = _speeds(taken, plan.levels[-1].sampled)
    small, large = (_peak(users) for users in LARGE)
    measures += [
        Measure("1 M users: peak memory above idle", small, "B"),
        Measure("10 M users: peak memory above idle", large, "B"),
        Measure("peak memory above idle, 10 M / 1 M", large / small, "×", MEMORY_RATIO, "≤"),
    ]
    note = (
        f"ε = {float(epsilon):.3g} a report ({float(TOTAL):g} in all), one process, per CPU-second, {ROUNDS} "
        f"interleaved rounds, medians. Plain NumPy: PCG64 doubles, the fastest chunk of {len(CHUNKS)}; it is not "
        f"private, because doubles are no grid. Memory: {ATTRIBUTES} attributes, partitions "
        f"of {PARTITION:,} users drawn and tallied."
    )
    return publish("numbers", "Numbers", measures, note)


def _speeds(taken: dict[str, float], sampled: int) -> list[Measure]:
    """Beside plain NumPy and the peers, from the seconds that each took."""
    measures = []
    for name in ("pm", "duchi", "hm"):
        plain = min(taken[f"plain {name} {chunk}"] for chunk in CHUNKS)
        measures += [
            Measure(f"{name}: reports", USERS / taken[name], "/s"),
            Measure(f"{name}: plain NumPy", USERS / plain, "/s"),
            Measure(f"{name}: ours / plain NumPy", plain / taken[name], "×", REQUIRED[name]),
        ]
    measures += [
        Measure("laplace: reports", USERS / taken["laplace"], "/s"),
        Measure(
            f"sample {sampled} of {ATTRIBUTES}, deal, report, tally: users × sampled",
            PARTITION * sampled / taken["whole"],
            "/s",
        ),
    ]
    for name in PEERS:
        measures.append(Measure(f"{name}: Laplace, reports", 1 / taken[name], "/s"))
        measures += [
            Measure(f"{ours}: ours / {name}", taken[name] * USERS / taken[ours], "×", REQUIRED_OF_PEERS)
            for ours in ("pm", "duchi", "hm", "laplace")
        ]
    return measures


def _plan() -> NumbersPlan:
    attributes = [Number(kind="number", name=f"a{i}", bounds=(-1.0, 1.0)) for i in range(ATTRIBUTES)]
    importance = {number.name: number.name for number in attributes}
    numbers = Numbers(tau=Fraction(5, 4), importance=importance)
    return plan_numbers(attributes, numbers, TOTAL, {"all": Fraction(1)})


def _whole(plan: NumbersPlan, codes: Codes, weights: np.ndarray | None, stream: Keystream) -> int:
    return count_numbers(plan, 0, report_numbers(plan, 0, codes, weights, stream)).n_reports


def _chunks(run: Callable[[Floats, float, np.random.Generator], Floats], x: Floats, epsilon: float, chunk: int) -> None:
    rng = np.random.default_rng()
    for start in range(0, x.size, chunk):
        run(x[start : start + chunk], epsilon, rng)


def _plain_pm(x: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """pmpm Algorithm 1 in doubles."""
    half = np.exp(epsilon / 2)
    c = (half + 1) / (half - 1)
    left = (c + 1) / 2 * x - (c - 1) / 2
    inside = rng.random(x.size) < half / (half + 1)
    u = rng.random(x.size)
    outside = u * (c + 1) - c
    outside += np.where(outside >= left, c - 1, 0.0)
    return np.where(inside, left + u * (c - 1), outside)


def _plain_hm(x: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    pm = rng.random(x.size) < 1 - np.exp(-epsilon / 2)
    return np.where(pm, _plain_pm(x, epsilon, rng), _plain_duchi(x, epsilon, rng))


def _plain_duchi(x: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    power = np.exp(epsilon)
    b = (power + 1) / (power - 1)
    return np.where(rng.random(x.size) < 0.5 + x / (2 * b), b, -b)


class _Peer:
    """A peer's process, kept alive over the rounds."""

    def __init__(self, name: str) -> None:
        command = [str(interpreter(name, PEERS[name][0])), "-P", str(HERE / "number_peer_worker.py"), name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._users = PEERS[name][1]
        self.seconds_a_report(100)  # imports

    def seconds_a_report(self, users: int | None = None) -> float:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{float(TOTAL / 3)} {users or self._users}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline()) / (users or self._users)

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _peak(users: int) -> int:
    """Peak resident memory above idle of a fresh process that draws and tallies so many users."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.numbers", str(users)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return int(json.loads(done.stdout.splitlines()[-1]))


def _draw(users: int) -> int:
    import psutil

    plan, stream, process = _plan(), Keystream.secure(), psutil.Process()
    rng = np.random.default_rng(1)
    _whole(plan, np.zeros((ATTRIBUTES, 64), dtype=np.uint32), np.ones((ATTRIBUTES, 64), dtype=np.float32), stream)
    idle = peak = process.memory_info().rss
    total = None
    for start in range(0, users, PARTITION):
        size = min(PARTITION, users - start)
        codes = rng.integers(0, CODES + 1, (ATTRIBUTES, size), dtype=np.uint32)
        weights = (codes & np.uint32(1)).astype(np.float32)
        reports = report_numbers(plan, 0, codes, weights, stream)
        peak = max(peak, process.memory_info().rss)
        counts = count_numbers(plan, 0, reports)
        total = counts if total is None else total + counts
        peak = max(peak, process.memory_info().rss)
    assert total is not None
    assert total.n_reports == users * plan.levels[0].sampled
    return peak - idle


if __name__ == "__main__":
    print(json.dumps(_draw(int(sys.argv[1]))))
