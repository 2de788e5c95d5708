"""What a gate is: a sentence, a few numbers, and what must hold of them, which Great Expectations is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pldp.channels.exact import float_above, log_above, within

FAMILY = 1e-5
"""The most probable all gates together are to refuse a correct release; half of it is the homogeneity test's."""
REHEARSED = FAMILY / 16
"""Its part for the rehearsal of all channels together (pldp/proof)."""
BESIDE = FAMILY / 8
"""What the gates of a table of people and the rehearsal leave to another question of the same release."""
TRUTH_ALPHA = 0.01
"""The chance that an evaluation's gate against the truth refuses what is correct."""

Spent = Iterable[tuple[Fraction, Fraction]]
"""Worst-case ratios, and the budgets that bound them."""


@dataclass(frozen=True)
class Between:
    """Every value of a column lies in a range."""

    column: str
    low: float | None = None
    high: float | None = None
    above: bool = False
    """Whether `low` itself is too low."""
    below: bool = False


@dataclass(frozen=True)
class Among:
    """Every value of a column is one of these."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Present:
    """No value of a column is missing."""

    column: str


@dataclass(frozen=True)
class Gate:
    """`rows` is what is looked at, one row each, and `rules` what must hold of every row; no rows is a failure."""

    name: str
    sentence: str
    rows: Mapping[str, Sequence[Any]]
    rules: tuple[Between | Among | Present, ...]
    observed: float
    bound: float
    false_alarm: float = 0.0
    question: str | None = None
    """What it is about; None of the release as a whole."""

    def of(self, question: str) -> Gate:
        return replace(self, question=question)


def exactly_once(name: str, sentence: str, expected: list[Any], seen: Iterable[Any]) -> Gate:
    """Each expected thing exactly once and nothing else: strangers are given a count that cannot pass."""
    times = Counter(seen)
    counted = [times.pop(thing, 0) for thing in expected] + [-n for n in times.values()]
    wrong = sum(n != 1 for n in counted)
    return Gate(name, sentence, {"times": counted}, (Among("times", (1,)),), observed=float(wrong), bound=0.0)


def holds(
    name: str, sentence: str, verdicts: Sequence[bool], observed: float, bound: float, false_alarm: float = 0.0
) -> Gate:
    """Every one of these is true."""
    return Gate(name, sentence, {"holds": list(verdicts)}, (Among("holds", (True,)),), observed, bound, false_alarm)


def kept(name: str, sentence: str, spent: Spent) -> Gate:
    """Every ratio is at most e to its budget."""
    pairs = list(spent)
    return holds(
        name,
        sentence,
        [within(ratio, budget) for ratio, budget in pairs],
        observed=max(log_above(ratio) / float_above(budget) for ratio, budget in pairs),
        bound=1.0,
    )


def errors_usable(
    rows: Mapping[str, Sequence[Any] | np.ndarray], columns: Sequence[str], what: str, name: str = "errors_usable"
) -> Gate:
    """`columns` are the estimate and whatever must be finite beside its standard error."""
    numbers = {column: np.asarray(rows[column], dtype=np.float64) for column in (*columns, "standard_error")}
    finite: dict[str, list[float | None]] = {
        column: [float(value) if np.isfinite(value) else None for value in values] for column, values in numbers.items()
    }
    errors = numbers["standard_error"]
    return Gate(
        name,
        f"Every {what} is finite and has a positive, finite standard error.",
        finite,
        (*(Present(column) for column in finite), Between("standard_error", low=0.0, above=True)),
        observed=float(np.min(errors)) if errors.size and np.isfinite(errors).all() else -1.0,
        bound=0.0,
    )


def partitions_once(expected: list[tuple[str, int]], counted: Iterable[tuple[str, int]]) -> Gate:
    """Both are sheets with the number of a partition."""
    return exactly_once(
        "partitions_once",
        "Every partition of every file of reports was counted exactly once.",
        expected,
        counted,
    )


def everyone_counted(counted: Sequence[int], expected: Sequence[int], whose: str, who: str = "user") -> Gate:
    """`counted` are numbers of reports, each of which must be that of the people asked, or who answered."""
    off = [n - one for n, one in zip(counted, expected, strict=True)]
    return Gate(
        "everyone_counted",
        f"{whose} exactly one report from every {who}.",
        {"off": off},
        (Among("off", (0,)),),
        observed=float(min(counted)),
        bound=float(min(expected)),
    )


def enough_users(n_users: int, minimum: int) -> Gate:
    """Of the people who took part and the spec's minimum: the first is at least the second."""
    return Gate(
        "enough_users",
        "At least as many users took part as the spec asks for.",
        {"n_users": [n_users]},
        (Between("n_users", low=minimum),),
        observed=float(n_users),
        bound=float(minimum),
    )


def tails(name: str, sentence: str, probabilities: Sequence[float], false_alarm: float) -> Gate:
    """Probabilities of what was seen, each at least its part of the false alarms."""
    bound = false_alarm / max(len(probabilities), 1)
    return Gate(
        name,
        sentence,
        {"tail": list(probabilities)},
        (Between("tail", low=bound),),
        observed=float(min(probabilities, default=0.0)),
        bound=bound,
        false_alarm=false_alarm,
    )
