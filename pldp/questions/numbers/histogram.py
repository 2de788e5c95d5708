"""Histograms of a numeric attribute from square-wave reports, by expectation maximisation (Li et al., SIGMOD 2020).

Inputs are cut into B equal bins (a power of two), outputs into buckets of the same width. The channel from bin to
bucket is that of the realised integers, values inside a bin spread evenly. Reports of several classes (budgets) enter
one likelihood, each through its own channel. Counts per class and bucket suffice and add up over partitions.

The likelihood's maximum is spiky, but its quantiles are nearly unbiased and their intervals cover. Smoothing it after
every step is closer to a smooth truth bin by bin, but biased in a way that no bootstrap around the estimate can see, so
its errors are too small wherever the truth is not smooth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Bounds, Floats
from pldp.channels.numeric.mechanism import Reports
from pldp.channels.numeric.window import Window
from pldp.estimate.simulate import draw_levels, whole_counts

Counts = NDArray[np.int64]

REPEATS = 200
_STEPS = 2000
_GAIN = 1e-3
"""EM stops when a step raises the log-likelihood by less than this."""


@dataclass(frozen=True)
class Histogram:
    """Shares of the bins, and their mean squared error matrix over a bootstrap (bias included)."""

    edges: Floats
    frequency: Floats
    covariance: Floats
    n_reports: int

    @property
    def standard_error(self) -> Floats:
        return np.sqrt(np.diag(self.covariance))


def bin_edges(bounds: Bounds, bins: int) -> Floats:
    """The ends of equally wide bins between the declared bounds: one more than there are bins."""
    return np.linspace(bounds.lower, bounds.upper, bins + 1)


def bucket_width(mechanism: Window, bins: int) -> int:
    """How many steps of the mechanism's grid a bin has; ValueError where they are no whole number."""
    if bins < 2 or mechanism.steps % bins:
        raise ValueError(f"the number of bins must be a power of two from 2 to {mechanism.steps} (got {bins})")
    return mechanism.steps // bins


def bucket_counts(mechanism: Window, reports: Reports, bins: int) -> Counts:
    """How many reports fall into each bucket; additive over any split of the reports."""
    width = bucket_width(mechanism, bins)
    buckets = -(-mechanism.cells // width)
    return np.bincount(reports // reports.dtype.type(width), minlength=buckets).astype(np.int64)


def coarser(counts: Counts, factor: int) -> Counts:
    """Buckets that are so many times as wide."""
    whole = np.pad(counts, (0, -counts.size % factor))
    return np.asarray(whole.reshape(-1, factor).sum(axis=1))


def channel(mechanism: Window, bins: int) -> Floats:
    """Pr[bucket | bin], one column a bin; columns sum to one."""
    width = bucket_width(mechanism, bins)
    edges = np.minimum(np.arange(0, mechanism.cells + width, width), mechanism.cells).astype(np.float64)
    # Random rounding of evenly spread values gives the ends of a bin half the weight of its inner points.
    inner = np.arange(width + 1, dtype=np.float64)
    weight = np.where((inner == 0) | (inner == width), 0.5, 1.0) / width
    columns = [
        (mechanism.below(edges[:, None], inner[None, :] + float(width * i)) * weight).sum(axis=1) for i in range(bins)
    ]
    return np.diff(np.stack(columns, axis=1), axis=0)


def maximise(channels: Floats, counts: Floats) -> Floats:
    """EM from the uniform histogram; `channels` stacks all classes' buckets, `counts` may have leading repetitions."""
    bins = channels.shape[1]
    flat = counts.reshape(-1, counts.shape[-1]).astype(np.float64)
    shares = np.full((len(flat), bins), 1 / bins)
    before = np.full(len(flat), -np.inf)
    open_ = np.arange(len(flat))
    for _ in range(_STEPS):
        now = shares[open_]
        expected = now @ channels.T
        likelihood = (flat[open_] * np.log(expected)).sum(axis=1)
        going = likelihood - before[open_] >= _GAIN
        before[open_] = likelihood
        # The first step starts from minus infinity; afterwards a repetition that gains too little is done.
        open_, now, expected = open_[going], now[going], expected[going]
        if not open_.size:
            break
        now = now * ((flat[open_] / expected) @ channels)
        shares[open_] = now / now.sum(axis=1, keepdims=True)
    return shares.reshape(*counts.shape[:-1], bins)


def estimate_histogram(
    mechanisms: Sequence[Window],
    counts: Sequence[Counts],
    n_users: int,
    bounds: Bounds,
    bins: int,
    rng: np.random.Generator,
    repeats: int = REPEATS,
) -> Histogram:
    """Shares of the n users per bin, from each class's bucket counts.

    The bootstrap takes the estimate for the truth of the n users, draws who reports in each class without replacement,
    then their reports, and estimates again. Its mean squared error includes the bias of stopping early.
    """
    channels = [channel(mechanism, bins) for mechanism in mechanisms]
    stacked = np.concatenate(channels)
    shares = maximise(stacked, np.concatenate(counts).astype(np.float64))
    people = whole_counts(shares, n_users)
    sizes = np.array([int(seen.sum()) for seen in counts])
    # The last group is everybody who did not report.
    dealt = draw_levels(people, np.append(sizes, n_users - sizes.sum()), repeats, rng)
    drawn = []
    for i, table in enumerate(channels):
        law = np.clip(table, 0, None).T
        drawn.append(rng.multinomial(dealt[:, i], law / law.sum(axis=1, keepdims=True)).sum(axis=1))
    away = maximise(stacked, np.concatenate(drawn, axis=1).astype(np.float64)) - people / n_users
    return Histogram(bin_edges(bounds, bins), shares, away.T @ away / repeats, int(sizes.sum()))
