"""Whether a question's channels are made for what it asks, and spend no more than the plan states.

A channel that is made for fewer values than people may have would send the others as they are, while its odds look
harmless: k-RR keeps a value that it never draws, and a bit beyond the last is never flipped. One that keeps its values
more often than its ε allows breaks the promise by which people choose. Such plans are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise, permutations

from pldp.client.channels import Channel, Hidden, Histogram, Numbers
from pldp.client.holdings import Bits, OneValue, Sampled, Totals
from pldp.client.protocols import BRR, KRR, OUE, Protocol, Subset
from pldp.client.questions import Attribute, Question, Refused
from pldp.client.spend import Unbounded, allowed, spend

TELLS_MORE = "reports would tell more than the ε that the plan states. Do not answer it"
_ANSWERS = {
    "histogram": ({"value", "bins"}, (Histogram, Hidden)),
    "numbers": ({"number"}, (Numbers,)),
    "items": ({"items", "value"}, (Bits, OneValue, Sampled)),
    "totals": ({"total"}, (Totals,)),
}
"""By kind of question: the kinds of attributes that it asks for, and the channels that take their codes."""
_MOST_LEVELS = 32
"""That are hidden: every pair of them is compared."""
_LEVEL_FREE = (KRR, BRR, OUE)
"""Protocols whose reports look alike at every level: sizes of subsets and numbers of buckets would tell it."""


def require_attribute(one: Attribute) -> None:
    """ValueError where answers to it have no code: values that are no texts or read alike, edges that do not rise,
    bounds that are not finite or not apart."""
    texts = all(isinstance(value, str) for value in one.values)
    _require(texts and len(set(one.values)) == len(one.values), "values that cannot be told apart")
    edges = (*one.edges, one.low, one.high, one.high - one.low)
    _require(all(map(math.isfinite, edges)) and one.low < one.high, "bounds that are none")
    _require(all(low < high for low, high in pairwise(one.edges)), "edges that do not rise")


def require_apart(questions: Iterable[Question]) -> None:
    """Refused where one question hides a level and another says the choice of that name: who chooses one for all would
    send both."""
    asked = list(questions)
    hidden = {name: one.name for one in asked if one.hidden for name in one.choices}
    for one in asked:
        if not one.hidden and len(one.choices) > 1 and (shared := hidden.keys() & one.choices.keys()):
            level = min(shared)
            raise Refused(
                f"{one.name}: the choice {level} would tell more than the plan states, for {hidden[level]} hides it. "
                "Do not answer it"
            )


def require_groups(questions: Iterable[Question]) -> None:
    """ValueError unless questions that share a hidden level have the same levels in the same order, and one channel for
    the report about it. Else which of them somebody answers could tell the level, and its place would mean another one
    by which of them is answered first."""
    shared: dict[str, object] = {}
    for one in questions:
        if one.group is not None:
            said = tuple(one.choices), one.levels, one.level_epsilon
            _require(shared.setdefault(one.group, said) == said, "questions of one group that have other levels")


def require_fitting(question: Question) -> None:
    """ValueError where a channel is made for other answers than the question's attributes allow."""
    kinds, channels = _ANSWERS[question.kind]
    used = [choice.channel for choice in question.choices.values()]
    _require(all(one.kind in kinds for one in question.attributes), "attributes that this kind does not ask for")
    _require(all(one.kind != "bins" or len(one.edges) == one.size + 1 for one in question.attributes), "bins")
    _require(all(isinstance(channel, channels) for channel in used), "a channel of another kind of question")
    _require(all(_fits(channel, question) for channel in used), "a channel for other values")
    _require(bool(question.attributes), "a question about nothing")
    if question.levels is not None:
        # Else the report's form, or where it is sent, would tell the level.
        forms = {(type(channel.protocol), channel.shape) for channel in used if isinstance(channel, Hidden)}
        free = all(isinstance(channel, Hidden) and isinstance(channel.protocol, _LEVEL_FREE) for channel in used)
        boxes = {choice.boxes for choice in question.choices.values()}
        _require(question.kind == "histogram" and free and len(forms) == len(boxes) == 1, "levels that are not hidden")
        _require(question.levels.domain_size == len(used) <= _MOST_LEVELS, "a report about other levels")


