"""The exact aggregate sampler: support counts without perturbing anybody, for plans and repeated evaluations.

Never for a release: it starts from true counts.
"""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol

_DEALT = 0.02


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


def draw_cell(
    holders: int, sizes: Counts, repeats: int, rng: np.random.Generator, tilt: Floats | None = None
) -> Counts:
    """Holders of one value by level, (repeat, level), if holders prefer level τ by the factor `tilt`_τ, (level,).

    Without a tilt their number is exact and they are dealt out blindly. With one, few holders choose for themselves,
    each level at most full; where they are more than 2 %, everybody of a level holds the value with the level's share,
    so that their number varies a little: take the truth from what was drawn.
    """
    total = int(sizes.sum())
    if tilt is None:
        dealt: Counts = rng.multivariate_hypergeometric(sizes, holders, size=repeats)
        return dealt
    if holders > _DEALT * total:
        return np.asarray(rng.binomial(sizes, np.clip(holders / total * tilt, 0, 1), size=(repeats, sizes.size)))
    wanted = sizes * tilt / (sizes * tilt).sum()
    drawn = rng.multinomial(holders, wanted, size=repeats)
    kept = np.minimum(drawn, sizes)
    left = holders - kept.sum(axis=-1)
    for level, size in enumerate(sizes):
        more = np.minimum(left, size - kept[:, level])
        kept[:, level] += more
        left = left - more
    return np.asarray(kept)


def draw_cell_support(
    level_counts: Counts, sizes: Counts, protocols: tuple[PureProtocol, ...], rng: np.random.Generator
) -> Counts:
    """Support of one value by level, (repeat, level): exact for every pure protocol, two binomials each."""
    held, other = ([getattr(protocol, side) for protocol in protocols] for side in "pq")
    drawn: Counts = rng.binomial(level_counts, held) + rng.binomial(sizes - level_counts, other)
    return drawn
