"""Count: reports to support, by name, and additive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pldp.errors import StageFailed
from pldp.tasks.count import add_up, count
from pldp.tasks.perturb import write_reports
from pldp.tasks.run import Run
from tests.people import opened, world


def with_reports(folder: Path, partitions: int) -> tuple[Run, dict[tuple[str, str, int], np.ndarray]]:
    """A run whose reports are any bits; as (user, value) tables."""
    run, _ = opened(world(folder, mechanism="brr"), folder / "home")
    rng = np.random.default_rng(4)
    tables = {}
    for attribute in run.plan.attributes:
        for level in attribute.levels:
            for partition in range(partitions):
                bits = rng.integers(0, 2, (int(rng.integers(0, 50)), len(attribute.values)), dtype=np.uint8)
                packed = np.packbits(bits, axis=1, bitorder="little")
                write_reports(run.report_file(attribute.name, level.level, partition), packed)
                tables[attribute.name, level.level, partition] = bits
    return run, tables


def test_support_is_the_sum_of_the_bits(tmp_path: Path) -> None:
    run, tables = with_reports(tmp_path, 3)
    tallies = count.fn(run, [0, 2]) + count.fn(run, [1])
    assert len(tallies) == len(tables)
    for tally in tallies:
        assert tally.level is not None
        bits = tables[tally.attribute, tally.level, tally.partition]
        assert tally.n_reports == len(bits)
        assert np.array_equal(tally.support, bits.sum(axis=0))
    for support, attribute in zip(add_up(run, tallies), run.plan.attributes, strict=True):
        for i, level in enumerate(run.plan.levels):
            bits = np.concatenate([tables[attribute.name, level, partition] for partition in range(3)])
            assert np.array_equal(support.counts[i], bits.sum(axis=0))
            assert support.n[i] == len(bits)


def test_only_committed_files_are_counted(tmp_path: Path) -> None:
    run, tables = with_reports(tmp_path, 1)
    path = run.report_file("job", "low", 0)
    path.with_name(".00000.parquet.123-abcd").write_bytes(path.read_bytes())
    tallies = count.fn(run, [0])
    assert sum(tally.n_reports for tally in tallies) == sum(map(len, tables.values()))


def test_a_missing_file_is_not_counted_as_empty(tmp_path: Path) -> None:
    run, _ = with_reports(tmp_path, 1)
    run.report_file("sex", "mid", 0).unlink()
    with pytest.raises(StageFailed, match="Stage count failed"):
        count.fn(run, [0])
