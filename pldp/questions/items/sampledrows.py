"""Rows of items that are sampled: one of their places goes through a frequency protocol, the others are not told."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts
from pldp.channels.randomness import Keystream
from pldp.channels.registry import PROTOCOLS
from pldp.channels.words import from_words, stray_bits, to_words, word_types
from pldp.estimate.honest import collision
from pldp.questions.items.levels import Floats
from pldp.questions.items.rowchannels import Candidates, LevelSingles, RowChannel
from pldp.questions.items.sampling import SetSampling, held_sets
from pldp.questions.items.transactions import Transactions
from pldp.questions.question import Columns
from pldp.spec.fields import Frozen


class Phase(Frozen):
    """One of `length` places of a row, reported through a frequency protocol."""

    n_values: int
    length: int
    mechanism: str
    parameters: dict[str, int]

    @cached_property
    def sampling(self) -> SetSampling:
        return SetSampling(self.n_values, self.length, PROTOCOLS[self.mechanism](**self.parameters))


class Sampled(RowChannel):
    """Half of the users report an item, the other half a candidate set; all of them, where only items are wanted."""

    kind: Literal["sampled"] = "sampled"
    items: Phase
    sets: Phase | None

    @property
    def asked(self) -> tuple[Phase, ...]:
        """By phase."""
        return (self.items,) if self.sets is None else (self.items, self.sets)

    @property
    def phases(self) -> int:
        return len(self.asked)

    @property
    def worst_ratio(self) -> Fraction | None:
        """A user is in one phase."""
        return max(phase.sampling.worst_ratio for phase in self.asked)

    @property
    def mechanism(self) -> str:
        return "sampled " + ", ".join(dict.fromkeys(phase.mechanism for phase in self.asked))

    @property
    def item_ratios(self) -> None:
        return None

    def draw(self, rows: Transactions, phase: int, candidates: Candidates, stream: Keystream) -> Columns:
        sampling = self.asked[phase].sampling
        if not rows.n_users:
            return to_words(np.empty((0, sampling.protocol.report_bytes), dtype=np.uint8))
        if phase:
            rows = self.held(rows, candidates)
        return to_words(sampling.perturb(rows.offsets, rows.items, stream))

    def held(self, rows: Transactions, candidates: Candidates) -> Transactions:
        """Which candidate sets each user holds: what the second half is asked about."""
        if not candidates or not rows.n_users:
            return Transactions(np.zeros(rows.n_users + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
        return Transactions(*held_sets(rows.columns(self.items.n_values), list(candidates)))

    def support(self, reports: Columns, phase: int) -> Counts:
        protocol = self.asked[phase].sampling.protocol
        rows = from_words(reports, protocol.report_bytes)
        wrong = np.union1d(protocol.invalid(rows), stray_bits(reports, protocol.report_bytes))
        if wrong.size:
            raise ValueError(f"row {wrong[0]} of the reports is none that {protocol.name} can make")
        return protocol.support(rows)

    def singles(self, counts: Counts, n: int) -> LevelSingles:
        sampling, n_items = self.items.sampling, self.items.n_values
        support, _ = sampling.estimate(counts, n)
        noise = float(sampling.noise_variance(np.array([0.0, 1.0])).max())
        return support, np.full(n_items, noise), np.full(n_items, self.largest(1))

    def item_noise(self, support: float) -> Floats:
        return np.full(self.items.n_values, self.items.sampling.noise_variance(np.array([support]))[0])

    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        return self._of_length(items.shape[1]).sampling.expected_noise(items, support)

    def most(self, items: NDArray[np.integer]) -> Floats:
        sampling = self._of_length(items.shape[1]).sampling
        return np.full(len(items), sampling.length * (1 - sampling.protocol.q) / sampling.protocol.gap)

    def largest(self, length: int) -> float:
        sampling = self._of_length(length).sampling
        return sampling.length / sampling.protocol.gap

    def _of_length(self, length: int) -> Phase:
        return self.items if length == 1 or self.sets is None else self.sets

    def report_types(self, phase: int) -> dict[str, str]:
        return word_types(self.asked[phase].sampling.protocol.report_bytes)

    def invalid(self, reports: Columns, phase: int) -> NDArray[np.intp]:
        protocol = self.asked[phase].sampling.protocol
        rows = from_words(reports, protocol.report_bytes)
        return np.union1d(protocol.invalid(rows), stray_bits(reports, protocol.report_bytes)).astype(np.intp)

    def collision(self, phase: int) -> float:
        return collision(self.asked[phase].sampling.protocol)
