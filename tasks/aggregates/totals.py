"""Count and estimate: reports to totals. Sums are whole numbers, so partitions add up exactly in any order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.questions.aggregates.totals import Sums, Totals, estimate_totals
from pldp.tasks.aggregates.perturb import read_rows
from pldp.tasks.aggregates.run import AggregatesRun
from pldp.tasks.stage import stage


@dataclass(frozen=True)
class ItemTally:
    """What one report file adds."""

    provider: str
    partition: int
    sums: Sums


@stage(retries=2)
def count_aggregates(run: AggregatesRun, batch: Sequence[int]) -> list[ItemTally]:
    """Summed reports and users a profile, of every provider in a batch of partitions. Only committed files count."""
    plan = run.plan
    tallies = []
    for provider in plan.providers:
        for partition in batch:
            rows = read_rows(run.report_file(provider.name, partition), plan)
            sums = Sums.of(rows.numbers, rows.profiles, len(plan.profiles))
            tallies.append(ItemTally(provider.name, partition, sums))
    return tallies


def add_up_items(run: AggregatesRun, tallies: Iterable[ItemTally]) -> dict[str, Sums]:
    """All sums of every provider."""
    plan = run.plan
    nothing = Sums(np.zeros(len(plan.attributes), dtype=np.int64), np.zeros(len(plan.profiles), dtype=np.int64))
    found = {provider.name: nothing for provider in plan.providers}
    for tally in tallies:
        found[tally.provider] += tally.sums
    return found


@stage(retries=2)
def estimate_aggregates(run: AggregatesRun, sums: dict[str, Sums]) -> dict[str, Totals]:
    """Every provider's totals, with errors."""
    plan = run.plan
    return {name: estimate_totals(found, plan.mechanisms[name], plan.confidence) for name, found in sums.items()}
