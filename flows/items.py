"""Frequent items: what a release and an evaluation of them do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pldp.flows.kinds import Asked, Concluded, Kind
from pldp.flows.pipeline import fan_out
from pldp.flows.progress import report
from pldp.flows.runner import batches_of
from pldp.questions.items.transactions import Counts, Itemsets
from pldp.tasks.count import record_counted
from pldp.tasks.ingest import Ingested
from pldp.tasks.items.count import Counted, Support, Tally, add_up_tallies, count_items, count_sets
from pldp.tasks.items.file import ItemsFile, load_items
from pldp.tasks.items.ingest import ingest_rows
from pldp.tasks.items.mine import Mined, choose_candidates, mine_bits, mine_sampled, mine_values
from pldp.tasks.items.perturb import perturb_items
from pldp.tasks.items.run import ItemsRun, open_items
from pldp.tasks.items.sets import kept_sets
from pldp.tasks.items.study import study_items
from pldp.tasks.items.tables import itemset_rows, row_budget_rows, rule_rows
from pldp.tasks.items.truth import Truth, true_supports
from pldp.tasks.items.validate import validate_items
from pldp.tasks.specfile import Given

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

CHUNK_COUNTS = 1 << 22
"""Counts that all calls of a stage may bring back together; of more sets, some are asked about at a time."""


@dataclass(frozen=True)
class _Outcome:
    supports: tuple[Support, ...]
    mined: Mined
    itemsets: pl.DataFrame
    rules: pl.DataFrame
    truth: Truth | None
    verdicts: tuple[Verdict, ...]


def _load(path: Path, source: Path | None, runner: Given, *, evaluation: bool) -> ItemsFile:
    return load_items(path, source, runner, evaluation=evaluation)


def _draw(run: ItemsRun, file: ItemsFile, ingested: Ingested) -> None:
    """Perturb: one call a batch of partitions, all levels in it. Of a sampled release the first half comes first: what
    it says decides what the second half is asked."""
    for phase in range(run.plan.phases):
        if phase:
            choose_candidates(run, _count(run, ingested, 0)[1])
        fan_out("perturb", [(perturb_items, run, batch) for batch in _batches(run, ingested, phase)])


def _conclude(run: ItemsRun, file: ItemsFile, ingested: Ingested) -> Concluded:
    done = _mine(run, ingested)
    n = np.sum([support.n for support in done.supports], axis=0)
    tables = {"itemsets": done.itemsets, "rules": done.rules, "budgets": row_budget_rows(run.plan, n)}
    return Concluded(tables, done.verdicts)


def _study(run: ItemsRun, file: ItemsFile, ingested: Ingested, asked: Asked) -> Concluded:
    """One run with the truth beside it, then frequent sets missed and made up, by this plan and by others.

    Tables: itemsets and rules of the one run, with the truth; identity (method × minimum support); privacy, aprr's
    degrees of it by method.
    """
    done = _mine(run, ingested, with_truth=True)
    if done.truth is None:
        raise ValueError("an evaluation has the truth")
    report("repeat", 0)
    tables = study_items(run, ingested, done.itemsets, done.truth, asked.repeat, asked.seed)
    report("repeat", 1)
    return Concluded({**tables, "rules": done.rules, "budgets": row_budget_rows(run.plan)}, done.verdicts)


def _mine(run: ItemsRun, ingested: Ingested, *, with_truth: bool = False) -> _Outcome:
    """Count, mine, validate."""
    counted = [_count(run, ingested, phase) for phase in range(run.plan.phases)]
    supports = tuple(support for _, support in counted)
    files = tuple(file for own, _ in counted for file in own)
    record_counted(run, ((file.level, file.partition) for file in files))
    report("mine", 0)
    if run.plan.holds == "one":
        mined = mine_values(run, supports[0])
    elif run.plan.protocol == "sampling":
        mined = mine_sampled(run, supports)
    else:
        mined = mine_bits(run, supports[0], lambda sets: _count_sets(run, ingested, sets))
    itemsets, rules = itemset_rows(run.plan, mined, ingested.n_users), rule_rows(run.plan, mined)
    report("mine", 1)
    truth: Truth | None = None
    if with_truth:
        report("truth", 0)
        truth = true_supports(run, ingested, tuple(level.items for level in mined.longer))
        report("truth", 1)
    report("validate", 0)
    verdicts = validate_items(run, ingested, files, supports, mined, itemsets, rules, truth)
    report("validate", 1)
    return _Outcome(supports, mined, itemsets, rules, truth, verdicts)


def _count(run: ItemsRun, ingested: Ingested, phase: int) -> tuple[tuple[Counted, ...], Support]:
    tallies: list[Tally] = fan_out("count", [(count_items, run, batch) for batch in _batches(run, ingested, phase)])
    return tuple(file for tally in tallies for file in tally.files), add_up_tallies(run, tallies)


def _count_sets(run: ItemsRun, ingested: Ingested, sets: Itemsets) -> Counts:
    """(set, level), over all partitions; sets go by a file, and as many at a time as results fit into memory."""
    batches = _batches(run, ingested, 0)
    size = max(1, CHUNK_COUNTS // (len(batches) * len(run.plan.levels)))
    totals = np.zeros((len(sets), len(run.plan.levels)), dtype=np.int64)
    with kept_sets(run, sets) as length:
        for first in range(0, len(sets), size):
            last = min(first + size, len(sets))
            calls = [(count_sets, run, batch, length, first, last) for batch in batches]
            totals[first:last] = np.sum(fan_out(f"sets of {length}", calls), axis=0)
    return totals


def _batches(run: ItemsRun, ingested: Ingested, phase: int) -> list[Sequence[int]]:
    """Of the partitions of a phase: every other one where there are two."""
    phases = run.plan.phases
    return [
        range(batch[0] * phases + phase, batch[-1] * phases + phase + 1, phases)
        for batch in batches_of(ingested.partitions // phases)
    ]


KIND: Kind[Any, Any] = Kind(
    load=_load,
    open=open_items,
    ingest=ingest_rows,
    draw=_draw,
    conclude=_conclude,
    study=_study,
    artifacts=("itemsets", "rules", "budgets"),
)
