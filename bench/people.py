"""People of every client into one running collector, beside the pipeline's own noise on the same people.

`python -m bench people [--people PYTHON NODE PAGE WRONG]`. One collector process per plan, public levels and hidden
ones; the Python client, the JavaScript one in Node and the page in Chromium each fill a slot, which is closed and
released. Every estimate is compared with the truth and with that of a release from the same people's tables; twins
whose chances are a third off must be told apart, in every kind of question.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm

import pldp
from bench.collector import send_all
from bench.common import Measure, publish
from bench.people_page import answer_on_page
from bench.people_world import TABLES, Answers, Crowd, crowd, write_spec
from pldp.client import Memory, Person, parse_plan
from pldp.client.plan import Plan
from pldp.flows.collecting import settled
from pldp.tasks.reports import read_reports
from pldp.tasks.specfile import SpecFile, load_spec
from tests.flows.browser import CHROMIUM, browser
from tests.flows.test_collector import Service
from tests.pldp.client.simulation import MODULE, estimates

PYTHON, NODE, PAGE, WRONG = 100_000, 2_000, 50, 20_000
ALPHA = 1e-6
"""Chance that an honest run misses a bound, over all estimates of all clients."""
Estimates = dict[str, tuple[float, float]]
"""By table and key: the estimate and its standard error."""


@dataclass(frozen=True)
class Group:
    """Some of the people, and the client that they use."""

    name: str
    crowd: Crowd
    messages: Callable[[Service, Sequence[Answers]], Iterator[bytes] | None]
    """What they send; None where the client has sent it itself."""
    honest: bool = True


def python_messages(service: Service, answered: Sequence[Answers], plan: Plan | None = None) -> Iterator[bytes]:
    for answers, choices, importance in answered:
        yield Person(plan or service.plan, Memory()).answer(answers, choices, importance=importance)


def wrong_messages(service: Service, answered: Sequence[Answers]) -> Iterator[bytes]:
    """A client whose thresholds are two thirds of the plan's, of totals one third, and who says nothing of it."""
    document = json.loads(json.dumps(service.plan.document))
    _distort(document["questions"])
    _overstate(document["questions"])
    distorted = replace(parse_plan(json.dumps(document).encode()), sha256=service.plan.sha256)
    return python_messages(service, answered, distorted)


_SHARES = dict.fromkeys(("redraw", "keep", "flip", "include", "keep_zero", "keep_one", "weight"), Fraction(2, 3))
_SHARES |= dict.fromkeys(("digits", "tail"), Fraction(1, 3))  # moves no estimate: only the spread of reports shows it


def _overstate(questions: Sequence[dict[str, Any]]) -> None:
    """No client would go along with what is stated."""
    for question in questions:
        for part in (*question["choices"], question.get("hidden", {})):
            part["epsilon"] = "1000"


def _distort(part: Any) -> None:
    for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
        if key in _SHARES:
            whole = [int(int(one) * _SHARES[key]) for one in ([inner] if isinstance(inner, str) else inner)]
            part[key] = str(whole[0]) if isinstance(inner, str) else [str(one) for one in whole]
        elif isinstance(inner, dict | list):
            _distort(inner)


_PROGRAM = """
import { createInterface } from "node:readline";
const { MemoryStore, Person, readPlan } = await import(process.argv[1]);
const [, , url, fingerprint] = process.argv;
const plan = await readPlan(new Uint8Array(await (await fetch(`${url}/plan`)).arrayBuffer()), fingerprint);
for await (const line of createInterface({ input: process.stdin })) {
  const [answers, choices, importance] = JSON.parse(line);
  const body = await new Person(plan, new MemoryStore()).answer(answers, choices, { importance });
  const { status } = await fetch(`${url}/reports`, { method: "POST", body });
  if (status !== 202) throw new Error(`answered with ${status}`);
}
"""


