"""What a question is to the pipeline: the one interface that flows/ and tasks/ know of.

The questions of a release are frozen values in its plan. One holds everything that is decided before anybody is asked,
and answers for its kind at every stage of the way of the data:

    vault ──draw──▶ reports ──tally──▶ tallies ──combine──▶ estimates ──conclude──▶ tables ──gates──▶ published

A kind is a folder beside this file and a line each in registry.py and entries.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.privacy.exposure import Exposed
from pldp.proof.compared import Compared
from pldp.proof.trial import Trial
from pldp.questions.gate import Gate
from pldp.questions.parts import Asked as Asked
from pldp.questions.parts import Evidence as Evidence
from pldp.questions.parts import Part as Part
from pldp.questions.parts import Predictions as Predictions
from pldp.questions.parts import Repeats as Repeats
from pldp.questions.parts import Rows as Rows
from pldp.questions.sending import Sending
from pldp.questions.sheet import Columns as Columns
from pldp.questions.sheet import Partitions as Partitions
from pldp.questions.sheet import Reports as Reports
from pldp.questions.sheet import Sheet as Sheet
from pldp.questions.sheet import Tallies as Tallies
from pldp.questions.sheet import Tally as Tally
from pldp.questions.sheet import offsets as offsets

ANSWER = "answer"
"""The method that questions with a single way to their estimates name."""


class Question(Sending):
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
    def sheets(self) -> tuple[Sheet, ...]:
        """Its files of reports: by choice where each has a channel of its own, else everybody's together."""

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

    @property
    def not_dealt(self) -> str | None:
        """For evaluations: why levels cannot be dealt by what people hold, as a sentence; None where they can."""
        return None if len(set(self.budgets(None)["level"])) > 1 else "everybody has the same level"

    @abstractmethod
    def truth(self, people: Partitions, result: Any) -> Any:
        """For evaluations: what the result would be without noise. It is the `truth` of the gates' evidence."""

    @abstractmethod
    def study(self, people: Partitions, truth: Any, result: Any, repeats: Repeats) -> dict[str, Rows]:
        """For evaluations: the result beside the truth, and errors over repetitions."""

    # Three ways to show that estimates are unbiased which cost nobody any privacy: a release's proof of itself.

    @abstractmethod
    def recomputed(self) -> Iterable[Compared]:
        """Every channel's probabilities against those that its ε gives by other code than the plan's."""

    @abstractmethod
    def recovered(self) -> Iterable[Compared]:
        """Expected tallies of a made-up population through estimators, combinations and tables, against its truth."""

    @abstractmethod
    def rehearsed(self, stream: Keystream, cells: int) -> Iterable[Trial]:
        """Made-up people through `draw` and `tally`; `cells` bounds what all of them may take."""
