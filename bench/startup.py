"""What a newcomer waits for: commands from the shell to their end, a release in a new home and in a used one.

`python -m bench startup`. Wall seconds, so the machine must be quiet; CPU seconds of all processes stand beside.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.common import Measure, publish

ROUNDS = 5
RELEASES = 3
LIMITS = {"new": 12.0, "used": 10.0, "plan": 1.5, "show": 0.7, "help": 0.3}
PROGRESS, PAGE = 1.0, 1.0
OTHERS = ("PREFECT_", "PLDP_", "PYTHON")
"""Settings that no command here is to see."""
PLDP = (sys.executable, "-m", "pldp")


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu: float
    work: float = 0.0
    """Seconds in which a stage of the pipeline was under way."""
    page: float = 0.0
    first: float = 0.0
    """Seconds until progress is on the screen."""


def main() -> bool:
    """Print the table; whether every command keeps its limit."""
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        folder = Path(name)
        _run([sys.executable, "-m", "pldp.flows.template"])  # as `make install` does
        _run([*PLDP, "sample", str(folder)])
        spec, used = folder / "sample.yaml", folder / "used"
        release(spec, used, "first")
        new = [release(spec, folder / f"new-{i}", "first") for i in range(RELEASES)]
        again = [release(spec, used, f"again-{i}") for i in range(RELEASES)]
        quick = {
            "plan": ["plan", str(spec)],
            "show": ["show", "sample", "--home", str(used)],
            "help": ["--help"],
        }
        costs = {what: [_run([*PLDP, *words]) for _ in range(ROUNDS)] for what, words in quick.items()}
    measures = [
        *_lines("pldp release data/sample.yaml, new home", new, LIMITS["new"]),
        *_lines("pldp release data/sample.yaml, used home", again, LIMITS["used"]),
        *(
            Measure(f"pldp {'--help' if what == 'help' else what}", median(c.seconds for c in runs), " s", limit, "≤")
            for what, runs in costs.items()
            for limit in [LIMITS[what]]
        ),
    ]
    load = os.getloadavg()[0]
    note = f"Medians of {RELEASES} releases and {ROUNDS} other commands; load average at the end {load:.1f}."
    return publish("startup", "From the shell to the end of a command", measures, note)


def _lines(what: str, costs: Sequence[Cost], limit: float) -> list[Measure]:
    def middle(of: Callable[[Cost], float]) -> float:
        return median(of(cost) for cost in costs)

    return [
        Measure(what, middle(lambda cost: cost.seconds), " s", limit, "≤"),
        Measure(f"{what}: CPU time, all processes", middle(lambda cost: cost.cpu), " s"),
        Measure(f"{what}: share of real work", middle(lambda cost: 100 * cost.work / cost.seconds), " %"),
        Measure(f"{what}: until progress shows", middle(lambda cost: cost.first), " s", PROGRESS, "≤"),
        Measure(f"{what}: its page", middle(lambda cost: cost.page), " s", PAGE, "≤"),
    ]


def release(spec: Path, home: Path, slot: str) -> Cost:
    """One release of the sample, as the installed command makes it, and how long its stages took."""
    stages = home.with_name(f"{home.name}-{slot}.json")
    worker = [sys.executable, "-m", "bench.startup_worker", str(stages)]
    began = time.time()
    cost = _run([*worker, "release", str(spec), "--home", str(home), "--slot", slot])
    timings = json.loads(stages.read_text())
    return Cost(cost.seconds, cost.cpu, timings["work"], timings["stages"]["page"], timings["first"] - began)


def _run(command: Sequence[str]) -> Cost:
    """Wall seconds, and CPU seconds of the command and all that it started and waited for.

    As an installed command: modules are compiled once, which a machine for tests may forbid by its environment.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=kept, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
