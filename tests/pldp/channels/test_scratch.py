"""Memory that threads keep: one array a name and thread, which two streams of two threads never share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.channels.scratch import scratch


def test_memory_is_kept_by_name_and_grows_where_it_must() -> None:
    first = scratch("test", 10, np.uint32)
    assert np.shares_memory(first, scratch("test", 5, np.uint64))
    assert not np.shares_memory(first, scratch("test of another name", 10, np.uint32))
    assert scratch("test", 100, np.uint64).shape == (100,)


def test_threads_do_not_share_memory() -> None:
    with ThreadPoolExecutor(1) as other:
        assert not np.shares_memory(scratch("test", 9, np.uint8), other.submit(scratch, "test", 9, np.uint8).result())


def test_reports_drawn_side_by_side_are_those_drawn_alone() -> None:
    # Seeded streams: whatever a thread writes into another's memory would show.
    for kind in PROTOCOLS.values():
        protocol = kind.for_budget(70, Fraction(1))
        values = (np.arange(40_000) % 70).astype(np.uint16)
        alone = [protocol.perturb(values, Keystream.seeded(seed)) for seed in range(4)]
        with ThreadPoolExecutor(4) as threads:
            beside = list(threads.map(lambda seed: protocol.perturb(values, Keystream.seeded(seed)), range(4)))
        assert all(np.array_equal(one, other) for one, other in zip(alone, beside, strict=True))
