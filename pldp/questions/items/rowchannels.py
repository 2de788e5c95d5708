"""How a user's whole row of items becomes one report, and what reports tell of it.

    Bits       one perturbed bit per item
    OneValue   the one value that everybody has, kept or drawn anew
    Sampled    one of the places of a row, through a frequency protocol; half of the users one of the candidate sets
               (sampledrows.py)

A channel is a frozen value of whole numbers, the same for everybody of a level. Its reports are columns of whole
numbers; `support` adds up over any split of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.channels.protocol import Counts
from pldp.channels.randomness import Keystream
from pldp.channels.words import REPORT, from_words, stray_bits, to_words, word_types
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import Floats
from pldp.questions.items.reconstruct import noise_covariance
from pldp.questions.items.transactions import Columns as BitColumns
from pldp.questions.items.transactions import Itemsets, Transactions
from pldp.questions.items.values import ValueChannel
from pldp.questions.question import Columns
from pldp.spec.fields import Frozen

Candidates = Sequence[Itemsets]
"""Sets that the second half of a sampled release is asked about, by length; none where nothing seemed frequent."""
LevelSingles = tuple[Floats, Floats, Floats]
"""By item: the support that one level's reports estimate, the most that the noise of one report can be, and the most
that one report can be away from its mean, both whatever the user holds."""


class RowChannel(Frozen):
    kind: str

    @property
    def phases(self) -> int:
        """How many parts of the users are asked different things."""
        return 1

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction | None:
        """max over reports and pairs of rows: e to the exact ε of a whole row; None if infinite."""

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """What it is called in tables and on pages."""

    @property
    @abstractmethod
    def item_ratios(self) -> tuple[Fraction | None, ...] | None:
        """The same for each item alone; None where a report is about the whole row and no item has an ε of its own."""

    @abstractmethod
    def draw(self, rows: Transactions, phase: int, candidates: Candidates, stream: Keystream) -> Columns:
        """One report per user."""

    @abstractmethod
    def support(self, reports: Columns, phase: int) -> Counts:
        """How many reports support each item (value, candidate set, dummy); ValueError for impossible reports."""

    @abstractmethod
    def report_types(self, phase: int) -> dict[str, str]:
        """The columns of its reports and their types."""

    @abstractmethod
    def invalid(self, reports: Columns, phase: int) -> NDArray[np.intp]:
        """Rows that no row of items can have led to."""

    @abstractmethod
    def collision(self, phase: int) -> float:
        """Bound on the chance that two honest reports are equal."""

    @abstractmethod
    def singles(self, counts: Counts, n: int) -> LevelSingles:
        """What n reports with this support of the first phase tell of every item."""

    @abstractmethod
    def item_noise(self, support: float) -> Floats:
        """Noise of one report's estimate of each item, if so many hold it."""

    @abstractmethod
    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        """Noise of one report's estimate of each set, if so many hold it whole and nobody else any of its items."""

    @abstractmethod
    def most(self, items: NDArray[np.integer]) -> Floats:
        """The most that one report adds to the estimated support of each set, times n."""

    @abstractmethod
    def largest(self, length: int) -> float:
        """The most that one report can move an estimate of the support of sets of this length, before dividing by n."""


