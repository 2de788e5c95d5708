"""Count: reports to support, by name, and additive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pldp.channels.words import to_words
from pldp.errors import StageFailed
from pldp.questions.histograms.reports import supports
from pldp.tasks.count import add_up, count
from pldp.tasks.reports import commit_reports
from pldp.tasks.run import Run
from tests.people import histograms_of, opened, world
from tests.tasks.sheets import file_at


def with_reports(folder: Path, partitions: int) -> tuple[Run, dict[tuple[str, int], np.ndarray]]:
    """A run whose reports are any bits; as (user, value) tables by sheet and partition."""
    run, _ = opened(world(folder, mechanism="brr"), folder / "home")
    plan, rng = histograms_of(run), np.random.default_rng(4)
    tables = {}
    for path, (attribute, _) in plan.places.items():
        for partition in range(partitions):
            n_values = len(plan.attributes[attribute].values)
            bits = rng.integers(0, 2, (int(rng.integers(0, 50)), n_values), dtype=np.uint8)
            commit_reports(file_at(run, path, partition), to_words(np.packbits(bits, axis=1, bitorder="little")))
            tables[path, partition] = bits
    return run, tables


def test_support_is_the_sum_of_the_bits(tmp_path: Path) -> None:
    run, tables = with_reports(tmp_path, 3)
    batches = (count.fn(run, None, [0, 2]), count.fn(run, None, [1]))
    counted = [one for batch in batches for one in batch]
    seen = [(one.sheet, partition) for one in counted for partition in one.partitions]
    assert len(seen) == len(set(seen))
    assert set(seen) == set(tables)
    for one in counted:
        bits = np.concatenate([tables[one.sheet, partition] for partition in one.partitions])
        assert one.tally.n_reports == len(bits)
        assert np.array_equal(one.tally.support, bits.sum(axis=0)[None])
    plan, tallies = histograms_of(run), add_up(counted)
    for support, attribute in zip(supports(plan, tallies), plan.attributes, strict=True):
        assert support.attribute == attribute.name
        for i, level in enumerate(plan.levels):
            parts = [tables[f"attribute={attribute.name}/level={level}", partition] for partition in range(3)]
            bits = np.concatenate(parts)
            assert np.array_equal(support.counts[i], bits.sum(axis=0))
            assert support.n[i] == len(bits)


def test_batches_add_up_to_the_same_in_any_order(tmp_path: Path) -> None:
    run, _ = with_reports(tmp_path, 3)
    whole = add_up(count.fn(run, None, range(3)))
    parts = add_up(one for partition in (2, 0, 1) for one in count.fn(run, None, [partition]))
    assert set(whole) == set(parts)
    for path, tally in whole.items():
        assert np.array_equal(tally.support, parts[path].support)
        assert tally.n_reports == parts[path].n_reports


def test_a_phase_that_nobody_is_asked_in_has_no_tallies(tmp_path: Path) -> None:
    run, _ = with_reports(tmp_path, 1)
    assert len(count.fn(run, 0, [0])) == len(run.plan.sheets)
    assert count.fn(run, 1, [0]) == []


def test_only_committed_files_are_counted(tmp_path: Path) -> None:
    run, tables = with_reports(tmp_path, 1)
    path = file_at(run, "attribute=job/level=low")
    path.with_name(".00000.parquet.123-abcd").write_bytes(path.read_bytes())
    counted = count.fn(run, None, [0])
    assert sum(one.tally.n_reports for one in counted) == sum(map(len, tables.values()))


def test_a_missing_file_is_not_counted_as_empty(tmp_path: Path) -> None:
    run, _ = with_reports(tmp_path, 1)
    file_at(run, "attribute=sex/level=mid").unlink()
    with pytest.raises(StageFailed, match="Stage count failed"):
        count.fn(run, None, [0])
