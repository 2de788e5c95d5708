"""The kernels on one core: random source, perturbing and counting by every protocol, against plain NumPy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import numpy as np

from bench.common import Measure, cpu_medians, medians, publish
from pldp.channels.protocol import Floats, PureProtocol, Values
from pldp.channels.randomness import Keystream, Words
from pldp.channels.registry import PROTOCOLS
from pldp.channels.unary import BRR

DOMAINS = {16: 4_000_000, 100: 1_000_000}
CHUNK = 1 << 16
PLAIN_CHUNKS = (1 << 10, 1 << 13, CHUNK)  # ours and the two that suit float arrays better; the fastest one counts
SOURCE_WORDS = 1 << 16
SOURCE_CALLS = 4_000
ROUNDS = 9
REQUIRED = 6.0
REQUIRED_SHARE = 45.0  # % of the source's speed that perturbing by BRR reaches
REQUIRED_THREADS = 1.4
"""Times as fast as one thread two are, on two cores, which share an interpreter."""
BATCH, BATCHES = 200_000, 100
"""Users of one level in a partition, and how many such a thread perturbs."""
REQUIRED_SPEED = {("subset", 16): 40e6, ("subset", 100): 8e6}  # users per CPU-second, perturbed and counted


class CountedKeystream(Keystream):
    """Knows how much was drawn from it."""

    drawn = 0

    def words(self, count: int) -> Words:
        self.drawn += 8 * count
        return super().words(count)


def main() -> bool:
    measures = []
    for size, users in DOMAINS.items():
        measures += _measure(size, users) + _protocols(size, users) + _threads(size)
    note = (
        f"ε = 1, one process, users per CPU-second, {ROUNDS} interleaved rounds, medians. Plain NumPy: "
        "PCG64, random((n, k)) < q in chunks, own bit flipped, the fastest chunk of three. By the name of a protocol: "
        "perturbed, kept, counted, estimated. The multiples of multi-freq-ldpy: python -m bench peers."
    )
    return publish("kernel", "Kernel", measures, note)


def _measure(size: int, users: int) -> list[Measure]:
    values = np.random.default_rng(42).integers(0, size, users).astype(np.uint16)
    protocol = BRR.for_budget(size, Fraction(1))
    stream = Keystream.secure()
    plain = {f"plain {chunk}": partial(_plain, protocol, values, chunk) for chunk in PLAIN_CHUNKS}
    taken = cpu_medians(
        {
            "source": lambda: _source(stream),
            "perturb": lambda: _perturb(protocol, values, stream),
            "whole": lambda: _whole(protocol, values, stream),
            **plain,
        },
        ROUNDS,
    )
    counted = CountedKeystream.secure()
    _perturb(protocol, values, counted)
    source = 8 * SOURCE_WORDS * SOURCE_CALLS / taken["source"]
    fastest = min(taken[name] for name in plain)
    case = f"k = {size}: "
    return [
        Measure(case + "bare AES-CTR source", source, "B/s"),
        Measure(case + "perturb, reports discarded", users / taken["perturb"], "/s"),
        Measure(case + "plain NumPy, reports discarded", users / fastest, "/s"),
        Measure(case + "perturb / plain NumPy", fastest / taken["perturb"], "×", REQUIRED),
        Measure(case + "perturb, keep, count, estimate", users / taken["whole"], "/s"),
        Measure(case + "random bytes a report byte", counted.drawn / users / protocol.report_bytes),
        Measure(
            case + "BRR of the source's speed", 100 * counted.drawn / source / taken["perturb"], " %", REQUIRED_SHARE
        ),
        Measure(case + "of the source's speed, all", 100 * counted.drawn / source / taken["whole"], " %"),
    ]


def _protocols(size: int, users: int) -> list[Measure]:
    """Every protocol alone: users perturbed and counted per CPU-second."""
    values = np.random.default_rng(42).integers(0, size, users).astype(np.uint16)
    stream = Keystream.secure()
    protocols = {name: kind.for_budget(size, Fraction(1)) for name, kind in PROTOCOLS.items()}
    taken = cpu_medians({name: partial(_whole, each, values, stream) for name, each in protocols.items()}, ROUNDS)
    return [
        Measure(f"k = {size}: {name}, perturb and count", users / seconds, "/s", REQUIRED_SPEED.get((name, size)))
        for name, seconds in taken.items()
    ]


def _threads(size: int) -> list[Measure]:
    """Each protocol's perturbing by two threads against one, in time, not in CPU seconds."""
    values = np.random.default_rng(42).integers(0, size, BATCH).astype(np.uint16)
    measures = []
    for name in ("subset", "krr", "brr"):
        protocol = PROTOCOLS[name].for_budget(size, Fraction(1))
        taken = medians({str(n): partial(_side_by_side, protocol, values, n) for n in (1, 2)}, ROUNDS)
        required = REQUIRED_THREADS if name == "subset" else None
        measures.append(
            Measure(f"k = {size}: {name}, two threads against one", 2 * taken["1"] / taken["2"], "×", required)
        )
    return measures


def _side_by_side(protocol: PureProtocol, values: Values, threads: int) -> float:
    """Seconds in which so many threads perturb as many users each."""

    def work() -> None:
        stream = Keystream.secure()
        for _ in range(BATCHES):
            protocol.perturb(values, stream)

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
    return time.perf_counter() - start


def _chunks(values: Values, chunk: int) -> Iterator[Values]:
    return (values[start : start + chunk] for start in range(0, values.size, chunk))


def _source(stream: Keystream) -> None:
    for _ in range(SOURCE_CALLS):
        stream.words(SOURCE_WORDS)


def _perturb(protocol: BRR, values: Values, stream: Keystream) -> None:
    for part in _chunks(values, CHUNK):
        protocol.perturb(part, stream)


def _whole(protocol: PureProtocol, values: Values, stream: Keystream) -> Floats:
    kept = [protocol.perturb(part, stream) for part in _chunks(values, CHUNK)]
    support = np.sum([protocol.support(reports) for reports in kept], axis=0)
    return protocol.estimate(support, values.size)


def _plain(protocol: BRR, values: Values, chunk: int) -> None:
    rng = np.random.default_rng()
    rows = np.arange(chunk)
    for part in _chunks(values, chunk):
        bits = rng.random((part.size, protocol.domain_size)) < protocol.q
        bits[rows[: part.size], part] ^= True
