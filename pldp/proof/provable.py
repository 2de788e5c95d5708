"""What a kind of question brings to a release's proof of itself; part of the interface `Question`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Floats
from pldp.channels.randomness import Keystream
from pldp.proof.trial import Trial

if TYPE_CHECKING:
    from pldp.questions.question import Question, Sheet


@dataclass(frozen=True)
class Compared:
    """Numbers of the plan or of a table, beside the same computed another way, by what they are of."""

    what: str
    off: float
    """The largest difference beyond the slack, relative where it is of probabilities."""
    slack: float = 0.0
    """What a threshold's step and double precision alone may make of it: much where a budget is tiny."""

    @classmethod
    def between(cls, what: str, these: Any, those: Any, slack: float = 0.0) -> Compared:
        apart: Floats = np.abs(np.asarray(these, dtype=np.float64) - np.asarray(those, dtype=np.float64))
        largest = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))
        return cls(what, max(largest - slack, 0.0), slack)


@dataclass(frozen=True)
class MadeUp:
    """People who do not exist, as columns of a vault that does not exist.

    A type of its own: whatever commits reports, adds up a release's tallies or spends takes none of it, and `counted`
    hands back nothing but what the reports add up to.
    """

    columns: Mapping[str, NDArray[Any]]


def counted(
    question: Question, sheet: Sheet, people: MadeUp, stream: Keystream, adapted: bytes | None = None
) -> tuple[Mapping[str, NDArray[Any]], Any]:
    """Through the very code that draws and counts a release: the reports, which nobody stores, and their tally."""
    beside = {} if sheet.beside is None else question.draw(sheet.beside, people.columns, stream, None)
    reports = {**beside, **question.draw(sheet, people.columns, stream, adapted)}
    return reports, question.tally(sheet, reports)


class NoReports:
    """Stands where estimators may read reports again: there are none, only expected tallies."""

    adapted: bytes | None = None
    reference: Mapping[tuple[str, str], float] | None = None

    def columns(self, sheet: Sheet) -> Iterator[Mapping[str, NDArray[Any]]]:
        return iter(())

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        raise ValueError("expected tallies have no reports behind them")

    def generator(self, label: str) -> np.random.Generator:
        return np.random.default_rng(0)


class Provable:
    """Three ways to show that estimates are unbiased which cost nobody any privacy."""

    @abstractmethod
    def recomputed(self) -> Iterable[Compared]:
        """Every channel's probabilities against those that its ε gives by other code than the plan's."""

    @abstractmethod
    def recovered(self) -> Iterable[Compared]:
        """Expected tallies of a made-up population through estimators, combinations and tables, against its truth."""

    @abstractmethod
    def rehearsed(self, stream: Keystream, cells: int) -> Iterable[Trial]:
        """Made-up people through `draw` and `tally`; `cells` bounds what all of them may take."""
