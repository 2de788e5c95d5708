"""People through the clients: estimates beside those of the pipeline's own kernels, and what a person costs."""

from __future__ import annotations

import shutil
import sys
import time

from bench.common import Measure, publish
from pldp.client import parse_plan
from tests.pldp.client.simulation import (
    WORLDS,
    collected,
    drawn,
    estimates,
    farthest,
    javascript_messages,
    python_messages,
)

PYTHON, JAVASCRIPT = 100_000, 2_000
BOUND = 6.3
"""Standard errors of a difference; as in tests/pldp/client/test_simulation.py."""


def main() -> bool:
    measures: list[Measure] = []
    node = shutil.which("node")
    if node is None:
        print("bench: node is not installed: the JavaScript client is left out.", file=sys.stderr)
    for name, make in WORLDS.items():
        world = make(PYTHON, 1)
        plan, question = parse_plan(world.body), world.question
        expected = estimates(question, drawn(world, 1))
        start = time.process_time()
        messages = list(python_messages(world))
        taken = time.process_time() - start
        estimated = estimates(question, collected(plan, question, messages))
        measures.append(
            Measure(f"{name}: Python, standard errors apart", farthest(estimated, expected), limit=BOUND, bound="≤")
        )
        measures.append(Measure(f"{name}: Python, CPU µs per person", taken / PYTHON * 1e6))
        if node is not None:
            world = make(JAVASCRIPT, 2)
            expected = estimates(question, drawn(world, 2))
            estimated = estimates(question, collected(plan, question, javascript_messages(world, node)))
            apart = farthest(estimated, expected)
            measures.append(Measure(f"{name}: JavaScript, standard errors apart", apart, limit=BOUND, bound="≤"))
    note = f"{PYTHON:,} people per kind through the Python client, {JAVASCRIPT:,} through the JavaScript one"
    return publish("clients", "Clients beside the kernels", measures, note)
