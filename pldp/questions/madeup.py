"""People who do not exist, drawn and counted by the code of a release, and expected tallies that nobody reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.question import Question, Sheet


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
