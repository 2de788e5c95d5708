"""A release of items again and again from the same people, and how often its intervals hold what is true of them.

Everything is drawn, tallied and combined by the code of a release; truth is what people's rows hold, not what sampling
can see of it. For evaluations and benches alone: nothing of it is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.items.combine import ItemsResult, Mined
from pldp.questions.items.reports import transactions
from pldp.questions.items.tables import splits
from pldp.questions.items.transactions import Columns as BitColumns
from pldp.questions.question import ANSWER, Columns, Partitions, Sheet, offsets
from pldp.questions.rows import monte_carlo_error

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

Stream = Callable[..., Keystream]
"""By labels."""
CLASSES = ("rare", "middle", "top")
"""Of sets by their true support: below the minimum, reaching it, and the most supported tenth."""
KINDS = ("singles", "sets", "rules")
_TOP = 0.1


@dataclass
class Drawn:
    """Reports by sheet and partition in memory, in place of files."""

    plan: Items
    files: dict[tuple[str, int], Columns] = field(default_factory=dict)
    adapted: bytes | None = None
    reference: Mapping[tuple[str, str], float] | None = None

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        return (reports for (path, _), reports in self.files.items() if path == sheet.path)

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        sheets = {sheet.path: sheet for sheet in self.plan.sheets()}
        parts = [getattr(self.plan, method)(sheets[path], one, arrays) for (path, _), one in self.files.items()]
        return np.asarray(np.sum(parts, axis=0))

    def generator(self, label: str) -> np.random.Generator:
        return np.random.default_rng(0)

    def tallies(self) -> dict[str, Any]:
        sums: dict[str, Any] = {}
        for sheet in self.plan.sheets():
            for reports in self.columns(sheet):
                tally = self.plan.tally(sheet, reports)
                sums[sheet.path] = tally if sheet.path not in sums else sums[sheet.path] + tally
        return sums


Deal = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
"""Everybody's levels, from those that people chose."""


def redealt(plan: Items, people: Partitions, deal: Deal) -> Partitions:
    """The same people with levels dealt anew, once: the same in every pass over them."""
    chosen = [rows[plan.choice_field] for rows in people([plan.choice_field])]
    levels = deal(np.concatenate(chosen).astype(np.uint8))
    parts = np.split(levels, np.cumsum([part.size for part in chosen])[:-1])

    def again(fields: Sequence[str]) -> Iterator[Columns]:
        for rows, part in zip(people(fields), parts, strict=True):
            yield {**rows, plan.choice_field: part} if plan.choice_field in fields else rows

    return again


def holders(plan: Items, people: Partitions, item: int) -> NDArray[np.bool_]:
    """Who holds an item."""
    masks = []
    for columns in people([plan.field]):
        rows = transactions(columns, plan.field)
        held = np.zeros(rows.n_users, dtype=np.bool_)
        held[np.repeat(np.arange(rows.n_users), np.diff(rows.offsets))[rows.items == item]] = True
        masks.append(held)
    return np.concatenate(masks)


def draw_again(plan: Items, people: Partitions, stream: Stream) -> ItemsResult:
    """One release of these people, every phase; at least as many partitions as phases."""
    drawn = Drawn(plan)
    for phase in range(plan.phases):
        if phase:
            drawn.adapted = plan.adapt(drawn.tallies())
        for partition, columns in enumerate(people([plan.choice_field, plan.field])):
            rows = transactions(columns, plan.field)
            for sheet in plan.sheets():
                if sheet.phase != phase or not sheet.covers(partition):
                    continue
                members = rows.of_users(columns[plan.choice_field] == sheet.code)
                held = {plan.field: members.items, offsets(plan.field): members.offsets}
                keys = stream(*sheet.labels, partition, phase)
                drawn.files[sheet.path, partition] = plan.draw(sheet, held, keys, drawn.adapted)
    tallies = drawn.tallies()
    return plan.conclude(tallies, {ANSWER: plan.combine(ANSWER, tallies, drawn)})


