"""The plan's attributes, which a person is asked, and its questions, which are reported on: read from the document."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pldp.client import written
from pldp.client.channels import Channel, Hidden, Histogram, NumberClass, Numbers
from pldp.client.dice import SCALE
from pldp.client.holdings import Bits, Law, OneValue, Sampled, Totals
from pldp.client.numeric import MECHANISMS, Mechanism, encode
from pldp.client.protocols import KRR, PROTOCOLS, Protocol
from pldp.client.written import LARGEST, parameters, rational, whole, wholes

LARGEST_TOTAL = 1 << 33
"""Grid units of a total, up or down: larger ones count as this."""


class Refused(Exception):
    """A plan, an answer or a choice that this client will not go along with; the message is for the person."""


@dataclass(frozen=True)
class Attribute:
    """What a person is asked: one of declared values, a number, items that they hold, or a total."""

    name: str
    kind: str
    """value, bins, number, items or total."""
    values: tuple[str, ...] = ()
    """Declared values, bins as text, or items."""
    edges: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 1.0
    label: str = ""
    labels: Mapping[str, str] | None = None
    size: int = 0
    """Of values or bins."""
    grid: Fraction = Fraction(1)
    """Of totals: what one unit is."""

    def encode(self, answer: Any) -> Any:
        """An answer as the whole numbers that channels take; Refused where it is none that the plan allows.

        A value is its place, items are their places, rising; a number of `bins` is its bin, an edge belonging to the
        bin above; another number is a code; a total is a whole number of grid units.
        """
        if self.kind == "value":
            if answer not in self.values:
                raise Refused(f"{self.name}: the answer must be one of the plan's values")
            return self.values.index(answer)
        if self.kind == "items":
            if not isinstance(answer, list | tuple | set | frozenset) or any(
                item not in self.values for item in answer
            ):
                raise Refused(f"{self.name}: the answer must be a list of the plan's items")
            return tuple(sorted({self.values.index(item) for item in answer}))
        if isinstance(answer, bool) or not isinstance(answer, int | float) or not math.isfinite(answer):
            raise Refused(f"{self.name}: the answer must be a finite number")
        if self.kind == "bins":
            return bisect_right(self.edges[1:-1], answer)
        if self.kind == "number":
            return encode(float(answer), self.low, self.high)
        if answer != int(answer):
            raise Refused(f"{self.name}: the answer must be a whole number of grid units")
        return min(max(int(answer), -LARGEST_TOTAL), LARGEST_TOTAL)


@dataclass(frozen=True)
class Box:
    """Where rows are collected: files of one shape."""

    path: str
    columns: tuple[tuple[str, str], ...]
    """Names and types: u1 … u8, i8, or `u8 × m` for a list of m numbers."""


@dataclass(frozen=True)
class Choice:
    """A level or profile: what it spends, its channel, and where its rows go, one row each in turn.

    A question on numbers sends several rows to its only box.
    """

    name: str
    epsilon: Fraction
    channel: Channel
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Question:
    """What is reported of one or more attributes, at the choice of the person."""

    name: str
    kind: str
    """histogram, numbers, items or totals."""
    attributes: tuple[Attribute, ...]
    choices: Mapping[str, Choice]
    group: str | None = None
    """Where the level is hidden: questions of one group share one level, and one report about it."""
    levels: KRR | None = None
    """The channel of that report."""
    level_epsilon: Fraction | None = None
    """The most that it spends."""
    important: tuple[int, ...] | None = None
    """Of numbers: what matters, where the plan says so and nobody else does."""
    asked: tuple[str, ...] = ()
    """Of numbers: the attribute of each number that may be sampled."""
    phase: int = 0
    cap: int | None = None
    """Of totals: how often an item counts at most; None where every occurrence is protected by itself."""

    def missing(self, answers: Mapping[str, Any]) -> list[str]:
        """The attributes that somebody left unanswered; the question is answered if there is none."""
        return [one.name for one in self.attributes if answers.get(one.name) is None]

    def encode(self, answers: Mapping[str, Any], importance: Mapping[str, int]) -> Any:
        """Answers as the channel takes them."""
        encoded = {one.name: one.encode(answers[one.name]) for one in self.attributes}
        if self.kind == "histogram":
            place = 0
            for one in self.attributes:
                place = place * one.size + encoded[one.name]
            return place
        if self.kind == "numbers":
            weights = [_weight(name, importance.get(name, 0)) for name in self.asked]
            return [encoded[name] for name in self.asked], self.important or weights
        if self.kind == "items":
            (held,) = encoded.values()
            return (held,) if isinstance(held, int) else held
        return [encoded[one.name] for one in self.attributes]

    @property
    def hidden(self) -> bool:
        return self.group is not None


def _weight(name: str, weight: int) -> int:
    if isinstance(weight, bool):
        return int(weight)
    if not isinstance(weight, int) or not 0 <= weight <= 1_000_000:
        raise Refused(f"{name}: importance must be true, false, or a whole number up to 1,000,000")
    return weight


def read_attribute(part: Mapping[str, Any]) -> Attribute:
    """An attribute of a collection plan, from its JSON; ValueError or KeyError where that is no attribute."""
    kind, values = part["kind"], tuple(part.get("values", ()))
    if kind not in ("value", "bins", "number", "items", "total"):
        raise ValueError(f"unknown kind of attribute {kind}")
    edges = tuple(float(edge) for edge in part.get("edges", ()))
    return Attribute(
        name=part["name"],
        kind=kind,
        values=values,
        edges=edges,
        low=float(part.get("low", 0.0)),
        high=float(part.get("high", 1.0)),
        label=part.get("label", part["name"]),
        labels=part.get("labels"),
        size=len(values),
        grid=rational(part.get("grid", "1")),
    )


def read_question(part: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> Question:
    """A question of a collection plan with its channels, from its JSON; ValueError or KeyError where that is none."""
    hidden = part.get("hidden")
    levels = None if hidden is None else _protocol(hidden["channel"])
    if levels is not None and not isinstance(levels, KRR):
        raise ValueError("the level is reported by k-RR")
    choices: dict[str, Choice] = {}
    for one in part["choices"]:
        if not isinstance(one["name"], str) or one["name"] in choices:
            raise ValueError("choices are different texts")
        boxes = tuple(Box(box["path"], tuple((name, kind) for name, kind in box["columns"])) for box in one["boxes"])
        channel = read_channel(one["channel"], part, levels)
        choices[one["name"]] = Choice(one["name"], rational(one["epsilon"]), channel, boxes)
        if len(boxes) not in (1, channel.shape[0]):
            raise ValueError("rows and boxes do not match")
    return Question(
        name=part["name"],
        kind=part["kind"],
        attributes=tuple(attributes[name] for name in part["attributes"]),
        choices=choices,
        group=None if hidden is None else written.text(hidden["group"]),
        levels=levels,
        level_epsilon=None if hidden is None else rational(hidden["epsilon"]),
        important=written.flags(part.get("important")),
        asked=tuple(part.get("asked", ())),
        phase=written.one_of(part.get("phase", 0), 0, 1),
        cap=written.cap(part.get("cap")),
    )


def read_channel(part: Mapping[str, Any], question: Mapping[str, Any], levels: KRR | None) -> Channel:
    """A channel from its part of the document, in which every whole number is a decimal string."""
    match part["mechanism"]:
        case "numbers":
            classes = tuple(
                NumberClass(whole(one["units"]), tuple(_mechanism(each) for each in one["channels"]))
                for one in part["classes"]
            )
            sampled = whole(part["sampled"], 1, min(len(one.mechanisms) for one in classes))
            weighted = written.one_of(question["importance"], *written.IMPORTANCE) == "weights"
            return Numbers(sampled, whole(part["units"]), classes, weighted)
        case "bits":
            return Bits(wholes(part["keep_zero"]), wholes(part["keep_one"]))
        case "value":
            mass = wholes(part["mass"])
            if not 1 <= sum(mass) <= SCALE:
                raise ValueError("masses must sum to 1 to 2^64")
            return OneValue(wholes(part["redraw"]), mass)
        case "sampled":
            candidates = question.get("candidates")
            sets = None if candidates is None else tuple(tuple(map(written.place, one)) for one in candidates)
            length = whole(part["length"], 1, LARGEST)
            return Sampled(whole(part["n_values"], 1, LARGEST), length, _protocol(part["protocol"]), sets)
        case "totals":
            laws = [_law(law) for law in question["laws"]]
            return Totals(whole(part["profile"]), tuple(tuple(laws[i] for i in wholes(row)) for row in part["laws"]))
    return Histogram(_protocol(part)) if levels is None else Hidden(_protocol(part), levels)


def _protocol(part: Mapping[str, Any]) -> Protocol:
    return PROTOCOLS[part["mechanism"]](**parameters(part))


def _mechanism(part: Mapping[str, Any]) -> Mechanism:
    return MECHANISMS[part["mechanism"]](**parameters(part))


def _law(part: Mapping[str, Any]) -> Law:
    digits = wholes(part["digits"])
    if len(digits) > written.MOST_DIGITS:
        raise ValueError("noise of more digits than a total has")
    return Law(digits, whole(part["tail"], 0, written.LARGEST_TAIL))
