"""How long intervals are going to be, rehearsed before any data, beside those of `sum`.

Tests that reach no further than those of `sum` may still make a longer interval together: those of neighbouring shares
see different estimates. So estimates are drawn at shares that might be true, with levels as far apart as Γ allows, and
the intervals of both are compared. The draws are always the same and know nothing of reports: tests that are chosen by
them are as valid as any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.characteristic import Channels
from pldp.estimate.ends import Table, invert_table
from pldp.estimate.guarded import Noise, worst_tilt
from pldp.estimate.law import FEW

LONGEST = 1.0125
"""How much longer than those of `sum` intervals may be on average, a person added to both; 1.02 is promised."""
_DRAWS, _FEW_DRAWS = 600, 100  # where few reports decide, and where all intervals are of about one length
_SEED = 17
_SOME = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12)
_MORE, _MOST = 16, (0.6, 0.75, 0.9, 0.97)


@dataclass(frozen=True)
class Rehearsal:
    """Which hypotheses are rehearsed, the estimates drawn there, (truth, side, draw, level), and how long the intervals
    of `sum` are, in people."""

    at: NDArray[np.intp]
    drawn: Floats
    plain: Floats
    hypotheses: int

    @classmethod
    def of(cls, plain: Table, n: Counts, noise: Noise, channels: Channels | None, gamma: float) -> Rehearsal:
        more = np.geomspace(_SOME[-1], max(plain.n / 2, _SOME[-1]), _MORE)
        truths = np.concatenate([_SOME, more, plain.n * np.array(_MOST)])
        at = np.unique(np.abs(plain.share[:, None] * plain.n - np.minimum(truths, plain.n)).argmin(axis=0))
        draws = _DRAWS if plain.exact else _FEW_DRAWS
        drawn = np.stack([_estimates(share, n, noise, channels, gamma, draws) for share in plain.share[at]])
        return cls(at, drawn, _lengths(plain, drawn), plain.share.size)

    def longer(self, table: Table) -> NDArray[np.bool_]:
        """At which hypotheses intervals are longer, (hypothesis,)."""
        over = np.zeros(self.hypotheses, dtype=np.bool_)
        over[self.at] = (_lengths(table, self.drawn) > LONGEST * self.plain).any(axis=-1)
        return over


def _lengths(table: Table, drawn: Floats) -> Floats:
    """Mean lengths in people, and one person more, (truth, side)."""
    ends = invert_table(table, drawn[..., None])
    return np.asarray((ends.high - ends.low).mean(axis=(-2, -1)) * table.n + 1)


def _estimates(share: float, n: Counts, noise: Noise, channels: Channels | None, gamma: float, draws: int) -> Floats:
    """Of the levels, (side, draw, level), the clearest ones having as many holders as Γ allows, or as few."""
    rng = np.random.default_rng(_SEED)
    at, sides = np.array([share]), []
    for side in (-1, 1):
        tilt = worst_tilt(side * noise.at(at), n / n.sum(), at, gamma)[:, 0]
        held = _holders(share, n, tilt, draws, rng)
        if channels is None:
            inside = held / n
            spread = (noise.other + (noise.held - noise.other) * inside) / n
            sides.append(inside + np.sqrt(spread) * rng.standard_normal(held.shape))
        else:
            support = rng.binomial(held, channels.p) + rng.binomial(n - held, channels.q)
            sides.append((support - n * channels.q) / (n * channels.gap))
    return np.stack(sides)


def _holders(share: float, n: Counts, tilt: Floats, draws: int, rng: np.random.Generator) -> Counts:
    """By level, (draw, level): few are dealt out one by one, else everybody of a level is drawn for themselves."""
    if share > FEW:
        return np.asarray(rng.binomial(n, np.clip(share * tilt, 0, 1), size=(draws, n.size)))
    where = n * tilt / (n * tilt).sum()
    return np.asarray(np.minimum(rng.multinomial(round(share * float(n.sum())), where, size=draws), n))
