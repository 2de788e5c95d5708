"""What the published tables of histograms say of made-up people whose answers are known: every row by its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.proof.compared import Compared
from pldp.proof.laws import ROUNDING
from pldp.questions.question import Rows

if TYPE_CHECKING:
    from pldp.questions.histograms.plan import AttributePlan

SHARES = (("histograms", "unbiased_frequency"), ("histograms", "frequency"), ("estimates", "frequency"))


@dataclass(frozen=True)
class Known:
    """Of one attribute's made-up people: the share of every value, by level and of all; how many each level has."""

    attribute: AttributePlan
    method: str
    by_level: Floats
    whole: Floats
    sizes: Counts
    slack: float


class Cells:
    """Cells of the published tables by the columns of a key; each column is gone through once, however many ask."""

    def __init__(self, tables: Mapping[str, Rows]) -> None:
        self.tables = tables
        self._known: dict[tuple[str, ...], dict[tuple[Any, ...], float]] = {}

    def at(self, table: str, column: str, key: tuple[str, ...], asked: Sequence[tuple[Any, ...]]) -> Floats:
        """What has no row is no number."""
        place = (table, column, *key)
        if place not in self._known:
            rows = self.tables[table]
            keys = zip(*(rows[name] for name in key), strict=True)
            self._known[place] = dict(zip(keys, rows[column], strict=True))
        return np.array([self._known[place].get(each, np.nan) for each in asked], dtype=np.float64)


def published(cells: Cells, known: Known) -> Iterator[Compared]:
    """Shares and counts by the value that stands beside them, bins by their ends, quantiles by their probability."""
    attribute, name, key = known.attribute, known.attribute.name, ("attribute", "value")
    values, what = [(name, value) for value in attribute.values], f"{name} by {known.method}"
    for table, column in SHARES:
        yield Compared.between(what, cells.at(table, column, key, values), known.whole, known.slack)
    counts = cells.at("histograms", "count", key, values) / known.sizes.sum()
    yield Compared.between(f"counts of {what}", counts, known.whole, known.slack)
    if "level_estimates" in cells.tables:
        yield from _levels(cells, known)
    if attribute.edges:
        ends = [(name, *ends) for ends in zip(attribute.edges[:-1], attribute.edges[1:], strict=True)]
        shares = cells.at("bins", "frequency", ("attribute", "bin_low", "bin_high"), ends)
        yield Compared.between(f"bins of {what}", shares, known.whole, known.slack)
    if attribute.probabilities:
        yield _quantiles(cells, known)


def _levels(cells: Cells, known: Known) -> Iterator[Compared]:
    name, key = known.attribute.name, ("attribute", "level", "value")
    for at, shares, people in zip(known.attribute.levels, known.by_level, known.sizes.tolist(), strict=True):
        values = [(name, at.level, value) for value in known.attribute.values]
        there = cells.at("level_estimates", "frequency", key, values)
        yield Compared.between(f"{name} at {at.level}", there, shares, known.slack)
        heard = cells.at("level_estimates", "n_reports", key, values)
        yield Compared.between(f"reports of {name} at {at.level}", heard, people)


def _quantiles(cells: Cells, known: Known) -> Compared:
    """Of people spread evenly in their bins."""
    attribute, whole, edges = known.attribute, known.whole, np.asarray(known.attribute.edges)
    asked = [(attribute.name, probability) for probability in attribute.probabilities]
    quantiles = cells.at("quantiles", "quantile", ("attribute", "probability"), asked)
    expected = np.interp(attribute.probabilities, np.append(0.0, np.cumsum(whole)), edges)
    width = float(edges[-1] - edges[0])
    blur = (known.slack + ROUNDING) * whole.size * float((np.diff(edges) / whole).max()) / width
    what = f"quantiles of {attribute.name} by {known.method}"
    return Compared.between(what, quantiles / width, expected / width, blur)


def shares_of_levels(
    cells: Cells, attributes: Sequence[str | None], levels: Sequence[str], sizes: Counts, slack: float
) -> Iterator[Compared]:
    """How many chose each hidden level, as the reports about it tell."""
    for name in attributes:
        there = cells.at("level_shares", "share", ("attribute", "level"), [(name, level) for level in levels])
        yield Compared.between(f"levels beside {name}", there, sizes / sizes.sum(), slack)