def by_node(service: Service, answered: Sequence[Answers]) -> None:
    node = shutil.which("node")
    assert node is not None
    command = [node, "--input-type=module", "--eval", _PROGRAM, MODULE.as_uri(), service.url, service.plan.fingerprint]
    lines = "\n".join(json.dumps(one) for one in answered)
    done = subprocess.run(command, input=lines.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def by_page(service: Service, answered: Sequence[Answers]) -> None:
    folder = service.folder / "browser"
    folder.mkdir()
    with browser(folder) as page:
        for one in answered:
            answer_on_page(page, service, one)


def published(home: Path, release_id: str) -> Estimates:
    """Every estimate of a release."""
    results, known = pldp.open(home), {}
    for table, (keys, estimate, error) in TABLES.items():
        rows = results.query(f"SELECT * FROM {table} WHERE release_id = '{release_id}'")  # noqa: S608
        for row in rows.iter_rows(named=True):
            known[" ".join([table, *(str(row[key]) for key in keys)])] = row[estimate], row[error]
    return known


def unpublished(file: SpecFile, slot: str) -> Estimates:
    """What a release of this slot would estimate."""
    closed, known = settled(file, slot), Estimates()
    assert closed is not None
    for question in file.plan.questions:
        files = {sheet.path: sorted((closed / sheet.path).glob("*.parquet")) for sheet in question.sheets()}
        reports = {path: read_reports(parts[0]) for path, parts in files.items()}
        known.update(estimates(question, reports))
    return known


def spreads(reports: Path) -> Estimates:
    """Mean squares of reports whose noise does not move their mean, and so no estimate."""
    known = {}
    for folder in sorted(reports.glob("provider=*")):
        boxes = pl.read_parquet(folder / "*.parquet")
        for name in boxes.columns[1:]:
            squares = boxes[name].to_numpy().astype(np.float64) ** 2
            error = float(squares.std()) / math.sqrt(squares.size)
            known[f"spread {folder.name} {name}"] = float(squares.mean()), error
    return known


def apart(one: Estimates, other: Estimates) -> dict[str, float]:
    """By table, the largest difference in standard errors of it; and of how many."""
    distances: dict[str, float] = {}
    for key in one.keys() & other.keys():
        error = math.hypot(one[key][1], other[key][1])
        if error:
            table = key.split(" ")[0]
            distances[table] = max(distances.get(table, 0.0), abs(one[key][0] - other[key][0]) / error)
    return distances


def _world(folder: Path, groups: Sequence[Group], *, hidden: bool) -> Iterator[tuple[Group, dict[str, Estimates]]]:
    """Each group's estimates: through its client, from its tables, and the truth."""
    service = Service(folder, make=lambda place, **_: write_spec(place, hidden=hidden, inbox=True))
    service.start()
    try:
        for group in groups:
            answered = list(group.crowd.answers(service.plan, hidden=hidden))
            bodies = group.messages(service, answered)
            if bodies is not None:
                accepted = asyncio.run(send_all(service.port, list(bodies)))
                assert accepted == len(answered), f"{accepted} of {len(answered)} messages were taken"
            closed = service.inbox / "closed" / group.name
            if group.honest:
                done = pldp.release(service.spec, folder / "home", slot=group.name)
                sides = {"client": published(folder / "home", done.release_id) | spreads(closed)}
            else:  # gates might refuse it, which would tell less than figures
                sides = {"client": unpublished(load_spec(service.spec), group.name) | spreads(closed)}
            assert json.loads((closed / "received.json").read_text()) == {"people": len(answered), "rejected": {}}
            read = folder / group.name
            read.mkdir()
            group.crowd.write(read)
            raw = pldp.release(write_spec(read, hidden=hidden, inbox=False), read / "home")
            reports = read / "home" / "reports" / raw.release_id
            sides["pipeline"] = published(read / "home", raw.release_id) | spreads(reports)
            known = group.crowd.truth()
            sides["truth"] = {key: (known[key], 0.0) for key in sides["client"] if key in known}
            yield group, sides
    finally:
        service.stop()
        assert (folder / "log").read_bytes() == b"", "nothing is logged"


def main(arguments: Sequence[str] = ()) -> bool:
    parser = ArgumentParser(prog="python -m bench people")
    parser.add_argument("--people", type=int, nargs=4, default=(PYTHON, NODE, PAGE, WRONG), metavar="N")
    python, node, page, wrong = parser.parse_args(arguments).people
    groups = [Group("python", crowd(python, 1), python_messages)]
    for name, tool, n, by in (("node", shutil.which("node"), node, by_node), ("page", CHROMIUM, page, by_page)):
        if tool is None:
            print(f"bench: {name} is left out: what it runs in is not installed.", file=sys.stderr)
        else:
            groups.append(Group(name, crowd(n, 2 + len(groups)), by))
    groups.append(Group("wrong", crowd(wrong, 9), wrong_messages, honest=False))
    measures: list[Measure] = []
    began = time.perf_counter()
    compared = []
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        for hidden in (False, True):
            folder = Path(name) / ("hidden" if hidden else "public")
            folder.mkdir()
            for group, sides in _world(folder, groups, hidden=hidden):
                compared.append((group, hidden, sides))
                taken = time.perf_counter() - began
                near = {other: apart(sides["client"], sides[other]) for other in ("pipeline", "truth")}
                print(f"{group.name}, {folder.name}, {taken:.0f} s: {near}", flush=True)
    number = sum(len(sides["client"]) + len(sides["truth"]) for group, _, sides in compared if group.honest)
    bound = float(norm.isf(ALPHA / 2 / number))
    for group, hidden, sides in compared:
        where = f"{group.name}, {'hidden' if hidden else 'public'}"
        for other in ("pipeline", "truth"):
            for table, distance in sorted(apart(sides["client"], sides[other]).items()):
                if not group.honest and table == "aggregates":
                    continue  # other noise, the same totals: `spread` tells it
                what = f"{where}: {table} beside {other}"
                measures.append(Measure(what, distance, limit=bound, bound="≤" if group.honest else "≥"))
    measures.append(Measure("estimates compared", number))
    measures.append(Measure("time", time.perf_counter() - began, " s"))
    note = (
        f"{python:,} people through the Python client, {node:,} through the JavaScript one, {page:,} on the page, and "
        f"{wrong:,} whose client's chances are a third off; largest difference in its standard errors, "
        f"family-wise {ALPHA:g}"
    )
    return publish("people", "People of every client into one collector", measures, note)
