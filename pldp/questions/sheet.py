"""What the pipeline hands to a question: rows of the vault, files of reports, and what reports add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]
"""Rows by column. A column of lists comes as its values under its own name and its bounds under `offsets(name)`."""


def offsets(name: str) -> str:
    """The column of a list's bounds: row i has the values from its entry i to its entry i + 1."""
    return f"{name}:offsets"


@dataclass(frozen=True)
class Sheet:
    """Report files that look alike: one per partition, drawn once by one channel and never again.

    `choice` is the level or profile whose people it holds, at position `code` of the vault's column `choice_field`;
    None where everybody's reports lie together. Of a question asked in `phases`, it covers every so many partitions.
    """

    path: str
    """Folders below the release's reports, such as attribute=age/level=high."""
    fields: tuple[str, ...]
    """Columns of the vault that drawing reads."""
    labels: tuple[str, ...]
    """What the stream of a seeded evaluation is named after."""
    choice: str | None = None
    choice_field: str | None = None
    code: int | None = None
    phase: int = 0
    phases: int = 1
    beside: Sheet | None = None
    """Reports of the same people, committed before and repeated beside these, such as the one about a hidden level."""
    shuffled: bool = False
    """Whether a release commits each file in an order of its own, so that nobody links people of two sheets by the row
    (`shuffle`). An evaluation keeps the vault's order: it compares with the truth report by report."""

    def covers(self, partition: int) -> bool:
        return partition % self.phases == self.phase

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns of the vault behind a file of this sheet."""
        choice = () if self.choice_field is None else (self.choice_field,)
        return (*choice, *self.fields, *(() if self.beside is None else self.beside.needed))


class Tally(Protocol):
    """What reports add up to: whole numbers, so any split of the reports gives the same sum."""

    @property
    def n_reports(self) -> int:
        """How many reports it adds up."""

    def __add__(self, other: Any) -> Any: ...


Tallies = Mapping[str, Any]
"""The tally of every sheet, by its path."""


class Reports(Protocol):
    """The committed reports of a release, for estimates that read them again; nothing of the vault is behind it."""

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        """The sheet's files, one after the other, in the order of their partitions."""

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        """Σ over all files of `question.<method>(sheet, reports, arrays)`, spread over the runner's workers."""

    @property
    def adapted(self) -> bytes | None:
        """What later phases were asked, as it was committed before any of them was drawn; None of a single phase."""

    def generator(self, label: str) -> np.random.Generator:
        """For bootstraps, which simulate from what is published: it follows from the release, and is no secret."""

    @property
    def reference(self) -> Mapping[tuple[str, str], float] | None:
        """Shares by attribute and value that a method is measured against, where the spec names them."""


Partitions = Callable[[Sequence[str]], Iterator[Columns]]
"""Everybody's rows, these columns of them, partition by partition: for evaluations alone."""
