"""What a level's users report on numbers, and what those reports add up to. Pure: codes in, reports out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Codes
from pldp.channels.numeric.mechanism import Tally
from pldp.channels.randomness import Keystream
from pldp.questions.numbers.budgets import Units, check_budgets, deal_by_importance, deal_by_weights, sample_attributes
from pldp.questions.numbers.histogram import Counts, bucket_counts
from pldp.questions.numbers.plan import MEAN, NumbersPlan

Weights = NDArray[np.float32]
_SHUFFLE = 44
"""Random bits behind a key of at most 20: ties, of which a partition has hardly any, stay where they are."""

Group = tuple[int, int]
"""A question and a class."""


@dataclass(frozen=True)
class NumberReports:
    """The reports of some users of one level, ordered by question and class, else at random: one row each."""

    question: NDArray[np.uint16]
    class_: NDArray[np.uint8]
    report: NDArray[np.uint32]

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]]) -> NumberReports:
        """From the columns of a file; those that clients sent come in any order."""
        question, class_, report = (columns[name] for name in ("question", "class", "report"))
        reports = cls(question, class_, report)
        if reports.ordered:
            return reports
        order = np.lexsort((class_, question))
        return cls(question[order], class_[order], report[order])

    def groups(self, questions: int, classes: int) -> Iterator[tuple[Group, NDArray[np.uint32]]]:
        """The reports of every question and class, those without any included."""
        key = self.question.astype(np.int64) * classes + self.class_
        edges = np.searchsorted(key, np.arange(questions * classes + 1))
        for i, group in enumerate(product(range(questions), range(classes))):
            yield group, self.report[edges[i] : edges[i + 1]]

    @property
    def ordered(self) -> bool:
        key = (self.question.astype(np.int64) << 8) + self.class_
        return bool((key[1:] >= key[:-1]).all())


@dataclass(frozen=True)
class NumberCounts:
    """Additive statistics of one level: exact integers a question and class."""

    n_reports: int
    units: int
    """Spare units that all reports together were given."""
    means: dict[Group, Tally]
    buckets: dict[Group, Counts]

    def __add__(self, other: NumberCounts) -> NumberCounts:
        return NumberCounts(
            self.n_reports + other.n_reports,
            self.units + other.units,
            {group: tally + other.means[group] for group, tally in self.means.items()},
            {group: counts + other.buckets[group] for group, counts in self.buckets.items()},
        )


def report_numbers(
    plan: NumbersPlan, level: int, codes: Codes, weights: Weights | None, stream: Keystream
) -> NumberReports:
    """Every user samples questions, deals the budget over them, and answers; `codes` has one row an attribute.

    Which questions are sampled does not depend on any value. Budgets are checked user by user before a report is drawn.
    """
    at = plan.levels[level]
    users, n_classes = codes.shape[1], len(at.classes)
    sampled = sample_attributes(users, len(plan.questions), at.sampled, stream)
    units = _deal(plan, level, sampled, weights)
    known = np.array([class_plan.units for class_plan in at.classes])
    chosen = np.minimum(np.searchsorted(known, units), n_classes - 1)
    if check_budgets(at.budgets, units).size or (known[chosen] != units).any():
        raise ValueError("a user's budgets leave the range or do not sum to the level's")
    key = (sampled * np.uint32(n_classes) + chosen.astype(np.uint32)).reshape(-1)
    # Within a question and class the order is drawn too: the same order in all of them would link a user's reports.
    order = np.argsort(
        (key.astype(np.uint64) << np.uint64(_SHUFFLE)) | (stream.copy(key.size) >> np.uint64(64 - _SHUFFLE))
    )
    key = key[order]
    question = key // np.uint32(n_classes)
    columns = np.array([asked.column for asked in plan.questions])
    held = codes[columns[question], order // at.sampled]
    reports = NumberReports(
        question.astype(np.uint16), (key % np.uint32(n_classes)).astype(np.uint8), np.empty(key.size, dtype=np.uint32)
    )
    start = 0
    for (asked, class_), place in reports.groups(len(plan.questions), n_classes):
        mechanism = at.classes[class_].mechanisms[asked].realised
        place[:] = mechanism.perturb(held[start : start + place.size], stream)
        start += place.size
    return reports


def _deal(plan: NumbersPlan, level: int, sampled: Codes, weights: Weights | None) -> Units:
    """Spare units of each sampled question, one row a user."""
    budgets = plan.levels[level].budgets
    if plan.importance in ("none", "stated") or weights is None:
        flags = np.array([asked.important for asked in plan.questions])
        return deal_by_importance(budgets, flags[sampled])
    columns = np.array([asked.column for asked in plan.questions])
    asked_weights = weights[columns[sampled], np.arange(len(sampled))[:, None]]
    return (
        deal_by_weights(budgets, asked_weights)
        if plan.importance == "weights"
        else deal_by_importance(budgets, asked_weights > 0)
    )


def count_numbers(plan: NumbersPlan, level: int, reports: NumberReports) -> NumberCounts:
    """Refuses reports that the plan's mechanisms cannot have made."""
    at = plan.levels[level]
    classes = at.classes
    if not reports.ordered or (reports.question >= len(plan.questions)).any() or (reports.class_ >= len(classes)).any():
        raise ValueError("reports must be ordered, and name the plan's questions and classes")
    means: dict[Group, Tally] = {}
    buckets: dict[Group, Counts] = {}
    units = 0
    for (asked, class_), drawn in reports.groups(len(plan.questions), len(classes)):
        used = classes[class_].mechanisms[asked]
        if used.realised.invalid(drawn).size:
            raise ValueError(f"a report is none that {used.mechanism} can make")
        units += classes[class_].units * drawn.size
        if plan.questions[asked].kind == MEAN:
            means[asked, class_] = used.realised.tally(drawn.astype(used.realised.report_type))
        else:
            buckets[asked, class_] = bucket_counts(used.window, drawn, plan.questions[asked].resolution)
    return NumberCounts(reports.report.size, units, means, buckets)


def invalid_reports(plan: NumbersPlan, level: int, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Rows that name no question or class of the plan, or a report that its mechanism cannot make."""
    question, class_, report = (columns[name] for name in ("question", "class", "report"))
    classes = plan.levels[level].classes
    wrong = (question >= len(plan.questions)) | (class_ >= len(classes))
    for asked, number in product(range(len(plan.questions)), range(len(classes))):
        rows = np.flatnonzero((question == asked) & (class_ == number))
        wrong[rows[classes[number].mechanisms[asked].realised.invalid(report[rows])]] = True
    return np.flatnonzero(wrong)
