"""Memory that threads keep: one array a name and thread, which two streams of two threads never share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.protocol import PureProtocol, Reports
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


@pytest.mark.parametrize("kind", PROTOCOLS.values())
def test_reports_drawn_side_by_side_are_those_drawn_alone(kind: type[PureProtocol]) -> None:
    # Seeded streams: whatever a thread writes into another's memory would show.
    protocol = kind.for_budget(70, Fraction(1))
    values = (np.arange(40_000) % 70).astype(np.uint16)

    def drawn(seed: int) -> Reports:
        return protocol.perturb(values, Keystream.seeded(seed))

    with ThreadPoolExecutor(4) as threads:
        beside = list(threads.map(drawn, range(4)))
    assert all(np.array_equal(drawn(seed), reports) for seed, reports in enumerate(beside))
