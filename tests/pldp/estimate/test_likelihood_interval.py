"""The interval of `em` with public levels: the inverted test of the linear estimates, which holds its estimate too."""

from __future__ import annotations

import numpy as np
import pytest

from pldp.estimate.combine import estimate_levels
from pldp.estimate.ends import invert_table
from pldp.estimate.invert import hypothesis_table
from pldp.estimate.likelihood import maximum_likelihood, table_blocks
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.estimate.people import five_levels
from tests.pldp.world import zipf

REPEATS = 400


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 20), (1000, 3)])
def test_near_zero_it_covers_where_the_curvature_did_not(n: int, epsilon: int, seed: int) -> None:
    # 400 repetitions: 1.1 %; α = 1e-5 a cell is 4.7 %. The value of one person was covered 0.46 times at ε = 20.
    sizes, protocols = five_levels(7, epsilon, n)
    rng = np.random.default_rng(seed)
    counts = whole_counts(zipf(7), n)
    counts[0] += counts[5] + counts[6] - 1
    counts[5:] = (1, 0)
    truth = counts / n
    support = draw_support(draw_levels(counts, sizes, REPEATS, rng), protocols, rng)
    fits = [maximum_likelihood(table_blocks(protocols, one), protocols) for one in support]
    estimate = np.stack([fit.frequency for fit in fits])
    levels = estimate_levels(support, sizes, protocols)
    found = invert_table(hypothesis_table("oc+", sizes, protocols), levels.frequencies, estimate)
    assert np.all((found.low <= estimate) & (estimate <= found.high))
    covered = np.mean((found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high), axis=0)
    assert covered.min() > 0.95 - 4.3 * np.sqrt(0.95 * 0.05 / REPEATS)
    # The twin: 1.96 standard errors from the curvature at the maximum.
    wald = np.abs(estimate - truth) <= 1.96 * np.stack([fit.standard_error for fit in fits])
    if epsilon == 20:
        assert np.mean(wald, axis=0)[5] < 0.8
