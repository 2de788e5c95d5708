"""What a question knows of reports that clients send: the part of its interface that only they need."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.estimate.suspect import most_repeats, repeat_tail
from pldp.questions.doubts import REPEATS, Doubt
from pldp.questions.parts import Evidence, Rows
from pldp.questions.rows import without
from pldp.spec.fields import Frozen

if TYPE_CHECKING:
    from pldp.questions.sheet import Columns, Sheet


class Sending(Frozen):
    """The plan's side of what clients send: what honest reports can look like, and what speaks against them."""

    parted: ClassVar[str] = ""
    """The field whose parts are estimated each on its own, so that one may be left out; none of a whole question."""

    @abstractmethod
    def sheets(self) -> tuple[Sheet, ...]:
        """Its files of reports, as the pipeline names them (`Question.sheets`)."""

    @abstractmethod
    def collision(self, sheet: Sheet) -> float:
        """Bound on the chance that two honest reports of a sheet are equal."""

    def likeliest(self, sheet: Sheet) -> float:
        """Bound on the probability of the likeliest honest report of a sheet, of those that are `rare`; 1 is none."""
        return 1.0

    def rare(self, sheet: Sheet, reports: Columns) -> Columns:
        """Those of the reports that hardly ever repeat by chance: repeats of the others tell nothing."""
        return reports

    def subject(self, sheet: Sheet) -> str:
        """What the reports of a sheet are about, as doubts name it."""
        return sheet.labels[0]

    @property
    def several_rows(self) -> bool:
        """Whether a person sends several rows of a sheet, so that a file of them is taken whole or not at all."""
        return False

    def whole(self, sheet: Sheet, tally: Any) -> bool:
        """Whether a file with this tally holds the reports of whole people."""
        return True

    def report_weights(self, sheet: Sheet, reports: Columns) -> NDArray[np.int64]:
        """How many reports support 0, 1, 2 … values, additive; empty where that tells nothing about honesty."""
        return np.empty(0, dtype=np.int64)

    @property
    def subjects(self) -> tuple[str, ...]:
        """All that doubts can be about."""
        return tuple(dict.fromkeys(self.subject(sheet) for sheet in self.sheets()))

    def answered(self, sheets: Collection[str]) -> Self | None:
        """The question as far as anybody answered it, given the paths of sheets with reports; None: nobody did."""
        there = {self.subject(sheet) for sheet in self.sheets() if sheet.path in sheets}
        if not there or not self.parted or there.issuperset(self.subjects):
            return self if there else None
        # Not a copy, which would know the sheets of what is left out.
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        left = tuple(part for part in fields[self.parted] if part.name in there)
        return type(self)(**{**fields, self.parted: left})

    def doubts(self, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
        """What speaks against reports that clients sent, with this false alarm."""
        return tuple(self.repeated(evidence, alpha))

    def repeated(self, evidence: Evidence, alpha: float) -> Iterable[Doubt]:
        """Of every sheet whose commonest report stands there more often than chance allows."""
        received, sheets = evidence.received, self.sheets()
        if received is None:
            return
        for sheet in sheets:
            n, repeats = received.reports[sheet.path], received.repeats.get(sheet.path, 0)
            peak = self.likeliest(sheet)
            chance = repeat_tail(repeats, n, peak)
            if chance < alpha / len(sheets):
                bound = most_repeats(n, peak, alpha / len(sheets))
                yield Doubt(self.subject(sheet), sheet.choice, REPEATS, repeats, bound, chance)

    def withhold(self, tables: Mapping[str, Rows], withheld: Collection[str]) -> dict[str, Rows]:
        """The tables without the rows about these."""
        return {name: without(rows, "attribute", withheld) for name, rows in tables.items()}
