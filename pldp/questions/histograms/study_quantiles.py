"""Repeated draws of the quantiles of binned numbers, for evaluations: how often each one's interval holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.combine import estimate_levels
from pldp.estimate.dealing import SIDES, Deal, Mask, by_value
from pldp.estimate.hidden import draw_hidden
from pldp.estimate.likelihood import table_blocks
from pldp.estimate.simulate import draw_support
from pldp.questions.histograms.binned import binned_distribution
from pldp.questions.histograms.cumulative import edge_tests, quantile_edges
from pldp.questions.histograms.hidden import LIKELIHOODS, estimate_hidden
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan
from pldp.questions.rows import coverage_row

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

_MOST_CELLS = 1 << 22
"""Cells (repetitions × levels × bins) drawn at a time."""
HIDDEN_REPEATS = 40
"""Of hidden levels: their intervals need simulations of their own."""

Ends = Callable[[Counts, np.random.Generator], tuple[Floats, Floats]]
"""Lower and upper ends of intervals, (repeat, probability), from counts as they were dealt."""


def study_quantiles(
    plan: Histograms,
    attribute: AttributePlan,
    truth: Mapping[tuple[str, float], float],
    level_counts: Counts,
    deals: Mapping[str, Deal],
    gamma: float | None,
    repeats: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """One row of the evaluation's coverage for every quantile and way to deal levels: those of `deals`, and where
    `gamma` is given by the people below each quantile. `truth` are people's own, `level_counts` are (level, bin)."""
    method = plan.methods_of(attribute)[0]
    if plan.hidden is not None:
        if method in LIKELIHOODS and not isinstance(attribute.protocols[0], KRR):
            return []  # it would climb over the reports of every repetition
        ends, repeats = _hidden_ends(plan, plan.hidden, attribute, method), min(repeats, HIDDEN_REPEATS)
    else:
        method, ends = _public_ends(plan, attribute, level_counts)
    quantiles = np.array([truth[attribute.name, p] for p in attribute.probabilities])
    rows = []

    def add(choice: str, deal: Deal, places: range) -> None:
        held, done = np.zeros(quantiles.size), 0
        while done < repeats:
            dealt = deal(min(repeats - done, max(1, _MOST_CELLS // level_counts.size)), rng)
            low, high = ends(dealt, rng)
            held, done = held + ((low <= quantiles) & (quantiles <= high)).sum(axis=0), done + len(dealt)
        for place in places:
            name = f"quantile {attribute.probabilities[place]:g}"
            rate = float(held[place] / repeats)
            rows.append(coverage_row(attribute.name, f"binned {method}", choice, name, {name: rate}, repeats))

    for choice, deal in deals.items():
        add(choice, deal, range(quantiles.size))
    for choice, side in SIDES.items() if gamma is not None else ():
        for place, quantile in enumerate(quantiles.tolist()):
            leaning = people_below(attribute, level_counts.sum(axis=0), quantile)
            add(choice, by_value(level_counts, leaning, gamma or 1.0, side), range(place, place + 1))
    return rows


def people_below(attribute: AttributePlan, counts: Counts, quantile: float) -> Mask:
    """The bins up to that of a quantile, or those before it where nobody is beyond."""
    place = int(np.searchsorted(attribute.edges[1:-1], quantile, side="right"))
    last = place if counts[place + 1 :].any() else place - 1
    return np.arange(counts.size) <= last


def _public_ends(plan: Histograms, attribute: AttributePlan, level_counts: Counts) -> tuple[str, Ends]:
    sizes, edges = level_counts.sum(axis=1), np.asarray(attribute.edges)
    method = plan.recipe.linear if (sizes > 0).sum() > 1 else "sum"

    def ends(dealt: Counts, rng: np.random.Generator) -> tuple[Floats, Floats]:
        levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)
        tests = edge_tests(levels, attribute.probabilities, plan.recipe.linear, plan.recipe.cover)
        low, high = quantile_edges(tests, levels.frequencies, attribute.probabilities)
        return edges[low], edges[high]

    return method, ends


def _hidden_ends(plan: Histograms, hidden: HiddenPlan, attribute: AttributePlan, method: str) -> Ends:
    """Through the code of the release."""
    recipe, protocols = replace(plan.recipe, method=method, postprocess="none"), attribute.protocols

    def ends(dealt: Counts, rng: np.random.Generator) -> tuple[Floats, Floats]:
        drawn = []
        for joint, sizes in zip(*draw_hidden(dealt, protocols, hidden.protocol, rng), strict=True):
            blocks = table_blocks(protocols, joint) if isinstance(protocols[0], KRR) else None
            histogram = estimate_hidden(
                joint, sizes, protocols, hidden.protocol, recipe, blocks, rng, with_covariance=True
            )
            shown = binned_distribution(attribute, histogram, int(sizes.sum()), recipe).quantiles
            drawn.append([(one.ci_low, one.ci_high) for one in shown])
        low, high = np.moveaxis(np.array(drawn), -1, 0)
        return low, high

    return ends
