"""Perturb: vault to reports, one file a provider and partition. The last stage that reads the vault."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.channels.randomness import Keystream
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.objectives import Floats
from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.questions.aggregates.spec import PROFILE
from pldp.tasks.aggregates.run import AggregatesRun
from pldp.tasks.durable import make_folder
from pldp.tasks.home import draft_of, link
from pldp.tasks.partitions import read_partition
from pldp.tasks.stage import stage


@dataclass(frozen=True)
class Rows:
    """Users of a partition: their profiles (positions in the plan) and a number an attribute, in grid units."""

    profiles: Units
    numbers: Units


@stage()
def perturb_aggregates(run: AggregatesRun, batch: Sequence[int]) -> int:
    """Draw what every provider gets of a batch of partitions; how many reports were drawn now.

    Drawn once: a file that is committed is never drawn again, and a second writer that lost the race leaves what is
    there. Providers' noises are independent, so each file stands for itself.
    """
    plan = run.plan
    drawn = 0
    for partition in batch:
        missing = [one.name for one in plan.providers if not run.report_file(one.name, partition).exists()]
        if not missing:
            continue
        own = true_rows(run, partition)
        for provider in missing:
            stream = run.stream(provider, partition)
            numbers = plan.mechanisms[provider].perturb(own.numbers, own.profiles, stream)
            drawn += write_rows(run.report_file(provider, partition), plan, _shuffled(run, own, numbers, stream))
    return drawn


def _shuffled(run: AggregatesRun, own: Rows, numbers: Units, stream: Keystream) -> Rows:
    """In an order of its own: two providers cannot link a user by the row. An evaluation compares row by row."""
    if run.evaluation:
        return Rows(own.profiles, numbers)
    order = np.argsort(stream.copy(len(numbers)))
    return Rows(own.profiles[order], numbers[order])


@stage()
def true_sums(run: AggregatesRun, partitions: int) -> tuple[Units, dict[str, Floats]]:
    """For evaluations: the true totals, and per provider the reports' summed distances and squared ones, in grid units.

    The second are (2, attribute). Nothing of this leaves the vault's side.
    """
    if not run.evaluation:
        raise ValueError("a release never reads the truth")
    plan = run.plan
    total = np.zeros(len(plan.attributes), dtype=np.int64)
    away: dict[str, Floats] = {provider.name: np.zeros((2, total.size)) for provider in plan.providers}
    for partition in range(partitions):
        own = true_rows(run, partition)
        total += own.numbers.sum(axis=0)
        for name, sums in away.items():
            noise = np.abs(read_rows(run.report_file(name, partition), plan).numbers - own.numbers)
            sums += [noise.sum(axis=0), np.square(noise.astype(np.float64)).sum(axis=0)]
    return total, away


def true_rows(run: AggregatesRun, partition: int) -> Rows:
    """Everybody's own aggregates Aᵀd, as the unit counts them."""
    names = [f"a_{i}" for i in range(len(run.plan.attributes))]
    found = read_partition(run, partition, ["profile", *names])
    return Rows(found["profile"].astype(np.int64), np.stack([found[name] for name in names], axis=1))


def write_rows(path: Path, plan: AggregatesPlan, rows: Rows) -> int:
    """Commit a provider's rows exclusively: whole numbers, no id. How many this call committed."""
    numbers = {name: rows.numbers[:, i] for i, name in enumerate(plan.attributes)}
    columns = {PROFILE: pa.array(rows.profiles.astype(np.uint16)), **numbers}
    make_folder(path.parent)
    draft = draft_of(path)
    try:
        pq.write_table(
            pa.table(columns),
            draft,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            column_encoding="DELTA_BINARY_PACKED",  # as many bits as the noise has
        )
        with draft.open("rb") as handle:
            os.fsync(handle.fileno())
        return len(rows.profiles) if link(draft, path) else 0
    finally:
        draft.unlink(missing_ok=True)


def read_rows(path: Path, plan: AggregatesPlan) -> Rows:
    """The rows of one committed file."""
    table = pq.read_table(path, memory_map=False, partitioning=None)
    profiles = table[PROFILE].to_numpy().astype(np.int64)
    numbers = np.empty((profiles.size, len(plan.attributes)), dtype=np.int64)
    for column, name in enumerate(plan.attributes):
        numbers[:, column] = table[name].to_numpy()
    return Rows(profiles, numbers)
