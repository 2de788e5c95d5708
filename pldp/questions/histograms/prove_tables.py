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


def published(tables: Mapping[str, Rows], known: Known) -> Iterator[Compared]:
    """Shares and counts by the value that stands beside them, bins by their ends, quantiles by their probability."""
    attribute, name, method = known.attribute, known.attribute.name, known.method
    people = float(known.sizes.sum())
    for table, column in SHARES:
        there = _by(tables[table], column, "value", attribute=name)
        yield _compared(f"{name} by {method}", there, attribute.values, known.whole, known.slack)
    counts = {key: count / people for key, count in _by(tables["histograms"], "count", "value", attribute=name).items()}
    yield _compared(f"counts of {name}", counts, attribute.values, known.whole, known.slack)
    if "level_estimates" in tables:
        yield from _levels(tables["level_estimates"], known)
    if attribute.edges:
        bins = _by(tables["bins"], "frequency", "bin_low", "bin_high", attribute=name)
        ends = zip(attribute.edges[:-1], attribute.edges[1:], strict=True)
        yield _compared(f"bins of {name} by {method}", bins, ends, known.whole, known.slack)
    if attribute.probabilities:
        yield _quantiles(tables["quantiles"], known)


def _levels(rows: Rows, known: Known) -> Iterator[Compared]:
    name = known.attribute.name
    for level, shares, people in zip(known.attribute.levels, known.by_level, known.sizes.tolist(), strict=True):
        there = _by(rows, "frequency", "value", attribute=name, level=level.level)
        yield _compared(f"{name} at {level.level}", there, known.attribute.values, shares, known.slack)
        heard = _by(rows, "n_reports", "value", attribute=name, level=level.level)
        yield _compared(f"reports of {name} at {level.level}", heard, known.attribute.values, [people] * shares.size, 0)


def _quantiles(rows: Rows, known: Known) -> Compared:
    """Of people spread evenly in their bins."""
    attribute, whole, edges = known.attribute, known.whole, np.asarray(known.attribute.edges)
    points = _by(rows, "quantile", "probability", attribute=attribute.name)
    quantiles = np.array([points.get((p,), np.nan) for p in attribute.probabilities], dtype=np.float64)
    expected = np.interp(attribute.probabilities, np.append(0.0, np.cumsum(whole)), edges)
    width = float(edges[-1] - edges[0])
    blur = (known.slack + ROUNDING) * whole.size * float((np.diff(edges) / whole).max()) / width
    return Compared.between(
        f"quantiles of {attribute.name} by {known.method}", quantiles / width, expected / width, blur
    )


def shares_of_levels(
    rows: Rows, attributes: Sequence[str | None], levels: Any, sizes: Counts, slack: float
) -> Iterator[Compared]:
    """How many chose each hidden level, as the reports about it tell."""
    for name in attributes:
        there = _by(rows, "share", "level", attribute=name)
        yield _compared(f"levels beside {name}", there, levels, sizes / sizes.sum(), slack)


def _by(rows: Rows, column: str, *by: str, **where: Any) -> dict[tuple[Any, ...], float]:
    """A column by the columns of a key, of the rows that are about this."""
    keys = zip(*(rows[name] for name in by), strict=True)
    about = zip(*(rows[name] for name in where), strict=True)
    wanted = tuple(where.values())
    every = zip(about, keys, rows[column], strict=True)
    return {key: value for place, key, value in every if place == wanted}


def _compared(what: str, there: dict[tuple[Any, ...], float], keys: Any, expected: Any, slack: float) -> Compared:
    """What has no row is no number, and no success."""
    asked = [key if isinstance(key, tuple) else (key,) for key in keys]
    return Compared.between(what, [there.get(key, np.nan) for key in asked], expected, slack)
