"""Numbers cut into bins: from the histogram of the frequency protocols to quantiles with their errors.

Nothing here is particular to a protocol or to how levels were combined: quantiles need an estimate that is unbiased, or
as nearly so as `em`, and the covariance of its cells. Post-processing is left out, because its bias would add up
over the bins below a quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.answer import gamma_of
from pldp.estimate.combine import Levels
from pldp.estimate.critical import two_sided
from pldp.estimate.inference import Histogram, Recipe
from pldp.estimate.invert import Cover
from pldp.questions.histograms.cumulative import edge_tests, quantile_edges
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.numbers.distribution import Distribution
from pldp.questions.numbers.quantiles import Quantile, quantiles

_BEHIND = {"op": "guarded", "op-exact": "guarded", "emoa-paper": "auem"}
"""What the unbiased estimate is of, where the method itself has none."""
_LEAST = 2.0**-16
"""No standard error is quite zero, in terms of the range."""


def binned_distribution(
    attribute: AttributePlan, histogram: Histogram, n_reports: int, recipe: Recipe, levels: Levels | None = None
) -> Distribution:
    """The published bins, and the quantiles that the plan asks for; `levels` where they are public."""
    method = _BEHIND.get(histogram.method, histogram.method)
    edges = np.asarray(attribute.edges)
    share = histogram.frequency if method == "em" else histogram.unbiased.frequency
    shown: tuple[Quantile, ...] = ()
    if attribute.probabilities and levels is not None:
        cover = replace(recipe.cover, gamma=gamma_of(histogram.dependence))
        shown = _tested(edges, share, attribute.probabilities, levels, method, cover)
    elif attribute.probabilities and histogram.covariance is not None:
        evenly = _with_errors(
            edges,
            share,
            histogram.covariance,
            attribute.probabilities,
            n_reports,
            recipe,
            1 / (n_reports * min(protocol.gap for protocol in attribute.protocols)),
        )
        shown = tuple(_anywhere(quantile, edges) for quantile in evenly)
    return Distribution(
        attribute=attribute.name,
        method=f"binned {method}",
        quantiles=shown,
        edges=edges,
        frequency=histogram.frequency,
        standard_error=histogram.standard_error,
        n_reports=n_reports,
        dependence=histogram.dependence,
    )


def _tested(
    edges: Floats, share: Floats, probabilities: tuple[float, ...], levels: Levels, method: str, cover: Cover
) -> tuple[Quantile, ...]:
    """Points of people spread evenly, intervals from tests of the cumulative shares that hold the point's bin."""
    tests = edge_tests(levels, probabilities, method, cover)
    ends = quantile_edges(tests, levels.frequencies, probabilities)
    points = quantiles(edges, share, np.zeros((share.size, share.size)), probabilities)
    z = two_sided(cover.confidence)
    tested = []
    for point, low, high in zip(points, *ends, strict=True):
        place = _bin(point.quantile, edges)
        width = float(edges[place + 1] - edges[place])
        low, high = float(edges[min(low, place)]), float(edges[max(high, place + 1)])
        error = math.hypot(max(high - low - width, 0.0) / (2 * z), width / math.sqrt(12))
        tested.append(replace(point, standard_error=error, ci_low=low, ci_high=high))
    return tuple(tested)


def _bin(value: float, edges: Floats) -> int:
    return int(np.clip(np.searchsorted(edges, value, side="right") - 1, 0, edges.size - 2))


def _with_errors(
    edges: Floats,
    share: Floats,
    covariance: Floats,
    probabilities: Sequence[float],
    n_users: int,
    recipe: Recipe,
    step: float,
) -> tuple[Quantile, ...]:
    """Quantiles of these users, or of the population behind them; no standard error is quite zero. Nobody's report
    moves a share by more than `step`."""
    if recipe.population:
        covariance = covariance + (np.diag(share) - np.outer(share, share)) / n_users
    points = quantiles(edges, share, covariance, probabilities, recipe.confidence, step)
    floor = _LEAST * float(edges[-1] - edges[0])
    return tuple(replace(q, standard_error=max(q.standard_error, floor)) for q in points)


def _anywhere(quantile: Quantile, edges: Floats) -> Quantile:
    """Whatever people's places inside their bins: reports tell the distribution at edges and nothing between them.

    So an end of the interval moves out to the edge of the bin that it falls into: the limits of F there need no
    assumption. The standard error is that of people spread evenly, and of a place anywhere in the bin beside it.
    """
    low = edges[max(int(np.searchsorted(edges, quantile.ci_low, side="left")) - 1, 0)]
    high = edges[min(int(np.searchsorted(edges, quantile.ci_high, side="right")), edges.size - 1)]
    place = _bin(quantile.quantile, edges)
    within = float(edges[place + 1] - edges[place]) / math.sqrt(12)
    error = math.hypot(quantile.standard_error, within)
    return replace(quantile, standard_error=error, ci_low=float(low), ci_high=float(high))
