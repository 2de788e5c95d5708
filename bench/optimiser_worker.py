"""Solves profiles through cvxpy inside an environment of its own: a problem as JSON in, CPU seconds and losses out.

The programme is compiled once a problem, outside the time; a profile then only changes parameters. It imports nothing
of ours.
"""

from __future__ import annotations

import json
import sys
import time

import cvxpy as cp  # type: ignore[import-not-found]
import numpy as np


def main() -> None:
    for line in sys.stdin:
        task = json.loads(line)
        rows, width = np.array(task["rows"], dtype=float), len(task["rows"][0])
        scale, weights, top = cp.Parameter(width, pos=True), cp.Parameter(width, pos=True), cp.Parameter(pos=True)
        z = cp.Variable(width, pos=True)
        loss = cp.sum(cp.multiply(weights, cp.power(z, -task["power"])))
        problem = cp.Problem(cp.Minimize(loss), [rows @ cp.multiply(scale, z) <= 1, z <= top])
        losses: list[float] = []
        start = 0.0
        for turn, profile in enumerate([0, *range(len(task["scale"]))]):
            if turn == 1:
                start, losses = time.process_time(), []
            scale.value, weights.value = np.array(task["scale"][profile]), np.array(task["weights"][profile])
            top.value = task["top"][profile]
            losses.append(float(problem.solve(solver=cp.CLARABEL)))
        print(json.dumps({"seconds": time.process_time() - start, "losses": losses}), flush=True)


if __name__ == "__main__":
    main()
