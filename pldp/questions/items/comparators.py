"""What aprr compares itself with, for evaluations: MASK (one probability) and GR-PPFM (one for each group of users)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.channels.randomness import Keystream
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import Floats
from pldp.questions.items.transactions import Columns

MASK_KEEP = Fraction(84, 100)
GROUP_KEEPS = tuple(Fraction(p, 10) for p in (10, 9, 8, 7, 6))


def threshold(keep: Fraction) -> int:
    """To the nearest of 2^64 steps: these methods make no promise to keep."""
    return round(keep * SCALE)


def mask(n_items: int, keep: Fraction = MASK_KEEP) -> ItemChannels:
    """MASK (Rizvi & Haritsa 2002): every bit of every item kept with the same probability."""
    return ItemChannels.symmetric((threshold(keep),) * n_items)


@dataclass(frozen=True)
class Grouped:
    """GR-PPFM (Guo et al. 2021): a user belongs to a group g by lot, with share ρ_g, and keeps every bit with p_g.

    The collector knows p and ρ and not who is in which group, so an item set's channel is the mixture
    Σ_g ρ_g P_g ⊗ ⋯ ⊗ P_g and no Kronecker product. Its factors are symmetric: all have the Walsh functions for
    eigenvectors, the mixture too, with eigenvalue λ_s = Σ_g ρ_g (2 p_g − 1)^s on a product of s signs.
    """

    n_items: int
    keeps: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.keeps) != len(self.shares) or sum(self.shares) != 1 or min(self.shares) < 0:
            raise ValueError("shares must be one for each group, ≥ 0, and sum to one")
        if not all(SCALE // 2 <= keep <= SCALE for keep in self.keeps) or self.eigenvalues(1)[1] <= 0:
            raise ValueError("the channel is singular (p = 1/2), or keeps lie outside 2^63 … 2^64")

    @classmethod
    def of(cls, n_items: int, shares: Sequence[Fraction], keeps: Sequence[Fraction] = GROUP_KEEPS) -> Self:
        return cls(n_items, tuple(threshold(keep) for keep in keeps), tuple(shares))

    def eigenvalues(self, length: int) -> Floats:
        """λ_0 … λ_length."""
        slopes = [Fraction(2 * keep - SCALE, SCALE) for keep in self.keeps]
        return np.array(
            [
                float(sum(share * slope**s for share, slope in zip(self.shares, slopes, strict=True)))
                for s in range(length + 1)
            ]
        )

    def responses(self, items: NDArray[np.integer], within: int | None = None) -> Floats:
        """As `ItemChannels.responses`.

        With signs s = 1 − 2y, all items being there is 2^-m Σ_T (−1)^|T| Π_T s, and a product over T shrinks by λ_|T|.
        By the number t of ones in a pattern this is 2^-m Σ_s (−1)^s K_s(t) / λ_s with Krawtchouk's K_s.
        """
        sets, m = items.shape
        chosen = (1 << m) - 1 if within is None else within
        wanted = chosen.bit_count()
        table, eigenvalues = _krawtchouk(wanted), self.eigenvalues(wanted)
        by_ones = ((-1.0) ** np.arange(wanted + 1) / eigenvalues) @ table / 2**wanted
        ones = np.bitwise_count(np.arange(1 << m) & chosen)
        return np.broadcast_to(by_ones[ones], (sets, 1 << m))

    def perturb(self, columns: Columns, stream: Keystream, rng: np.random.Generator) -> Columns:
        """Lots by `rng`: an evaluation's, never a release's. Nobody keeps who is in which group."""
        group = rng.choice(len(self.keeps), columns.n_rows, p=self._lots)
        out = np.zeros_like(columns.words)
        for number, keep in enumerate(self.keeps):
            member = Columns.of_table((group == number)[:, None]).words[0]
            channel = ItemChannels.symmetric((keep,) * self.n_items)
            out |= channel.perturb(columns, stream).words & member
        return Columns(out, columns.n_rows)

    @cached_property
    def _lots(self) -> Floats:
        return np.array([float(share) for share in self.shares])


def _krawtchouk(m: int) -> Floats:
    """K_s(t) = Σ_i (−1)^i C(t, i) C(m − t, s − i), (s, t): the sum of all products of s signs, t of which are −1."""
    return np.array(
        [
            [sum((-1) ** i * comb(t, i) * comb(m - t, s - i) for i in range(s + 1)) for t in range(m + 1)]
            for s in range(m + 1)
        ],
        dtype=np.float64,
    )
