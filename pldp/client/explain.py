"""A choice explained before it is made: how many people would send the same report without having the same answer.

The chances are the channel's own, as rationals; they are rounded when they become words, and nowhere before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pldp.client.channels import Hidden, Histogram, Numbers
from pldp.client.dice import SCALE
from pldp.client.fitting import leak
from pldp.client.holdings import Bits, Law, OneValue, Sampled, Totals
from pldp.client.numeric import HM, Duchi, Laplace, Mechanism, Window
from pldp.client.questions import Question
from pldp.client.spend import spend


@dataclass(frozen=True)
class Odds:
    """What a choice means. `other` and `held` are the chances that a report points to an answer of those who
    do not hold it and of those who do, from the least to the most over what may be answered; None where a report points
    nowhere."""

    words: str
    other: tuple[Fraction, Fraction] | None = None
    held: tuple[Fraction, Fraction] | None = None


def explain(question: Question, choice: str) -> Odds:
    """What a choice of a question means to the person who makes it: odds, and a sentence with them."""
    channel = question.choices[choice].channel
    if isinstance(channel, Histogram | Hidden):
        odds = _pointing(((channel.protocol.held, channel.protocol.other),), "have another answer", "have yours")
        if isinstance(channel, Hidden):
            hidden = (
                f" Your level is not told: of 100 people at another one, {per_100(channel.levels.other)} report yours. "
                f"What you send about this may make one level {_times(leak(question))} times likelier than another, "
                "and what you send about the rest adds to it."
            )
            odds = Odds(odds.words + hidden, odds.other, odds.held)
        return odds
    if isinstance(channel, Bits):
        pairs = zip(channel.keep_one, channel.keep_zero, strict=True)
        return _pointing([(Fraction(one, SCALE), 1 - Fraction(zero, SCALE)) for one, zero in pairs], *_HELD)
    if isinstance(channel, OneValue):
        return _pointing(_value_odds(channel), "have another item", "have yours")
    if isinstance(channel, Sampled):
        protocol = channel.protocol
        held = protocol.other + (protocol.held - protocol.other) / channel.length
        odds = _pointing(((held, protocol.other),), *_HELD)
        first = f"One of the {channel.length} places of your list, drawn at random, is reported. "
        return Odds(first + odds.words, odds.other, odds.held)
    if isinstance(channel, Totals):
        sizes = [mean_size(law) for laws in channel.laws for law in laws]
        return Odds(
            f"Each total gets noise of typically {_range(sizes, _tenths)} units, for every provider anew. This client "
            "has checked what one unit of one total tells against the plan's ε; whole items it checks where it is "
            "given the catalogue."
        )
    if isinstance(channel, Numbers):
        return _numbers(channel)
    raise TypeError("a channel that cannot be explained")


_HELD = ("do not hold an item", "hold it")


def per_100(chance: Fraction) -> str:
    """How many of 100 people, in words that never say none or all where that is not so."""
    if 0 < chance < Fraction(1, 200):
        return "fewer than 1"
    if Fraction(199, 200) <= chance < 1:
        return "more than 99"
    return str(_nearest(100 * chance))


def _times(spent: int) -> str:
    """A ratio as a whole number, rounded up, from its logarithm."""
    least = bisect_left(range(1, 1001), spent, key=lambda number: spend(number, 1)) + 1
    return f"up to {least}" if least <= 1000 else "more than 1,000"


def _pointing(pairs: Iterable[tuple[Fraction, Fraction]], without: str, having: str) -> Odds:
    """From pairs of chances: of those who have the answer, and of those who do not."""
    holders, others = zip(*pairs, strict=True)
    words = (
        f"Of 100 people who choose this and {without}, {_range(others, per_100)} send a report that points to it all "
        f"the same; of 100 who {having}, {_range(holders, per_100)} do."
    )
    return Odds(words, (min(others), max(others)), (min(holders), max(holders)))


def _range(numbers: Sequence[Fraction], shown: object) -> str:
    low, high = (shown(number) for number in (min(numbers), max(numbers)))  # type: ignore[operator]
    return str(low) if low == high else f"{low} to {high}"


def _nearest(number: Fraction) -> int:
    """To the nearest whole number, half up."""
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


def _tenths(number: Fraction) -> str:
    whole, tenth = divmod(_nearest(10 * number), 10)
    return f"{whole}.{tenth}" if tenth and whole < 10 else str(_nearest(number) if whole >= 10 else whole)


def _value_odds(channel: OneValue) -> list[tuple[Fraction, Fraction]]:
    """Of each item: the chance to report it with it, and the least and the most chance to without it."""
    total = sum(channel.mass)
    least, most = sorted(channel.redraw)[:2], sorted(channel.redraw)[-2:]
    pairs = []
    for redraw, mass in zip(channel.redraw, channel.mass, strict=True):
        kept = 1 - Fraction(redraw, SCALE) + Fraction(redraw * mass, SCALE * total)
        # Of the others the most and the least redrawn matter; the item itself is none of them.
        low = least[1] if redraw == least[0] else least[0]
        high = most[0] if redraw == most[1] else most[1]
        pairs += [(kept, Fraction(one * mass, SCALE * total)) for one in (low, high)]
    return pairs


def _numbers(channel: Numbers) -> Odds:
    mechanisms = [each for one in channel.classes for each in one.mechanisms]
    words = (
        f"You report on {channel.sampled} of {len(channel.classes[0].mechanisms)} numbers, drawn at random whatever "
        "you answer."
    )
    blind = [blindness(each) for each in mechanisms if not isinstance(each, Laplace)]
    noise = [Fraction(100 * each.length, 1024 << each.bits) for each in mechanisms if isinstance(each, Laplace)]
    if blind:
        words += f" Of 100 such reports, {_range(blind, per_100)} are drawn without looking at your number."
    if noise:
        words += f" Noise of typically {_range(noise, _tenths)} % of the range is added to a number."
    return Odds(words)


def blindness(mechanism: Mechanism) -> Fraction:
    """The share of reports that are drawn without looking at the number: what every number's reports have in common."""
    if isinstance(mechanism, Window):
        cells, steps = (1 << mechanism.bits) + mechanism.window, 1 << mechanism.bits
        whole = SCALE >> mechanism.bits
        return cells * Fraction(whole - mechanism.window * mechanism.weight, whole * steps)
    if isinstance(mechanism, Duchi):
        return 2 - 2 * Fraction(mechanism.keep, SCALE)
    if isinstance(mechanism, HM):
        mix = Fraction(mechanism.mix, SCALE)
        window = blindness(Window(mechanism.bits, mechanism.window, mechanism.weight))
        return mix * window + (1 - mix) * blindness(Duchi(mechanism.keep))
    raise TypeError("noise that is added always looks at the number")


def mean_size(law: Law) -> Fraction:
    """How large noise is in the mean, whatever its sign."""
    zero = Fraction(SCALE - law.tail, SCALE)
    mean = Fraction(law.tail, SCALE - law.tail) * (1 << len(law.digits))
    for place, digit in enumerate(law.digits):
        zero *= Fraction(SCALE - digit, SCALE)
        mean += Fraction(digit << place, SCALE)
    return 2 * mean / (2 - zero)
