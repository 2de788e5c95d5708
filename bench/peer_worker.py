"""Runs one peer inside its own environment: `peer_worker.py NAME`, then a line `k users` in, CPU seconds as JSON out.

It stays alive between rounds, so that imports and compilation are not timed. It imports nothing of ours.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence

EPSILON = 1.0
Run = Callable[[Sequence[int], int], Sequence[float]]


def pure_ldp() -> Run:
    from pure_ldp.frequency_oracles import UEClient, UEServer  # type: ignore[import-not-found]

    def run(values: Sequence[int], size: int) -> Sequence[float]:
        client, server = UEClient(EPSILON, size, use_oue=False), UEServer(EPSILON, size, use_oue=False)
        for value in values:
            server.aggregate(client.privatise(value + 1))  # it counts values from one
        return [server.estimate(value + 1, suppress_warnings=True) / len(values) for value in range(size)]

    return run


def multi_freq_ldpy() -> Run:
    from multi_freq_ldpy.pure_frequency_oracles.UE import (  # type: ignore[import-not-found]
        UE_Aggregator_MI,
        UE_Client,
    )

    def run(values: Sequence[int], size: int) -> Sequence[float]:
        reports = [UE_Client(value, size, EPSILON, optimal=False) for value in values]
        return [float(share) for share in UE_Aggregator_MI(reports, EPSILON, optimal=False)]

    run([0, 1], 2)  # compiles
    return run


def main(name: str) -> None:
    run = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}[name]()
    for line in sys.stdin:
        size, users = (int(word) for word in line.split())
        values = [random.randrange(size) for _ in range(users)]  # noqa: S311 (test data)
        start = time.process_time()
        shares = run(values, size)
        taken = time.process_time() - start
        print(json.dumps({"seconds": taken, "total": sum(shares)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