def require_promise(question: Question) -> None:
    """Refused where a report may be more than e^ε times likelier with one answer than with another, for the ε that the
    plan states of the choice, or of the report about a hidden level. Of totals see `catalogue.py` too."""
    for choice in question.choices.values():
        _require_spend(question.name, choice.name, choice.channel, choice.epsilon)
    if question.levels is not None and question.level_epsilon is not None:
        _require_spend(question.name, "the report about the level", question.levels, question.level_epsilon)
        try:
            leak(question)
        except Unbounded:
            raise Refused(f"{question.name}: {TELLS_MORE}") from None


def leak(question: Question) -> int:
    """What all that is sent on a question tells of its hidden level: the logarithm of the worst ratio of two levels'
    chances of it, over answers and reports. The report about the level tells a part of it, how values are drawn
    another; `Unbounded` where something can come from one level only."""
    protocols = [choice.channel.protocol for choice in question.choices.values() if isinstance(choice.channel, Hidden)]
    drawn = (_level_ratio(one, other) for one, other in permutations(protocols, 2))
    return max(drawn, default=0) + (question.levels.spend if question.levels else 0)


def _level_ratio(one: Protocol, other: Protocol) -> int:
    """How much likelier a report on the same value may be at one level: k-RR tells the value or not, a bit at a time
    the others do."""
    hit, miss = (one.held, other.held), (one.other, other.other)
    if isinstance(one, KRR):
        return _larger(*(hit if one.held >= other.held else miss))
    bits = [(hit, 1), (miss, one.domain_size - 1)]
    return sum(number * _larger(*(pair if pair[0] >= pair[1] else (1 - pair[0], 1 - pair[1]))) for pair, number in bits)


def _larger(one: Fraction, other: Fraction) -> int:
    return spend(one.numerator * other.denominator, other.numerator * one.denominator)


def _require_spend(question: str, which: str, channel: Channel | Protocol, epsilon: Fraction) -> None:
    try:
        keeps = channel.spend <= allowed(epsilon)
    except Unbounded:
        keeps = False
    if not keeps:
        raise Refused(f"{question}, {which}: {TELLS_MORE}")


def _fits(channel: Channel, question: Question) -> bool:
    match channel:
        case Histogram() | Hidden():
            return _covers(channel.protocol, math.prod(one.size for one in question.attributes))
        case Numbers():
            asked = len(question.asked)
            known = {one.name for one in question.attributes}.issuperset(question.asked)
            stated = question.important is None or len(question.important) == asked
            return known and stated and _deals(channel) and all(len(one.mechanisms) == asked for one in channel.classes)
        case Totals():
            return all(len(laws) == len(question.attributes) for laws in channel.laws)
    (attribute,) = question.attributes
    match channel:
        case Bits():
            return len(channel.keep_zero) == len(channel.keep_one) == attribute.size
        case OneValue():
            return attribute.kind == "value" and len(channel.redraw) == len(channel.mass) == attribute.size
        case Sampled():
            sets = channel.candidates
            places = channel.n_values == attribute.size if sets is None else channel.n_values >= len(sets)
            held = all(item < attribute.size for one in sets or () for item in one)
            return places and held and _covers(channel.protocol, channel.n_values + channel.length)
    return False


def _covers(protocol: Protocol, n_values: int) -> bool:
    """Whether it is made for so many values; subsets of none or of all would tell the own value by themselves."""
    proper = not isinstance(protocol, Subset) or n_values == 1 or 0 < protocol.size < n_values
    return proper and protocol.domain_size == n_values


def _deals(channel: Numbers) -> bool:
    """Whether there is one class for whatever units a number may be dealt: else what matters to somebody would show in
    that no report comes."""
    units = {one.units for one in channel.classes}
    if len(channel.classes) == 1 or len(units) < len(channel.classes):
        return len(channel.classes) == 1
    if channel.weighted and channel.sampled > 1:
        return all(number in units for number in range(channel.units + 1))
    dealt = {number for m in range(1, channel.sampled + 1) for number in (channel.units // m, -(-channel.units // m))}
    return units.issuperset(dealt) and (channel.sampled == 1 or 0 in units)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"the plan has {otherwise}")
