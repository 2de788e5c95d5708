"""Holders and support of one value by level, drawn without people: what coverage of a single cell needs."""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol

_DEALT = 0.02


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
