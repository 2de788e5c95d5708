"""The exact aggregate sampler: support counts without perturbing anybody, for plans and repeated evaluations.

Never for a release: it starts from true counts.
"""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol


def whole_counts(frequency: Floats, n_users: int) -> Counts:
    """Integer counts with this frequency (largest remainders), summing to n."""
    exact = np.asarray(frequency) / np.sum(frequency) * n_users
    counts: Counts = np.floor(exact).astype(np.int64)
    rest = n_users - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return counts


def draw_levels(counts: Counts, sizes: Counts, repeats: int, rng: np.random.Generator) -> Counts:
    """Who chose which level, if everybody chose blindly: (repeat, level, value), hypergeometric.

    Every repetition deals the same users out to levels of these sizes.
    """
    drawn = np.zeros((repeats, sizes.size, counts.size), dtype=np.int64)
    left = np.broadcast_to(counts, (repeats, counts.size)).copy()
    for level, size in enumerate(sizes[:-1]):
        wanted = np.full(repeats, size)
        behind = left.sum(axis=-1)
        for value in range(counts.size):
            behind = behind - left[:, value]
            holders = left[:, value]
            # NumPy refuses an empty urn; the last value takes whatever is still wanted.
            taken = rng.hypergeometric(holders, np.maximum(behind, 1), np.minimum(wanted, holders + behind))
            taken = np.where(behind == 0, wanted, taken)
            drawn[:, level, value] = taken
            wanted = wanted - taken
        left -= drawn[:, level]
    drawn[:, -1] = left
    return drawn


def draw_support(level_counts: Counts, protocols: tuple[PureProtocol, ...], rng: np.random.Generator) -> Counts:
    """Support of every level, (…, level, value), from its exact distribution."""
    return np.stack(
        [protocol.sample_support(level_counts[..., level, :], rng) for level, protocol in enumerate(protocols)],
        axis=-2,
    )
