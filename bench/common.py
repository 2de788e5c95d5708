"""What all benchmarks share: interleaved timing, requirements, tables and result files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Measure:
    """One line of a table, with a requirement or without."""

    what: str
    value: float
    unit: str = ""
    limit: float | None = None
    bound: Literal["≥", "≤"] = "≥"

    @property
    def passed(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.bound == "≥" else self.value <= self.limit


def cpu_medians(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each candidate; the rounds interleave, so that a slow minute hits all alike."""
    return medians({name: partial(cpu_seconds, run) for name, run in candidates.items()}, rounds)


def medians(timed: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Median of what each call says it took, the rounds interleaved."""
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(rounds):
        for name, run in timed.items():
            taken[name].append(run())
    return {name: median(seconds) for name, seconds in taken.items()}


def cpu_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def publish(name: str, title: str, measures: Sequence[Measure], note: str = "") -> bool:
    """Print the table, write it to bench/results/, and say whether every requirement was met."""
    table = Table(title=title, caption=note, title_justify="left", caption_justify="left")
    table.add_column("measure")
    for column in ("value", "required", "verdict"):
        table.add_column(column, justify="right")
    for measure in measures:
        required = "" if measure.limit is None else f"{measure.bound} {measure.limit:g}{measure.unit}"
        verdict = "" if measure.limit is None else "[green]pass" if measure.passed else "[bold red]FAIL"
        table.add_row(measure.what, f"{short(measure.value)}{measure.unit}", required, verdict)
    Console().print(table)
    RESULTS.mkdir(exist_ok=True)
    rows = [asdict(measure) | {"passed": measure.passed} for measure in measures]
    content = {"title": title, "note": note, "cores": os.cpu_count(), "measures": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return all(measure.passed for measure in measures)


def short(value: float) -> str:
    """Three significant digits, with thousands as k, M, G."""
    for scale, letter in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= scale:
            return f"{value / (1e3 if letter == ' k' else scale):.3g}{letter}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
