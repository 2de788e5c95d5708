"""Runs one peer's noise on numbers inside its own environment: `number_peer_worker.py NAME`, then a line
`epsilon users` in, CPU seconds out. It stays alive between rounds, so that imports are not timed. It imports nothing of
ours.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

Noise = Callable[[Sequence[float]], Any]


def diffprivlib(epsilon: float) -> Noise:
    from diffprivlib.mechanisms import Laplace  # type: ignore[import-not-found]

    mechanism = Laplace(epsilon=epsilon, sensitivity=2)
    return lambda values: [mechanism.randomise(value) for value in values]


def python_dp(epsilon: float) -> Noise:
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism  # type: ignore[import-not-found]

    mechanism = LaplaceMechanism(epsilon=epsilon, sensitivity=2.0)
    return lambda values: [mechanism.add_noise(value) for value in values]


def opendp(epsilon: float) -> Noise:
    import opendp.prelude as dp  # type: ignore[import-not-found]

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    # A vector in one call is its fastest way; every value has the noise of its own release.
    measurement: Noise = space >> dp.m.then_laplace(scale=2 / epsilon)
    return measurement


def main(name: str) -> None:
    make = {"diffprivlib": diffprivlib, "python-dp": python_dp, "opendp": opendp}[name]
    for line in sys.stdin:
        epsilon, users = (float(word) for word in line.split())
        noise = make(epsilon)
        values = [random.uniform(-1, 1) for _ in range(int(users))]  # noqa: S311 (test data)
        start = time.process_time()
        noisy = noise(values)
        taken = time.process_time() - start
        if len(noisy) != len(values):
            raise RuntimeError("every value must come back")
        print(taken, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
