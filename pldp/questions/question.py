"""What a question is to the pipeline: the one interface that flows/ and tasks/ know of.

The questions of a release are frozen values in its plan. One holds everything that is decided before anybody is asked,
and answers for its kind at every stage of the way of the data:

    vault ──draw──▶ reports ──tally──▶ tallies ──combine──▶ estimates ──conclude──▶ tables ──gates──▶ published

A kind is a folder beside this file and one line in registry.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.privacy.exposure import Exposed
from pldp.proof.provable import Provable
from pldp.questions.gate import Gate
from pldp.questions.parts import Asked as Asked
from pldp.questions.parts import Evidence as Evidence
from pldp.questions.parts import Part as Part
from pldp.questions.parts import Predictions as Predictions
from pldp.questions.parts import Repeats as Repeats
from pldp.questions.parts import Rows as Rows
from pldp.questions.sending import Sending

Columns = Mapping[str, NDArray[Any]]
"""Rows by column. A column of lists comes as its values under its own name and its bounds under `offsets(name)`."""
ANSWER = "answer"
"""The method that questions with a single way to their estimates name."""


def offsets(name: str) -> str:
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
    def n_reports(self) -> int: ...

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


class Question(Sending, Provable):
    """Everything about one question that the pipeline needs to know, right of the trust boundary too."""

    kind: str
    unit: str = "user"
    """What the budget protects: a user, an item or an occurrence; different units are never added."""

    @property
    def name(self) -> str:
        """What tells it apart from the other questions of a release."""
        return self.kind

    @property
    def phases(self) -> int:
        """In how many parts people are asked, each after the reports of the one before it."""
        return 1

    @property
    @abstractmethod
    def granted(self) -> Fraction:
        """What the spec gives it of the budget of its unit."""

    @property
    @abstractmethod
    def worst_total(self) -> Fraction:
        """The most that anybody spends on it, whatever they choose."""

    def beside(self, total: Fraction | None) -> Self:
        """The same among questions of other kinds, whose budgets add up to `total` with its own."""
        return self

    @property
    def instead_of_recycling(self) -> str:
        """What else serves an analyst of a smaller clearance, as a sentence."""
        return "A release of its own with a smaller budget serves that analyst, and spends on top."

    @property
    def refusal(self) -> str | None:
        """Why it may be evaluated but not released, as a sentence without its full stop; None where it may."""
        return None

    @property
    @abstractmethod
    def cells(self) -> int:
        """What a person takes of a partition, in cells of a histogram: partitions are sized by it."""

    @abstractmethod
    def sheets(self) -> tuple[Sheet, ...]: ...

    @abstractmethod
    def draw(self, sheet: Sheet, rows: Columns, stream: Keystream, adapted: bytes | None) -> Columns:
        """The reports of the people in `rows`, one row each unless the kind says otherwise, as whole numbers."""

    @abstractmethod
    def tally(self, sheet: Sheet, reports: Columns) -> Any:
        """What the reports of one file add (a `Tally`); ValueError for those that no channel of the plan can make."""

    @abstractmethod
    def report_types(self, sheet: Sheet) -> dict[str, str]:
        """The columns of a sheet's files and their types: u1 … u8, i8, or `u8 × m` for a list of m numbers."""

    @abstractmethod
    def invalid(self, sheet: Sheet, reports: Columns) -> NDArray[np.intp]:
        """Rows that no answer can have led to: a client that sends them did not follow the plan."""

    @abstractmethod
    def people(self, rows: Mapping[str, int]) -> int:
        """How many people stand behind so many rows of each sheet."""

    def adapt(self, tallies: Tallies) -> bytes:
        """What the next phase is asked, from the reports of those before; public, and committed before any of it."""
        raise NotImplementedError(f"{self.kind} are asked in one phase")

    @property
    def methods(self) -> tuple[str, ...]:
        """How estimates are made, each in a task of its own; the first is the published answer."""
        return (ANSWER,)

    @abstractmethod
    def combine(self, method: str, tallies: Tallies, reports: Reports) -> Any:
        """Estimates by one method."""

    @abstractmethod
    def conclude(self, tallies: Tallies, estimates: Mapping[str, Any]) -> Any:
        """The question's result, from the estimates of every method."""

    @abstractmethod
    def tables(self, result: Any) -> dict[str, Rows]:
        """What is published, by the names of the declared tables."""

    @abstractmethod
    def budgets(self, result: Any | None) -> Rows:
        """Its rows of the table budgets; without a result (a plan) nobody has chosen yet."""

    @abstractmethod
    def gates(self, evidence: Evidence) -> tuple[Gate, ...]:
        """What must hold of the result before it is published."""

    @abstractmethod
    def spends(self) -> list[tuple[Fraction, Fraction]]:
        """Worst-case ratios of its channels, and the budgets that bound them."""

    @abstractmethod
    def statement(self, perturbed_by: str) -> Part:
        """Its part of the privacy statement; nothing in it depends on anybody's values."""

    def exposed(self) -> Iterable[Exposed]:
        """What its answers tell about columns of the table of people."""
        return ()

    @abstractmethod
    def predictions(self, spec: Any) -> Predictions:
        """What it will come to, from the assumptions of the spec that it was planned from: for `pldp plan`."""

    @abstractmethod
    def asked(self, spec: Any, adapted: bytes | None) -> Asked:
        """Its part of a collection plan, for clients; `adapted` is what the reports of the phase before led to."""

    @property
    def target(self) -> str:
        """What a target error is about, in words; empty where a target makes no sense."""
        return ""

    @property
    def instead_of_target(self) -> str:
        """What serves in place of a target error, where there is none."""
        return "compare the predicted errors of two budgets instead"

    @abstractmethod
    def typical_errors(self, users: int | None = None) -> dict[str, float]:
        """Predicted standard errors for which a target makes sense, as shares, by what they are of; else none."""

    def shares(self) -> Iterable[tuple[str, str]]:
        """Attributes and values whose shares a reference may give."""
        return ()

    def true_shares(self, people: Partitions) -> dict[tuple[str, str], float]:
        """For evaluations: those shares, without noise."""
        return {}

    @property
    def asks(self) -> bool:
        """Whether estimates go over all reports again (`Reports.ask`), so that the flow itself combines them."""
        return False

    @abstractmethod
    def truth(self, people: Partitions, result: Any) -> Any:
        """For evaluations: what the result would be without noise. It is the `truth` of the gates' evidence."""

    @abstractmethod
    def study(self, people: Partitions, truth: Any, result: Any, repeats: Repeats) -> dict[str, Rows]:
        """For evaluations: the result beside the truth, and errors over repetitions."""
