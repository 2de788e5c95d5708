"""Whether a question's channels are made for what it asks, and spend no more than the plan states.

A channel that is made for fewer values than people may have would send the others as they are, while its odds look
harmless: k-RR keeps a value that it never draws, and a bit beyond the last is never flipped. One that keeps its values
more often than its ε allows breaks the promise by which people choose. Such plans are refused.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pldp.client.channels import Channel, Hidden, Histogram, Numbers
from pldp.client.holdings import Bits, OneValue, Sampled, Totals
from pldp.client.protocols import Protocol, Subset
from pldp.client.questions import Question, Refused
from pldp.client.spend import Unbounded, allowed

TELLS_MORE = "reports would tell more than the ε that the plan states. Do not answer it"
_ANSWERS = {
    "histogram": ({"value", "bins"}, (Histogram, Hidden)),
    "numbers": ({"number"}, (Numbers,)),
    "items": ({"items", "value"}, (Bits, OneValue, Sampled)),
    "totals": ({"total"}, (Totals,)),
}
"""By kind of question: the kinds of attributes that it asks for, and the channels that take their codes."""


def require_fitting(question: Question) -> None:
    """ValueError where a channel is made for other answers than the question's attributes allow."""
    kinds, channels = _ANSWERS[question.kind]
    used = [choice.channel for choice in question.choices.values()]
    _require(all(one.kind in kinds for one in question.attributes), "attributes that this kind does not ask for")
    _require(all(one.kind != "bins" or len(one.edges) == one.size + 1 for one in question.attributes), "bins")
    _require(all(isinstance(channel, channels) for channel in used), "a channel of another kind of question")
    _require(all(_fits(channel, question) for channel in used), "a channel for other values")
    if question.levels is not None:
        # Else the report's form, or where it is sent, would tell the level.
        forms = {(type(channel.protocol), channel.shape) for channel in used if isinstance(channel, Hidden)}
        boxes = {choice.boxes for choice in question.choices.values()}
        _require(question.kind == "histogram" and len(forms) == len(boxes) == 1, "levels that are not hidden")
        _require(question.levels.domain_size == len(used), "a report about other levels")


def require_promise(question: Question) -> None:
    """Refused where a report may be more than e^ε times likelier with one answer than with another, for the ε that the
    plan states of the choice, or of the report about a hidden level. Of totals see `catalogue.py` too."""
    for choice in question.choices.values():
        _require_spend(question.name, choice.name, choice.channel, choice.epsilon)
    if question.levels is not None and question.level_epsilon is not None:
        _require_spend(question.name, "the report about the level", question.levels, question.level_epsilon)


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
            return known and stated and all(len(one.mechanisms) == asked for one in channel.classes)
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
            return places and _covers(channel.protocol, channel.n_values + channel.length)
    return False


def _covers(protocol: Protocol, n_values: int) -> bool:
    """Whether it is made for so many values; subsets of none or of all would tell the own value by themselves."""
    proper = not isinstance(protocol, Subset) or n_values == 1 or 0 < protocol.size < n_values
    return proper and protocol.domain_size == n_values


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"the plan has {otherwise}")