@dataclass
class Cell:
    """One set or rule: how often it was published, how often its interval held the truth, how long it was."""

    support: float
    published: int = 0
    covered: int = 0
    length: float = 0.0

    def add(self, truth: float, low: float, high: float) -> None:
        self.published += 1
        self.covered += low <= truth <= high
        self.length += high - low


Cells = dict[tuple[str, tuple[Any, ...]], Cell]
"""By kind and name."""


def covered_cells(results: Iterator[Mined], rows: Sequence[BitColumns]) -> Cells:
    """Every published interval beside what `rows`, everybody's, hold."""
    n_users = sum(part.n_rows for part in rows)
    known: dict[tuple[int, ...], float] = {}

    def true(items: tuple[int, ...]) -> float:
        if items not in known:
            asked = np.array([items], dtype=np.int32)
            known[items] = sum(int(part.count(asked)[0]) for part in rows) / n_users
        return known[items]

    cells: Cells = {}
    for mined in results:
        for sets in mined.by_length:
            kind = KINDS[0] if sets.items.shape[1] == 1 else KINDS[1]
            for row, low, high in zip(sets.items.tolist(), sets.ci_low, sets.ci_high, strict=True):
                truth = true(tuple(row))
                cells.setdefault((kind, tuple(row)), Cell(truth)).add(truth, low, high)
        for (left, right), numbers in splits(mined):
            below, whole = true(left), true(tuple(sorted((*left, *right))))
            if below > 0 and np.isfinite(numbers["confidence"]):
                cell = cells.setdefault((KINDS[2], (left, right)), Cell(whole))
                cell.add(whole / below, numbers["ci_low"], numbers["ci_high"])
    return cells


def by_class(cells: Cells, minimum: float) -> Iterator[tuple[str, str, dict[tuple[Any, ...], Cell]]]:
    """Kind, class and its cells."""
    for kind in KINDS:
        alike = {name: cell for (of_kind, name), cell in cells.items() if of_kind == kind}
        ranked = sorted((cell.support for cell in alike.values()), reverse=True)
        edge = ranked[max(0, int(_TOP * len(ranked)) - 1)] if ranked else 1.0
        for name in CLASSES:
            chosen = {
                key: cell
                for key, cell in alike.items()
                if name == ("rare" if cell.support < minimum else "top" if cell.support >= edge else "middle")
            }
            if chosen:
                yield kind, name, chosen


def cells_with(cells: Cells, item: int) -> Cells:
    """Sets, and rules between sets, that an item is in."""
    return {
        (kind, name): cell
        for (kind, name), cell in cells.items()
        if item in (sum(name, ()) if kind == KINDS[2] else name)
    }


def coverage_rows(plan: Items, cells: Cells, choice: str, repeats: int) -> list[dict[str, object]]:
    """Kind × class: how often intervals hold, and the cell in which they did so least, of those often published."""
    out: list[dict[str, object]] = []
    for kind, name, chosen in by_class(cells, plan.minimum_support):
        published = sum(cell.published for cell in chosen.values())
        rate = sum(cell.covered for cell in chosen.values()) / published
        often = {key: cell for key, cell in chosen.items() if 2 * cell.published >= repeats} or chosen
        worst = min(often, key=lambda key: often[key].covered / often[key].published)
        least = often[worst]
        out.append(
            {
                "kind": kind,
                "choice": choice,
                "class": name,
                "cells": len(chosen),
                "published": published,
                "coverage": rate,
                # Cells of one repetition share its draw: at worst all of them go together.
                "monte_carlo_error": monte_carlo_error(rate, repeats),
                "mean_length": sum(cell.length for cell in chosen.values()) / published,
                "worst": named(plan, kind, worst),
                "worst_coverage": least.covered / least.published,
                "worst_error": monte_carlo_error(least.covered / least.published, least.published),
                "worst_published": least.published,
                "repeats": repeats,
            }
        )
    return out


def named(plan: Items, kind: str, cell: tuple[Any, ...]) -> str:
    """A set, or a rule of two, written with the names of its items."""
    sides = cell if kind == KINDS[2] else (cell,)
    return " ⇒ ".join(" + ".join(plan.items[item] for item in side) for side in sides)