class Bits(RowChannel):
    """One bit per item: kept with keep_zero / 2^64 where the user has none, keep_one / 2^64 where the user has it."""

    kind: Literal["bits"] = "bits"
    keep_zero: tuple[int, ...]
    keep_one: tuple[int, ...]

    @cached_property
    def kernel(self) -> ItemChannels:
        return ItemChannels(self.keep_zero, self.keep_one)

    @cached_property
    def worst_ratio(self) -> Fraction | None:
        return self.kernel.row_ratio()

    @property
    def mechanism(self) -> str:
        return "bits"

    @property
    def item_ratios(self) -> tuple[Fraction | None, ...]:
        return self.kernel.ratios

    @property
    def report_bytes(self) -> int:
        return -(-len(self.keep_zero) // 8)

    def draw(self, rows: Transactions, phase: int, candidates: Candidates, stream: Keystream) -> Columns:
        if not rows.n_users:
            return to_words(np.empty((0, self.report_bytes), dtype=np.uint8))
        return to_words(self.kernel.perturb(rows.columns(len(self.keep_zero)), stream).reports())

    def packed(self, reports: Columns) -> BitColumns:
        """Reports as columns of bits, by item; ValueError for bits that stand for no item."""
        n_items = len(self.keep_zero)
        rows = from_words(reports, self.report_bytes)
        beyond = rows[:, -1] >> (n_items % 8) if n_items % 8 else np.zeros(len(rows), dtype=np.uint8)
        stray = np.union1d(np.flatnonzero(beyond), stray_bits(reports, self.report_bytes))
        if stray.size:
            raise ValueError(f"row {stray[0]} of the reports has bits beyond the {n_items} declared items")
        return BitColumns.of_reports(rows, n_items)

    def support(self, reports: Columns, phase: int) -> Counts:
        return self.packed(reports).count(np.arange(len(self.keep_zero), dtype=np.int32)[:, None])

    def singles(self, counts: Counts, n: int) -> LevelSingles:
        q, gap = self.kernel.false_one, self.kernel.gap
        p = q + gap
        return (counts / n - q) / gap, np.maximum(q * (1 - q), p * (1 - p)) / gap**2, 1 / gap

    def item_noise(self, support: float) -> Floats:
        return self.expected_noise(np.arange(len(self.keep_zero), dtype=np.int32)[:, None], support)

    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        return self.kernel.expected_noise(items, support)

    def most(self, items: NDArray[np.integer]) -> Floats:
        return np.asarray(self.kernel.responses(items).max(axis=1))

    def largest(self, length: int) -> float:
        return float(np.prod(np.sort(1 / self.kernel.gap)[-length:]))

    def report_types(self, phase: int) -> dict[str, str]:
        return word_types(self.report_bytes)

    def invalid(self, reports: Columns, phase: int) -> NDArray[np.intp]:
        unused = np.unpackbits(from_words(reports, self.report_bytes)[:, -1:], axis=1, bitorder="little")
        beyond = unused[:, (len(self.keep_zero) - 1) % 8 + 1 :].any(axis=1)
        return np.union1d(np.flatnonzero(beyond), stray_bits(reports, self.report_bytes))

    def collision(self, phase: int) -> float:
        """Bits are independent, and two are equal most often where one is most certain."""
        chances = [max(zero, one) / SCALE for zero, one in zip(self.keep_zero, self.keep_one, strict=True)]
        return float(np.prod([chance**2 + (1 - chance) ** 2 for chance in chances]))


class OneValue(RowChannel):
    """A single value: drawn anew with redraw / 2^64, in proportion to mass."""

    kind: Literal["value"] = "value"
    redraw: tuple[int, ...]
    mass: tuple[int, ...]

    @cached_property
    def kernel(self) -> ValueChannel:
        return ValueChannel(self.redraw, self.mass)

    @property
    def worst_ratio(self) -> Fraction | None:
        return self.kernel.worst_ratio

    @property
    def mechanism(self) -> str:
        return "value"

    @property
    def item_ratios(self) -> tuple[Fraction | None, ...]:
        return self.kernel.value_ratios

    def draw(self, rows: Transactions, phase: int, candidates: Candidates, stream: Keystream) -> Columns:
        if (np.diff(rows.offsets) != 1).any():
            raise ValueError("the vault holds a user without exactly one value")
        return {REPORT: self.kernel.perturb(rows.items.astype(np.uint16), stream)}

    def support(self, reports: Columns, phase: int) -> Counts:
        values = reports[REPORT]
        beyond = np.flatnonzero(values >= len(self.redraw))
        if beyond.size:
            raise ValueError(f"row {beyond[0]} of the reports tells none of the {len(self.redraw)} declared values")
        return self.kernel.support(values.astype(np.uint16, copy=False))

    def singles(self, counts: Counts, n: int) -> LevelSingles:
        inverse = self.kernel.inverse
        noise = (np.square(inverse) @ self.kernel.matrix.T - np.eye(len(self.redraw))).max(axis=1)
        return inverse @ (counts / n), np.maximum(noise, 0), np.abs(inverse).max(axis=1) + 1

    def item_noise(self, support: float) -> Floats:
        """Of equal shares of all values: shares of all sum to one, so they cannot all be the minimum support."""
        even = np.full(len(self.redraw), 1 / len(self.redraw))
        return np.diag(noise_covariance(self.kernel.inverse, self.kernel.matrix, even)).copy()

    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        return self.item_noise(support)[items[:, 0]]

    def most(self, items: NDArray[np.integer]) -> Floats:
        return np.asarray(self.kernel.inverse.max(axis=1)[items[:, 0]])

    def largest(self, length: int) -> float:
        return float(np.abs(self.kernel.inverse).max()) + 1

    def report_types(self, phase: int) -> dict[str, str]:
        return {REPORT: "u2"}

    def invalid(self, reports: Columns, phase: int) -> NDArray[np.intp]:
        return np.flatnonzero(reports[REPORT] >= len(self.redraw))

    def collision(self, phase: int) -> float:
        return float(np.square(self.kernel.matrix).sum(axis=1).max())
