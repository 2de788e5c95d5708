"""Runs one peer inside its own environment: `peer_worker.py NAME`, then a line `protocol k users` in, JSON out.

The answer is CPU seconds and the sum of all shares. It stays alive between rounds, so that imports and compilation are
not timed. It imports nothing of ours.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

EPSILON = 1.0
Run = Callable[[Sequence[int], int], Sequence[float]]


def pure_ldp() -> dict[str, Run]:
    from pure_ldp.frequency_oracles import (  # type: ignore[import-not-found]
        DEClient,
        DEServer,
        LHClient,
        LHServer,
        UEClient,
        UEServer,
    )

    def runs(client_type: Any, server_type: Any, **options: bool) -> Run:
        def run(values: Sequence[int], size: int) -> Sequence[float]:
            client, server = client_type(EPSILON, size, **options), server_type(EPSILON, size, **options)
            for value in values:
                server.aggregate(client.privatise(value + 1))  # it counts values from one
            return [server.estimate(value + 1, suppress_warnings=True) / len(values) for value in range(size)]

        return run

    return {
        "krr": runs(DEClient, DEServer),
        "brr": runs(UEClient, UEServer, use_oue=False),
        "oue": runs(UEClient, UEServer, use_oue=True),
        "olh": runs(LHClient, LHServer, use_olh=True),
    }


def multi_freq_ldpy() -> dict[str, Run]:
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE  # type: ignore[import-not-found]

    def runs(client: Any, aggregator: Any, sized: bool, **options: bool) -> Run:
        def run(values: Sequence[int], size: int) -> Sequence[float]:
            reports = [client(value, size, EPSILON, **options) for value in values]
            shares = aggregator(reports, *([size] if sized else []), EPSILON, **options)
            return [float(share) for share in shares]

        run([0, 1], 2)  # compiles
        return run

    return {
        "krr": runs(GRR.GRR_Client, GRR.GRR_Aggregator_MI, True),
        "brr": runs(UE.UE_Client, UE.UE_Aggregator_MI, False, optimal=False),
        "oue": runs(UE.UE_Client, UE.UE_Aggregator_MI, False, optimal=True),
        "olh": runs(LH.LH_Client, LH.LH_Aggregator_MI, True, optimal=True),
        "subset": runs(SS.SS_Client, SS.SS_Aggregator_MI, True),
    }


def main(name: str) -> None:
    runs = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}[name]()
    for line in sys.stdin:
        protocol, *numbers = line.split()
        size, users = (int(word) for word in numbers)
        values = [random.randrange(size) for _ in range(users)]  # noqa: S311 (test data)
        start = time.process_time()
        shares = runs[protocol](values, size)
        taken = time.process_time() - start
        print(json.dumps({"seconds": taken, "total": sum(shares)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
