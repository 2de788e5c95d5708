"""Random specs and sources by the thousand: none may crash, hang, quote the data, or lose a row without counting it."""

from __future__ import annotations

import faulthandler
import sys
import tempfile
import time
import traceback
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from random import Random

from bench.common import Measure, publish
from tests.bad_input.wild import check_ingest, check_spec, source_case, spec_bytes

CASES = 100_000
INGESTS = 25
"""One case in so many is an ingest: it takes as much longer than a spec."""
BATCH = 500
SEED = 42


def run_batch(seed: int, first: int, cases: int) -> tuple[Counter[str], list[str]]:
    """Cases by outcome, and the crashes with what repeats them: each case has a generator of its own."""
    outcomes: Counter[str] = Counter()
    crashes = []
    with tempfile.TemporaryDirectory(prefix="pldp-fuzz-") as name:
        folder = Path(name)
        for case in range(first, first + cases):
            rng = Random(f"{seed} {case}")  # noqa: S311  (cases, not secrets)
            kind = "ingest" if case % INGESTS == 0 else "spec"
            try:
                if kind == "ingest":
                    spec, n_rows = source_case(rng, folder)
                    outcome = check_ingest(spec, n_rows, folder / "home")
                else:
                    path = folder / "fuzzed.yaml"
                    path.write_bytes(spec_bytes(rng))
                    outcome = check_spec(path)
            except Exception as error:
                outcome = "crash"
                last = traceback.extract_tb(error.__traceback__)[-1]
                crashes.append(
                    f"seed {seed} case {case} ({kind}): {type(error).__name__} in {last.name}: {error}"[:500]
                )
            outcomes[f"{kind} {outcome}"] += 1
    return outcomes, crashes


def main(arguments: Sequence[str] = ()) -> bool:
    parser = ArgumentParser(prog="python -m bench fuzz")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    cases = options.cases
    start = time.monotonic()
    outcomes: Counter[str] = Counter()
    crashes: list[str] = []
    shown = 0
    # Threads of the database and a forked child do not go together; children start afresh.
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=faulthandler.enable) as pool:
        batches = [
            pool.submit(run_batch, options.seed, first, min(BATCH, cases - first)) for first in range(0, cases, BATCH)
        ]
        for batch in as_completed(batches):
            try:
                counted, broken = batch.result()
            except BrokenProcessPool:
                crashes.append("a worker died; what it printed last tells where, and the cases left were not run")
                print(crashes[-1], file=sys.stderr, flush=True)
                break
            outcomes += counted
            crashes += broken
            for crash in broken:
                print(crash, file=sys.stderr, flush=True)
            if outcomes.total() - shown >= cases // 20:
                shown = outcomes.total()
                taken = time.monotonic() - start
                print(f"{shown:>7,} of {cases:,} cases, {len(crashes)} crashes, {taken:.0f} s", flush=True)
    measures = [
        Measure("cases", outcomes.total()),
        *(Measure(f"cases: {kind}", count) for kind, count in sorted(outcomes.items())),
        Measure("crashes", len(crashes), limit=0, bound="≤"),
        Measure("time", time.monotonic() - start, " s"),
    ]
    note = (
        f"Seed {options.seed}. A crash: any exception but ours, a raw value in a message, a row not counted, or 10 s."
    )
    return publish("fuzz", "Fuzz", measures, note)
