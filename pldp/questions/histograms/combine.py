"""From support to one histogram per attribute and method, with its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Floats
from pldp.channels.words import from_words
from pldp.estimate.answer import GUARDED
from pldp.estimate.combine import Levels, estimate_levels
from pldp.estimate.inference import Histogram, estimate_histogram
from pldp.estimate.likelihood import Block, Blocks, maximum_likelihood, report_block, table_blocks
from pldp.questions.histograms.binned import binned_distribution
from pldp.questions.histograms.hidden import estimate_hidden
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.reports import LEVEL, Support, supports
from pldp.questions.numbers.distribution import Distribution
from pldp.questions.question import Reports, Tallies

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

REFERENCED = ("op", "op-exact")
"""Methods that are measured against a reference histogram."""

_BLOCK_CELLS = 1 << 22
"""Cells (reports × values) held at a time, so that memory depends on neither."""


@dataclass(frozen=True)
class LevelEstimates:
    """The levels of one attribute that somebody chose."""

    attribute: str
    names: tuple[str, ...]
    levels: Levels


@dataclass(frozen=True)
class HistogramsResult:
    """Everything about the histograms that comes before the gates; all but `estimates` in the attributes' order."""

    supports: tuple[Support, ...]
    levels: tuple[LevelEstimates, ...]
    """None where levels are hidden: no level has an estimate of its own."""
    histograms: tuple[Histogram, ...]
    """The published answers."""
    estimates: Mapping[str, Mapping[str, Histogram]]
    """By method and attribute; the answers among them."""
    binned: tuple[Distribution, ...]
    """What the histograms of binned numbers tell of the numbers."""


def level_estimates(plan: Histograms, support: Support) -> LevelEstimates:
    """mpldp Algorithm 2."""
    attribute = next(a for a in plan.attributes if a.name == support.attribute)
    names = tuple(name for name, size in zip(plan.levels, support.n, strict=True) if size)
    return LevelEstimates(attribute.name, names, estimate_levels(support.counts, support.n, attribute.protocols))


def combine(plan: Histograms, method: str, tallies: Tallies, reports: Reports) -> dict[str, Histogram]:
    """By one method, the histograms of the attributes that name it.

    The bootstrap behind biased methods simulates from published numbers only, so its generator needs no secret; it
    follows from the release, and a resumed release gets the same errors (a seeded evaluation in any home).
    """
    return {
        attribute.name: _histogram(plan, attribute, support, method, reports)
        for attribute, support in zip(plan.attributes, supports(plan, tallies), strict=True)
        if method in plan.methods_of(attribute)
    }


def _histogram(
    plan: Histograms, attribute: AttributePlan, support: Support, method: str, reports: Reports
) -> Histogram:
    recipe = replace(plan.recipe, method=method)
    if method != plan.methods_of(attribute)[0]:
        recipe = replace(recipe, alpha=0.0)  # only the answer falls back: what stands beside it is by its name
    blocks = _blocks(plan, attribute, support, reports)
    rng = reports.generator(attribute.name)
    if plan.hidden is not None:
        return estimate_hidden(
            support.counts,
            support.n,
            attribute.protocols,
            plan.hidden.protocol,
            recipe,
            blocks,
            rng,
            with_covariance=bool(attribute.probabilities),
        )
    reference = _reference(attribute, reports.reference)
    if reference is None and method in REFERENCED:
        recipe = replace(recipe, method=GUARDED)  # the first release of its name has no previous one
    levels = level_estimates(plan, support).levels
    likelihood = partial(maximum_likelihood, blocks, attribute.protocols)
    return estimate_histogram(levels, recipe, reference, rng, likelihood)


def _reference(attribute: AttributePlan, known: Mapping[tuple[str, str], float] | None) -> Floats | None:
    if known is None or any((attribute.name, value) not in known for value in attribute.values):
        return None
    return np.array([known[attribute.name, value] for value in attribute.values])


def _blocks(plan: Histograms, attribute: AttributePlan, support: Support, reports: Reports) -> Blocks:
    """The reports as a likelihood reads them: a table of distinct ones, or file by file, the same at every call."""
    if support.tables is not None:
        return table_blocks(attribute.protocols, support.tables)
    return lambda: _stream(plan, attribute, reports)


def _stream(plan: Histograms, attribute: AttributePlan, reports: Reports) -> Iterator[Block]:
    size = max(1, _BLOCK_CELLS // len(attribute.values))
    for sheet in plan.sheets():
        number, level = plan.places[sheet.path]
        if plan.attributes[number] is not attribute:
            continue
        protocol = attribute.protocols[level or 0]
        for columns in reports.columns(sheet):
            rows = from_words(columns, protocol.report_bytes)
            levels = None if level is not None else columns[LEVEL].astype(np.intp)
            for start in range(0, len(rows), size):
                part = slice(start, start + size)
                yield report_block(protocol, rows[part], level if levels is None else levels[part])  # type: ignore[arg-type]


def conclude(plan: Histograms, tallies: Tallies, estimates: Mapping[str, Any]) -> HistogramsResult:
    """Answers, estimates of every method and level, and what binned numbers tell, by attribute."""
    counted = supports(plan, tallies)
    answers = tuple(estimates[plan.methods_of(attribute)[0]][attribute.name] for attribute in plan.attributes)
    levels = () if plan.hidden is not None else tuple(level_estimates(plan, support) for support in counted)
    binned = tuple(
        binned_distribution(
            attribute,
            answers[i],
            round(support.n.sum()),
            plan.recipe,
            levels[i].levels if levels else None,
        )
        for i, (attribute, support) in enumerate(zip(plan.attributes, counted, strict=True))
        if attribute.edges
    )
    return HistogramsResult(counted, levels, answers, estimates, binned)
