"""Perturbing the aggregates of many users at once, and the exact budgets that this spends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import log_above
from pldp.channels.randomness import Keystream
from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.noise import (
    FIXED_BITS,
    TwoSidedGeometric,
    fixed_excess,
    fixed_product,
    fixed_to_ratio,
    noise_for,
)
from pldp.questions.aggregates.objectives import Floats

Laws = NDArray[np.int32]

_CELLS = 1 << 15  # users × attributes at a time; their 16-bit draws fill a part of the stream's buffer
_LOW_BITS = np.uint64(48)
_LOW = np.uint64((1 << 48) - 1)
LARGEST = 1 << 33
"""Of an aggregate, in grid units, so that sums over a thousand million users fit."""


@dataclass(frozen=True)
class Mechanism:
    """Noise for every profile and attribute of one provider: `ticks` (profile × attribute) as allocated."""

    catalogue: Catalogue
    ticks: Units

    @cached_property
    def _distinct(self) -> tuple[tuple[TwoSidedGeometric, ...], Laws]:
        spends, law = np.unique(self.ticks, return_inverse=True)
        return tuple(noise_for(int(spend)) for spend in spends), law.reshape(self.ticks.shape).astype(np.int32)

    @cached_property
    def _tables(self) -> tuple[tuple[_Coins, ...], _Coins, NDArray[np.uint8]]:
        """Coins of each digit, of the tails, and how many digits each law has; missing digits are never drawn."""
        laws = self._distinct[0]
        places = np.array([len(law.digits) for law in laws], dtype=np.uint8)
        digits = np.zeros((int(places.max(initial=0)), len(laws)), dtype=np.uint64)
        for column, law in enumerate(laws):
            digits[: len(law.digits), column] = law.digits
        tails = np.array([law.tail for law in laws], dtype=np.uint64)
        return tuple(_Coins(digit) for digit in digits), _Coins(tails), places

    def noise(self, profile: int) -> tuple[TwoSidedGeometric, ...]:
        laws, law = self._distinct
        return tuple(laws[index] for index in law[profile])

    @property
    def spends(self) -> Floats:
        """x of one grid unit, profile × attribute."""
        return self.ticks / 2.0**TICK_BITS

    @cached_property
    def variance(self) -> Floats:
        """Noise variance of one report, profile × attribute, in grid units squared."""
        laws, law = self._distinct
        return np.array([one.variance for one in laws])[law]

    @cached_property
    def mean_size(self) -> Floats:
        """E|noise| of one report, profile × attribute, in grid units."""
        laws, law = self._distinct
        return np.array([one.mean_size for one in laws])[law]

    @cached_property
    def _shifts(self) -> tuple[tuple[Fraction, ...], NDArray[np.intp]]:
        """Worst ratios of the distinct pairs of a law and what one item adds, and each cell's number among them."""
        laws, law = self._distinct
        most = np.broadcast_to(self.catalogue.sensitivity, law.shape)
        pairs, index = np.unique(np.stack([law, most], axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
        ratios = tuple(fixed_to_ratio(laws[one].shift_ratio(units)) for one, units in pairs.tolist())
        return ratios, index.reshape(law.shape)

    def attribute_ratios(self, profile: int) -> tuple[Fraction, ...]:
        """Worst ratio of each attribute's output when one item is added or removed: e^ε of the promise P2."""
        ratios, index = self._shifts
        return tuple(ratios[number] for number in index[profile])

    @cached_property
    def exact_epsilons(self) -> Floats:
        """Their logarithms, rounded up, profile × attribute."""
        ratios, index = self._shifts
        return np.array([log_above(ratio) for ratio in ratios])[index]

    def tightest(self, budgets: Sequence[Sequence[Fraction]]) -> list[tuple[Fraction, Fraction]]:
        """Every worst ratio with the least of the budgets (profile × attribute) that it has to keep."""
        ratios, index = self._shifts
        least: dict[int, Fraction] = {}
        for cells, row in zip(index.tolist(), budgets, strict=True):
            for number, budget in zip(cells, row, strict=True):
                least[number] = min(least.get(number, budget), budget)
        return [(ratios[number], budget) for number, budget in least.items()]

    @cached_property
    def overall_ratios(self) -> tuple[Fraction, ...]:
        """Worst ratio of all outputs together, over the catalogue's items: e^ε of the promise P1, profile by profile.

        Attributes have independent noise, so an item's ratio is the product over its attributes, and there is an output
        at which all of them are worst at once.
        """
        laws, law = self._distinct
        rows = self.catalogue.rows
        log = np.array([math.log1p(fixed_excess(one.fixed_ratio)) for one in laws])
        items = [[(int(column), int(row[column])) for column in np.flatnonzero(row)] for row in rows]
        powers: dict[tuple[int, int], int] = {}
        worst_ratios = []
        for numbers in law:
            # Only rows whose logarithm comes within 1e-9 of the largest can be the worst; a double errs by 1e-14.
            logs = rows @ log[numbers]
            worst = 0
            for item in np.flatnonzero(logs >= logs.max() * (1 - 1e-9)).tolist():
                product = 1 << FIXED_BITS
                for column, units in items[item]:
                    key = int(numbers[column]), units
                    if key not in powers:
                        powers[key] = laws[key[0]].shift_ratio(units)
                    product = fixed_product(product, powers[key])
                worst = max(worst, product)
            worst_ratios.append(fixed_to_ratio(worst))
        return tuple(worst_ratios)

    def perturb(self, aggregates: Units, profiles: NDArray[np.integer], stream: Keystream) -> Units:
        """Aggregates (user × attribute, grid units) with fresh noise; `profiles` says which profile a user has."""
        if aggregates.shape != (profiles.size, len(self.catalogue.attributes)):
            raise ValueError("aggregates must have one row a user and one column an attribute")
        if profiles.size and not (profiles.min() >= 0 and profiles.max() < len(self.ticks)):
            raise ValueError("a user's profile is not among the allocated ones")
        if aggregates.size and max(-int(aggregates.min()), int(aggregates.max())) > LARGEST:
            raise ValueError(f"an aggregate lies beyond ±{LARGEST} grid units; bound the counts of an item")
        reports = np.empty_like(aggregates, dtype=np.int64)
        size = max(1, _CELLS // max(aggregates.shape[1], 1))
        law = self._distinct[1]
        for start in range(0, profiles.size, size):
            part = slice(start, start + size)
            cells = law[profiles[part]]
            drawn = self._draw(cells.reshape(-1), stream)
            np.add(aggregates[part], drawn.reshape(cells.shape), out=reports[part])
        return reports

    def _draw(self, law: Laws, stream: Keystream) -> Units:
        """One noise a cell, by its law's number."""
        size = self._sizes(law, stream)
        signs = np.unpackbits(stream.words(-(-law.size // 64)).view(np.uint8), count=law.size).view(np.bool_)
        again = np.flatnonzero(signs & (size == 0))
        np.negative(size, out=size, where=signs)
        if again.size:
            size[again] = self._draw(law[again], stream)
        return size

    def _sizes(self, law: Laws, stream: Keystream) -> Units:
        digits, tails, places = self._tables
        n_digits = places.take(law)
        # Sorted by the number of digits, the cells that have one more are those from `first` on.
        order = np.argsort(n_digits, kind="stable")
        law = law[order]
        first = np.cumsum(np.bincount(n_digits, minlength=len(digits) + 1))
        size = np.zeros(law.size, dtype=np.int64)
        for place in range(len(digits) - 1, -1, -1):
            part = size[first[place] :]
            part <<= 1
            part += digits[place].toss(law[first[place] :], stream)
        # Q counts how often the tail's coin comes up before it fails.
        rising = np.flatnonzero(tails.toss(law, stream))
        while rising.size:
            size[rising] += np.left_shift(1, places[law[rising]].astype(np.int64))
            rising = rising[tails.toss(law[rising], stream)]
        out = np.empty_like(size)
        out[order] = size
        return out


class _Coins:
    """Coins of many laws: the one of law l comes up with probability exactly thresholds[l] / 2^64."""

    def __init__(self, thresholds: NDArray[np.uint64]) -> None:
        self._lead = (thresholds >> _LOW_BITS).astype(np.uint16)
        self._rest = thresholds & _LOW

    def toss(self, law: Laws, stream: Keystream) -> NDArray[np.bool_]:
        """16 random bits are compared with the threshold's leading ones; only ties, 1 in 65,536, need the other 48."""
        lead = self._lead.take(law, mode="clip")  # skips a check that perturb has made
        drawn = stream.words(-(-law.size // 4)).view(np.uint16)[: law.size]
        less: NDArray[np.bool_] = drawn < lead
        ties = np.flatnonzero(drawn == lead)
        if ties.size:
            less[ties] = stream.words(ties.size) >> np.uint64(16) < self._rest[law[ties]]
        return less
