"""Reports at rest: bytes beside the least that could hold them, and reading them back against drawing them again."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from functools import partial
from math import comb, log2
from pathlib import Path

import numpy as np

from bench.common import Measure, cpu_medians, publish
from pldp.channels.krr import KRR
from pldp.channels.protocol import PureProtocol, Values
from pldp.channels.randomness import Keystream
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR
from pldp.channels.words import from_words, to_words
from pldp.tasks.reports import commit_reports, read_reports

CASES: tuple[tuple[type[KRR] | type[Subset] | type[BRR], int], ...] = ((KRR, 16), (BRR, 16), (BRR, 100), (Subset, 25))
USERS = 1 << 20
ROUNDS = 9
FASTER = 1.0


def main() -> bool:
    measures = []
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        for kind, size in CASES:
            measures += _measure(kind.for_budget(size, Fraction(1)), Path(folder) / f"{kind.name}-{size}.parquet")
    note = (
        f"ε = 1, {USERS:,} users, one value each, uniform: then a report can take the least number of bits that is "
        f"given. CPU time, {ROUNDS} interleaved rounds, medians; reading is from a file to the array that is counted."
    )
    return publish("rest", "Reports at rest", measures, note)


def _measure(protocol: PureProtocol, path: Path) -> list[Measure]:
    values: Values = np.random.default_rng(42).integers(0, protocol.domain_size, USERS).astype(np.uint16)
    stream = Keystream.secure()
    commit_reports(path, to_words(protocol.perturb(values, stream)))
    taken = cpu_medians(
        {
            "read": lambda: from_words(read_reports(path), protocol.report_bytes),
            "draw": partial(protocol.perturb, values, stream),
        },
        ROUNDS,
    )
    case = f"{protocol.name}, k = {protocol.domain_size}: "
    return [
        Measure(case + "on disk, per user", path.stat().st_size / USERS, " B"),
        Measure(case + "information, per user", information(protocol) / 8, " B"),
        Measure(case + "drawing / reading back", taken["draw"] / taken["read"], "×", FASTER),
    ]


def information(protocol: PureProtocol) -> float:
    """Bits of a report whose user's value is uniform: its entropy; for independent bits the most it can be."""
    k = protocol.domain_size
    if isinstance(protocol, KRR):
        return log2(k)
    if isinstance(protocol, Subset):
        return log2(comb(k, protocol.size))
    one = protocol.p / k + protocol.q * (k - 1) / k
    return -k * (one * log2(one) + (1 - one) * log2(1 - one))
