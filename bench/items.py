"""Items: frequent category sets of MSNBC, and a million transactions over a thousand items: time and memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from bench.common import ROOT, Measure, publish
from pldp.channels.krr import KRR
from pldp.channels.randomness import Keystream
from pldp.questions.items.allocation import RowDemand, bounded_items
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.mining import Search, frequent_sets, mine
from pldp.questions.items.sampling import SetSampling
from pldp.questions.items.transactions import Columns

MSNBC = ROOT.parent / "shared" / "data" / "msnbc990928.seq.gz"
CATEGORIES = 17
HEADER = 7
ROWS = 1_000_000
ITEMS = 1_000
SECONDS = 15.0  # measured 1.2; a floor against regressions
MEMORY = 0.5e9
MSNBC_SECONDS = 1.0
_BLOCK = 1 << 16


def main() -> bool:
    measures: list[Measure] = []
    for name in CASES:
        if name == "msnbc" and not MSNBC.exists():
            print(f"bench: {MSNBC.name} is not beside the repository (shared/data): left out.", file=sys.stderr)
            continue
        # A process each: what one leaves behind in memory and caches is not the next one's.
        command = [sys.executable, "-m", "bench.items", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{name} failed:\n{done.stderr[-4000:]}")
        measures += [Measure(**row) for row in json.loads(done.stdout.splitlines()[-1])]
    note = (
        f"MSNBC: 989,818 users, {CATEGORIES} categories, row bound ε = 17, sets of at most 4 at a support of 0.01. "
        f"Made up: {ROWS:,} transactions, {ITEMS:,} items, about 8 a transaction; every bit kept with 0.95, sets of at "
        "most 3 at a support of 0.01; sampled: one item of 12, ε = 2. CPU seconds, secure randomness; "
        "memory is the peak of all arrays beyond the truth, in a second run."
    )
    return publish("items", "Frequent items", measures, note)


def _peak(run: Callable[[], object]) -> int:
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _mined(case: str, truth: Columns, channels: ItemChannels, search: Search, limit: float) -> list[Measure]:
    reports, itemsets = truth, ()

    def perturb() -> None:
        nonlocal reports
        reports = channels.perturb(truth, Keystream.secure())

    def search_all() -> None:
        nonlocal itemsets
        itemsets = mine(reports.count, reports.n_rows, channels, search)  # type: ignore[assignment]

    drawn, mined = _timed(perturb), _timed(search_all)

    def both() -> None:
        perturb()
        search_all()

    memory = _peak(both)
    exact = ItemChannels.symmetric((1 << 64,) * channels.n_items)
    true = frequent_sets(mine(truth.count, truth.n_rows, exact, Search(search.minimum, search.length, reach=0)))
    ours = frequent_sets(itemsets)
    return [
        Measure(case + "perturb", drawn, " s"),
        Measure(case + "mine", mined, " s"),
        Measure(case + "perturb and mine", drawn + mined, " s", limit, "≤"),
        Measure(case + "peak memory", memory, "B", MEMORY, "≤"),
        Measure(case + "frequent sets, truly", len(true)),
        Measure(case + "of these found", len(true & ours) / max(len(true), 1)),
        Measure(case + "made up, by the true ones", len(ours - true) / max(len(true), 1)),
    ]


def _msnbc() -> list[Measure]:
    with gzip.open(MSNBC, "rt") as lines:
        rows = [{int(word) - 1 for word in line.split()} for number, line in enumerate(lines) if number >= HEADER]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    items = np.fromiter((item for row in rows for item in row), dtype=np.int64, count=int(offsets[-1]))
    del rows
    packing = time.process_time()
    truth = Columns.of_sets(offsets, items, CATEGORIES)
    packed = time.process_time() - packing
    channels = bounded_items(RowDemand((1.0,) * CATEGORIES, Fraction(CATEGORIES)))
    case = "MSNBC: "
    return [
        Measure(case + "users", truth.n_rows),
        Measure(case + "pack into columns", packed, " s"),
        *_mined(case, truth, channels, Search(0.01, 4), MSNBC_SECONDS),
    ]


def made_up() -> tuple[np.ndarray, np.ndarray]:
    """Zipf-like items, about 8 a transaction, as offsets and items."""
    rng = np.random.default_rng(42)
    chance = 0.5 / np.arange(1, ITEMS + 1) ** 0.8
    chance *= 8 / chance.sum()
    sizes, items = [], []
    for start in range(0, ROWS, _BLOCK):
        table = rng.random((min(_BLOCK, ROWS - start), ITEMS), dtype=np.float32) < np.minimum(chance, 0.9)
        sizes.append(table.sum(axis=1))
        items.append(np.nonzero(table)[1])
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]), np.concatenate(items)


def _large() -> list[Measure]:
    truth = Columns.of_sets(*made_up(), ITEMS, empty="keep")
    channels = ItemChannels.symmetric((95 * (1 << 64) // 100,) * ITEMS)
    return _mined("1 M × 1,000: ", truth, channels, Search(0.01, 3), SECONDS)


def _sampled() -> list[Measure]:
    offsets, items = made_up()
    truth = np.bincount(items, minlength=ITEMS) / ROWS
    sampling = SetSampling.for_budget(ITEMS, 12, Fraction(2))
    estimates: list[np.ndarray] = []

    def run() -> None:
        counts = np.zeros(ITEMS + 12, dtype=np.int64)
        for start in range(0, ROWS, _BLOCK):
            part = offsets[start : start + _BLOCK + 1]
            reports = sampling.perturb(part - part[0], items[part[0] : part[-1]], Keystream.secure())
            counts += sampling.protocol.support(reports)
        estimates.extend(sampling.estimate(counts, ROWS))

    taken = _timed(run)
    support, error = estimates[:2]
    case = "1 M × 1,000, sampled: "
    return [
        Measure(case + "k-RR was chosen", float(isinstance(sampling.protocol, KRR))),
        Measure(case + "perturb and estimate", taken, " s", SECONDS, "≤"),
        Measure(case + "peak memory", _peak(run), "B", MEMORY, "≤"),
        Measure(case + "standard error of a rare item", float(error[-1])),
        Measure(case + "largest error of the 20 first items", float(np.abs(support - truth)[:20].max())),
    ]


CASES: dict[str, Callable[[], list[Measure]]] = {"msnbc": _msnbc, "large": _large, "sampled": _sampled}

if __name__ == "__main__":
    print(json.dumps([vars(measure) for measure in CASES[sys.argv[1]]()]))
