"""Large universes: pad every set to one length, sample one item, report it through a frequency protocol.

Flipping every bit of 10,000 items splits a budget 10,000 times; one sampled item has it all. This is padding and
sampling (Wang et al. 2018, SVIM), and with candidate sets in place of items the same again for item sets (SVSM).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, exp_below
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.registry import PROTOCOLS
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import Search
from pldp.questions.items.transactions import Columns, Itemsets, check_sets

MOST_VALUES = 1 << 16
_BLOCK_WORDS = 1 << 8
_SHRINK = 0.9


@dataclass(frozen=True)
class SetSampling:
    """A set is padded with dummies to `length`, one of its members is drawn and reported through `protocol`.

    The protocol's values are the items, then `length` dummies: place i of a set with i items or fewer is dummy i. A set
    longer than `length` is not cut: each of its items is drawn with less than 1/length, so its support is understated.
    """

    n_items: int
    length: int
    protocol: PureProtocol

    def __post_init__(self) -> None:
        if self.n_items < 1 or self.length < 1:
            raise ValueError("sampling needs at least one declared item and a length of at least 1")
        if self.protocol.domain_size != self.n_items + self.length:
            raise ValueError("the protocol's values must be the items and as many dummies as the length")

    @classmethod
    def for_budget(
        cls, n_items: int, length: int, epsilon: Fraction, allowed: Iterable[str] = ("krr", "olh", "oue", "subset")
    ) -> Self:
        """The protocol of least noise at a rare item; k-RR with the larger budget that sampling allows it."""
        size = n_items + length
        if not 1 <= length < size <= MOST_VALUES:
            raise ValueError(f"itemsets.length must be ≥ 1 and items and length together at most {MOST_VALUES}")
        samplings = []
        for name in allowed:
            try:
                protocol = amplified_krr(size, length, epsilon) if name == KRR.name else None
                samplings.append(cls(n_items, length, protocol or PROTOCOLS[name].for_budget(size, epsilon)))
            except ValueError:
                continue  # no signal, or too many values for it
        if not samplings:
            raise ValueError(f"no protocol serves {n_items} items at a budget of {float(epsilon):g}; raise it")
        return min(samplings, key=lambda one: float(one.noise_variance(np.zeros(1))[0]))

    @property
    def worst_ratio(self) -> Fraction:
        """Over all pairs of sets. A k-RR report supports one value only, which any set has drawn with 1/length at most:
        its ratio lies between q and q + (p − q)/length. Other reports may support all of a set and none of another's,
        and gain nothing."""
        ratio = self.protocol.worst_ratio
        return 1 + (ratio - 1) / self.length if isinstance(self.protocol, KRR) else ratio

    def draw(self, offsets: NDArray[np.integer], items: NDArray[np.integer], stream: Keystream) -> Values:
        """One value a row, exactly uniform over its places; for `perturb` of the protocol."""
        # An item held twice would be drawn twice as often as the exact ratio allows for.
        sizes = check_sets(offsets, items, self.n_items, "keep")
        place = np.empty(sizes.size, dtype=np.int64)
        places = np.maximum(sizes, self.length)
        for bound in np.unique(places).tolist():
            group = np.flatnonzero(places == bound)
            place[group] = uniform_below(bound, group.size, stream)
        out = (self.n_items + place).astype(np.uint16)
        within = np.flatnonzero(place < sizes)
        out[within] = items[offsets[:-1][within] + place[within]]
        return out

    def perturb(self, offsets: NDArray[np.integer], items: NDArray[np.integer], stream: Keystream) -> Reports:
        return self.protocol.perturb(self.draw(offsets, items, stream), stream)

    def noise_variance(self, support: Floats) -> Floats:
        """Of one report's estimate, for items of this support in sets of at most `length`: the set is fixed, what is
        drawn of it is not. Pr[supported] is q + (p − q)/length for a set with the item, q for one without."""
        q, gap = self.protocol.q, self.protocol.gap / self.length
        p = q + gap
        return (support * p * (1 - p) + (1 - support) * q * (1 - q)) / gap**2

    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        """As `ItemChannels.expected_noise`: all sets are alike."""
        return np.full(len(items), float(self.noise_variance(np.array([support]))[0]))

    def short_rows(self, counts: Counts, n_rows: int) -> Floats:
        """Unbiased shares of rows of at most 0, 1, …, length − 1 items: dummy i stands in a row of at most i."""
        return self.length * self.protocol.estimate(counts, n_rows)[self.n_items :]

    def estimate(self, counts: Counts, n_rows: int) -> tuple[Floats, Floats]:
        """Supports of the items, unbiased for sets of at most `length`, and their standard errors."""
        if n_rows < 1:
            raise ValueError("there are no reports to estimate from")
        support = self.length * self.protocol.estimate(counts, n_rows)[: self.n_items]
        return support, np.sqrt(self.noise_variance(np.clip(support, 0, 1)) / n_rows)


def amplified_krr(size: int, length: int, epsilon: Fraction) -> KRR:
    """k-RR with worst ratio at most length · (e^ε − 1) + 1, which sampling 1 of `length` brings down to e^ε."""
    wanted = size * SCALE / (length * (exp_below(epsilon) - 1) + size)
    redraw = -(-wanted.numerator // wanted.denominator)
    if redraw >= SCALE:
        raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
    return KRR(size, redraw)


def likely_items(support: Floats, standard_error: Floats, most: int, search: Search) -> NDArray[np.int32]:
    """Phase one: the `most` best of the items that may be frequent, rising."""
    alive = np.flatnonzero(support + search.reach * standard_error >= search.minimum)
    best = alive[np.argsort(-support[alive], kind="stable")][:most]
    return np.sort(best).astype(np.int32)


def likely_sets(items: NDArray[np.int32], support: Floats, most: int, length: int) -> list[Itemsets]:
    """Candidate sets of 2 … `length` of these items, as SVSM guesses them: by the product of 0.9 f / max f.

    Independence is a guess that orders candidates and nothing else. Grown level by level from the best, since a product
    never exceeds that of a subset; returned by length, each in rising order.
    """
    score = np.zeros(int(items.max()) + 1) if items.size else np.zeros(1)
    supports = np.maximum(support[items], 0)
    score[items] = _SHRINK * supports / supports.max() if supports.size and supports.max() > 0 else 0
    level, value = items[:, None], score[items]
    levels, values = [], []
    for _ in range(length - 1):
        bigger = items[None, :] > level[:, -1:]
        rows, columns = np.nonzero(bigger)
        level = np.concatenate([level[rows], items[columns, None]], axis=1)
        value = value[rows] * score[items[columns]]
        best = np.sort(np.argsort(-value, kind="stable")[:most])
        level, value = level[best], value[best]
        levels.append(level)
        values.append(value)
    everything = np.concatenate(values) if values else np.empty(0)
    if everything.size > most:
        kept = np.zeros(everything.size, dtype=np.bool_)
        kept[np.argsort(-everything, kind="stable")[:most]] = True
        parts = np.split(kept, np.cumsum([value.size for value in values])[:-1])
        levels = [own_level[part] for own_level, part in zip(levels, parts, strict=True)]
    return [own_level for own_level in levels if len(own_level)]


def held_sets(columns: Columns, candidates: list[Itemsets]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which candidate sets each row holds, numbered in order, as offsets and numbers: the transactions of phase two."""
    sizes, held = [], []
    for first in range(0, columns.words.shape[1], _BLOCK_WORDS):
        block = columns.words[:, first : first + _BLOCK_WORDS]
        rows = min(columns.n_rows - 64 * first, 64 * block.shape[1])
        whole = np.concatenate([np.bitwise_and.reduce(block[level], axis=1) for level in candidates])
        bits = np.unpackbits(np.ascontiguousarray(whole).view(np.uint8), axis=1, bitorder="little")[:, :rows].T
        sizes.append(bits.sum(axis=1, dtype=np.int64))
        held.append(np.nonzero(bits)[1])
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]), np.concatenate(held)
