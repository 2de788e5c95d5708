"""Numbers cut into bins: from the histogram of the frequency protocols to quantiles with their errors.

Nothing here is particular to a protocol or to how levels were combined: quantiles need an estimate that is unbiased, or
as nearly so as `em`, and the covariance of its cells. Post-processing is left out, because its bias would add up
over the bins below a quantile.
"""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.inference import Histogram
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.numbers.estimate import Distribution, with_errors
from pldp.questions.numbers.quantiles import Quantile, quantiles

_BEHIND = {"op": "oc+", "op-exact": "oc+", "emoa-paper": "auem"}
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
        found = with_errors(
            np.asarray(attribute.edges), share, covariance, attribute.probabilities, n_reports, confidence, population
        )
    return Distribution(
        attribute=attribute.name,
        method=f"binned {method}",
        quantiles=found,
        edges=np.asarray(attribute.edges),
        frequency=histogram.frequency,
        standard_error=histogram.standard_error,
        n_reports=n_reports,
    )


def even_quantiles(attribute: AttributePlan, shares: Floats) -> dict[tuple[str, float], float]:
    """Quantiles of users who are spread evenly inside these bins: for evaluations, in which shares are the truth."""
    if not attribute.probabilities:
        return {}
    nothing = np.zeros((shares.size, shares.size))
    found = quantiles(attribute.edges, shares, nothing, attribute.probabilities)
    return {(attribute.name, quantile.probability): quantile.quantile for quantile in found}
