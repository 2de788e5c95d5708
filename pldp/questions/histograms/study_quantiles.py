"""Repeated draws of the quantiles of binned numbers, for evaluations: how often each one's interval holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.combine import estimate_levels
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import draw_levels, draw_support
from pldp.questions.histograms.binned import even_quantiles
from pldp.questions.histograms.cumulative import edge_tests, quantile_edges
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.rows import coverage_row

_MOST_CELLS = 1 << 22
"""Cells (repetitions × levels × bins) drawn at a time."""


def study_quantiles(
    attribute: AttributePlan,
    recipe: Recipe,
    level_counts: Counts,
    repeats: int,
    rng: np.random.Generator,
    *,
    keep_levels: bool = False,
) -> list[dict[str, Any]]:
    """One row of the evaluation's coverage for every quantile; `level_counts` is the truth, (level, bin).

    The quantile of people spread evenly lies in the bin of people's own, and intervals run from edge to edge: they hold
    the one if they hold the other.
    """
    chosen = level_counts.sum(axis=1) > 0
    counts, sizes = level_counts.sum(axis=0), level_counts.sum(axis=1)
    truth = np.array(list(even_quantiles(attribute, counts / counts.sum()).values()))
    edges = np.asarray(attribute.edges)
    held, done = np.zeros(truth.size), 0
    while done < repeats:
        batch = min(repeats - done, max(1, _MOST_CELLS // level_counts.size))
        dealt = (
            np.broadcast_to(level_counts, (batch, *level_counts.shape))
            if keep_levels
            else draw_levels(counts, sizes, batch, rng)
        )
        levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)
        tests = edge_tests(levels, attribute.probabilities, recipe.linear, recipe.cover)
        low, high = (edges[end] for end in quantile_edges(tests, levels.frequencies, attribute.probabilities))
        held += ((low <= truth) & (truth <= high)).sum(axis=0)
        done += batch
    method = f"binned {recipe.linear}" if chosen.sum() > 1 else "binned sum"
    return [
        coverage_row(attribute.name, method, f"quantile {p:g}", float(rate), repeats)
        for p, rate in zip(attribute.probabilities, held / repeats, strict=True)
    ]
