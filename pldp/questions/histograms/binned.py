"""Numbers cut into bins: from the histogram of the frequency protocols to quantiles with their errors.

Nothing here is particular to a protocol or to how levels were combined: quantiles need an estimate that is unbiased, or
as nearly so as `em`, and the covariance of its cells. Post-processing is left out, because its bias would add up
over the bins below a quantile.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.inference import Histogram
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.numbers.estimate import Distribution, with_errors
from pldp.questions.numbers.quantiles import Quantile, quantiles

_BEHIND = {"op": "guarded", "op-exact": "guarded", "emoa-paper": "auem"}
"""What the unbiased estimate is of, where the method itself has none."""


def binned_distribution(
    attribute: AttributePlan, histogram: Histogram, n_reports: int, *, confidence: float, population: bool
) -> Distribution:
    """The published bins, and the quantiles that the plan asks for."""
    method = _BEHIND.get(histogram.method, histogram.method)
    found: tuple[Quantile, ...] = ()
    if attribute.probabilities and histogram.covariance is not None:
        share, covariance = histogram.unbiased.frequency, histogram.covariance
        if method == "em":
            share = histogram.frequency
        edges = np.asarray(attribute.edges)
        evenly = with_errors(edges, share, covariance, attribute.probabilities, n_reports, confidence, population)
        found = tuple(_anywhere(quantile, edges) for quantile in evenly)
    return Distribution(
        attribute=attribute.name,
        method=f"binned {method}",
        quantiles=found,
        edges=np.asarray(attribute.edges),
        frequency=histogram.frequency,
        standard_error=histogram.standard_error,
        n_reports=n_reports,
    )


def _anywhere(quantile: Quantile, edges: Floats) -> Quantile:
    """Whatever people's places inside their bins: reports tell the distribution at edges and nothing between them.

    So an end of the interval moves out to the edge of the bin that it falls into: the limits of F there need no
    assumption. The standard error is that of people spread evenly, and of a place anywhere in the bin beside it.
    """
    low = edges[max(int(np.searchsorted(edges, quantile.ci_low, side="left")) - 1, 0)]
    high = edges[min(int(np.searchsorted(edges, quantile.ci_high, side="right")), edges.size - 1)]
    place = int(np.clip(np.searchsorted(edges, quantile.quantile, side="right") - 1, 0, edges.size - 2))
    within = float(edges[place + 1] - edges[place]) / math.sqrt(12)
    error = math.hypot(quantile.standard_error, within)
    return replace(quantile, standard_error=error, ci_low=float(low), ci_high=float(high))


def even_quantiles(attribute: AttributePlan, shares: Floats) -> dict[tuple[str, float], float]:
    """Quantiles of users who are spread evenly inside these bins: for evaluations, in which shares are the truth.

    People's own quantiles lie in the same bins, and published intervals end at edges: they hold the one if they hold
    the other.
    """
    if not attribute.probabilities:
        return {}
    nothing = np.zeros((shares.size, shares.size))
    found = quantiles(attribute.edges, shares, nothing, attribute.probabilities)
    return {(attribute.name, quantile.probability): quantile.quantile for quantile in found}
