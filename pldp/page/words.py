"""Numbers and methods in words a person understands. Bounds are rounded up: no promise looks stronger than it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from pldp.channels.registry import PROTOCOLS
from pldp.estimate import postprocess

METHODS = {
    "sum": "every level weighs as much as it has users, which assumes nothing about who chooses which level",
    "oc": "levels with less noise weigh more",
    "guarded": "levels weigh as much as makes the interval shortest that covers what is declared of people's choices",
    "oc+": "levels weigh as much as makes the error smallest, noise and sampling together",
    "op": "levels weigh as much as brings them close to a reference histogram",
    "em": "the frequencies under which all reports together are most likely",
    "auem": "support corrected for the mix of levels that the reports tell",
    "self-calibrated": "support corrected for the noise that its own sum shows, without asking for levels",
    "op-exact": "levels weigh as much as makes the largest difference from a reference histogram smallest",
}
POSTPROCESSES = {one.name: one.words for one in postprocess.POSTPROCESSES.values()}

MEANS = {
    "inverse-variance": "reports with less noise weigh more",
    "reports": "the mean over the reports of each level, levels weighed by their users",
    "scaled": "the sum of the reports, scaled by how rarely an attribute is drawn",
}
UNKNOWN = "see the documentation of methods"
MECHANISMS = {
    **{protocol.name: protocol.words for protocol in PROTOCOLS.values()},
    "pm": "a number drawn from a piece around the true one with a stated chance, else from outside it",
    "duchi": "one of two numbers, drawn so that their mean is the true one",
    "hm": "a coin decides between pm and duchi",
    "laplace": "the true number with noise of the Laplace distribution added",
    "sw": "a number drawn near the true one with a stated chance, else anywhere",
    "geometric": "the true count with whole-number noise of the two-sided geometric distribution added",
    "bits": "every item is reported as held or not, each told wrongly with a stated chance",
}
"""How an answer is perturbed, by the names that budgets have."""

UNITS = {
    "user": "a user",
    "item": "one item of a user",
    "occurrence": "one occurrence of an item of a user",
}
"""What budgets protect; different units are never added."""

_GROUPS = ((1e-3, "a thousand"), (1e-6, "a million"), (1e-9, "a billion"), (1e-12, "a trillion"))
_NO_PROTECTION = 20.0
"""A budget beyond which a bound says nothing that is worth a number."""


def fallback(wanted: str | None, used: str) -> str | None:
    """Why another method was used than the spec asked for; None where it was not."""
    if wanted is None or wanted == used:
        return None
    if used == "sum":
        why = "The levels contradicted what the spec declares of people's choices, so the method that assumes nothing"
        why += " of them was used"
    else:
        why = "There was no reference histogram with the same values"
        why += ", so the method that needs none was used"
    return f"{why}: {used} instead of {wanted}."


def mechanisms(names: Iterable[str]) -> list[tuple[str, str]]:
    """The mechanisms that the names of budgets speak of, and what each does."""
    spoken = dict.fromkeys(part for name in names for part in re.split(r"[^a-z]+", name))
    return [(name, MECHANISMS[name]) for name in spoken if name in MECHANISMS]


def protected(unit: str) -> str:
    """Who or what a budget protects."""
    return UNITS[unit]


def whose(unit: str) -> str:
    """The same at the start of a sentence."""
    return UNITS[unit][0].upper() + UNITS[unit][1:]


def factor(epsilon: float) -> str:
    """e^ε, rounded up: how many times likelier a report can be under one answer than under another."""
    if epsilon > _NO_PROTECTION:
        return f"10^{math.ceil(epsilon / math.log(10))}"
    excess = math.expm1(epsilon)
    if excess < 9:
        excess = _up(excess, 2)
        return f"{1 + excess:.{max(0, 1 - _magnitude(excess))}f}"
    bound = _up(1 + excess, 3)
    return f"{bound:,.{max(0, 2 - _magnitude(bound))}f}"


def above(epsilon: float) -> str:
    """A budget in four digits, rounded up."""
    return f"{_up(epsilon, 4):.4g}"


def number(value: float) -> str:
    """A figure of a gate: a count in full, anything else in four digits."""
    return f"{value:,.0f}" if abs(value) < 1e15 and value == round(value) else f"{value:.4g}"


def figure(value: float, digits: int = 4) -> str:
    """A number of a table to so many digits, and never fewer than stand before its point: 553,699, not 5.537e+05."""
    return f"{value:,.0f}" if 10 ** (digits - 1) <= abs(value) < 1e15 else f"{value:.{digits}g}"


def certainty(epsilon: float) -> str:
    """How sure one can become, at most, of one of two answers that seemed equally likely: e^ε / (1 + e^ε)."""
    percent = math.ceil(1000 / (1 + math.exp(-min(epsilon, _NO_PROTECTION)))) / 10
    return "practically certain" if percent >= 100 else f"{percent:g} % sure"


def chance(probability: float) -> str:
    """A small probability as a person says it: at most 5 in a million."""
    if probability <= 0:
        return "never"
    for size, group in _GROUPS:
        if probability >= size:
            return f"at most {_up(probability / size, 2):g} in {group}"
    return "less than 1 in a trillion"


def decimals(smallest_error: float) -> int:
    """Decimals of a percentage that show one digit of its error, and one more."""
    return min(6, max(1, 1 - _magnitude(100 * smallest_error))) if smallest_error > 0 else 2


def percent(share: float, digits: int = 1) -> str:
    """A share as percent with a true minus sign."""
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def measured(value: float, error: float) -> str:
    """A number in plain figures, to the second digit of its error."""
    digits = max(0, 1 - _magnitude(error)) if error > 0 else 2
    return f"{value:,.{min(digits, 12)}f}".replace("-", "−")


def quantile_name(probability: float) -> str:
    """What readers call the quantile below which this share lies."""
    return "median" if probability == 0.5 else f"{probability:g} quantile"


def counted(number: int, noun: str) -> str:
    """So many of something, in the plural unless it is one."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def sentence(text: str) -> str:
    """Words of a statement as a sentence of their own."""
    return f"{text[:1].upper()}{text[1:]}."


def _magnitude(number: float) -> int:
    return math.floor(math.log10(number)) if number > 0 else 0


def _up(number: float, digits: int) -> float:
    """Rounded up to so many significant digits; a rounding error of the last bit is not a reason to go up."""
    step = 10.0 ** (_magnitude(number) - digits + 1)
    return math.ceil(number / step * (1 - 1e-12)) * step
