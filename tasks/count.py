"""Count: reports to support. Only committed files are counted, each by name, so that none counts twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.hidden import joint_support, level_tally
from pldp.estimate.likelihood import fits, tally, tally_hidden
from pldp.questions.histograms.plan import AttributePlan, LevelPlan, Plan
from pldp.tasks.home import replace as replace_file
from pldp.tasks.perturb import read_reports
from pldp.tasks.run import AnyRun, Run
from pldp.tasks.stage import stage


@dataclass(frozen=True)
class Tally:
    """What one report file adds: its support, and for likelihoods how often each distinct report stands in it.

    Where levels are hidden `level` is None, and arrays have a first dimension: the level that reports tell.
    """

    attribute: str
    level: str | None
    partition: int
    n_reports: int | Counts
    support: Counts
    table: Counts | None = None


@dataclass(frozen=True)
class Support:
    """All support of one attribute: (level, value), and how many reports a level has.

    Where levels are hidden, these are the levels that reports tell, not the ones that were chosen.
    """

    attribute: str
    counts: Counts
    n: Counts
    tables: tuple[Counts, ...] | None = None
    """By level: how often each distinct report stands there; None where nobody needs it or it would be too large."""


def tabulates(plan: Plan, attribute: AttributePlan) -> bool:
    """Whether a likelihood is asked for and has few enough distinct reports to count them."""
    return plan.recipe.method in ("em", "emoa-paper") and fits(attribute.protocols)


@stage(retries=2)
def count(run: Run, batch: Sequence[int]) -> list[Tally]:
    """Support of every attribute and level in a batch of partitions."""
    plan = run.plan
    tallies = []
    for attribute in plan.attributes:
        for level in (None,) if plan.hidden is not None else attribute.levels:
            found = [_tally(run, attribute, level, partition) for partition in batch]
            tallies += _merge_tables(found)
    return tallies


def _tally(run: Run, attribute: AttributePlan, level: LevelPlan | None, partition: int) -> Tally:
    tabulated = tabulates(run.plan, attribute)
    if level is not None:
        reports = read_reports(run.report_file(attribute.name, level.level, partition))
        table = tally(level.protocol, reports) if tabulated else None
        support = level.protocol.support(reports)
        return Tally(attribute.name, level.level, partition, len(reports), support, table)
    path = run.report_file(attribute.name, None, partition)
    reports, told = read_reports(path), read_reports(path, "level")[:, 0].astype(np.intp)
    protocol, n_levels = attribute.protocols[0], len(attribute.levels)
    support = joint_support(protocol, reports, told, n_levels)
    table = tally_hidden(protocol, reports, told, n_levels) if tabulated else None
    return Tally(attribute.name, None, partition, level_tally(told, n_levels), support, table)


def _merge_tables(tallies: list[Tally]) -> list[Tally]:
    """One table a batch: a table a partition would grow with the data."""
    tables = [found.table for found in tallies if found.table is not None]
    if not tables:
        return tallies
    return [replace(tallies[0], table=np.sum(tables, axis=0)), *(replace(found, table=None) for found in tallies[1:])]


def record_counted(run: AnyRun, files: Iterable[tuple[str, int]]) -> None:
    """Keep which partitions the counts are of, beside the plan: by what a file of reports is of, in its order.

    The gates see the same list; this is for whoever asks later.
    """
    found: dict[str, list[int]] = {}
    for of, partition in files:
        found.setdefault(of, []).append(partition)
    replace_file(run.folder / "counted.json", json.dumps(found).encode(), mode=0o644)


def add_up(run: Run, tallies: Iterable[Tally]) -> tuple[Support, ...]:
    """Support counts are additive: sum them over partitions."""
    plan = run.plan
    by_attribute: dict[str, list[Tally]] = {attribute.name: [] for attribute in plan.attributes}
    for found in tallies:
        by_attribute[found.attribute].append(found)
    return tuple(_add_up(plan, attribute, by_attribute[attribute.name]) for attribute in plan.attributes)


def _add_up(plan: Plan, attribute: AttributePlan, tallies: Sequence[Tally]) -> Support:
    n_levels = len(plan.levels)
    counts = np.zeros((n_levels, len(attribute.values)), dtype=np.int64)
    sizes = np.zeros(n_levels, dtype=np.int64)
    tables: dict[int, Counts] = {}
    for found in tallies:
        # Hidden levels come all at once, in the first dimension.
        rows = slice(None) if found.level is None else slice(i := plan.levels.index(found.level), i + 1)
        counts[rows] += found.support
        sizes[rows] += found.n_reports
        if found.table is not None:
            for row, table in zip(range(n_levels)[rows], np.atleast_2d(found.table), strict=True):
                tables[row] = table if row not in tables else tables[row] + table
    tabulated = tuple(tables[row] for row in range(n_levels)) if len(tables) == n_levels else None
    return Support(attribute.name, counts, sizes, tabulated)
