"""The gates of a release about itself: probabilities recomputed, a known truth recovered, channels rehearsed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pldp.channels.randomness import Keystream
from pldp.proof.compared import Compared
from pldp.proof.trial import FROM, MOST_CELLS, OFF, Trial
from pldp.questions.gate import REHEARSED, Between, Gate, tails

if TYPE_CHECKING:
    from pldp.questions.question import Question

EXACT = 1e-9
ROUNDING = 0.01
"""People are whole, so what they show is a little more or less than the 10 % that they were counted for."""
NAMED = 3
"""Channels that a sentence names."""


def proof(questions: Sequence[Question], stream: Keystream) -> tuple[Gate, ...]:
    """Of the plan and the code alone: nobody's reports are looked at, and no privacy is spent."""
    return (
        _equal(
            "channels_recomputed",
            "Every channel has the probabilities that its budget gives by other code, to a relative 1e-9",
            (one for question in questions for one in question.recomputed()),
        ),
        _equal(
            "truth_recovered",
            "Expected counts of made-up people with known answers come back as those answers, with the errors and "
            "intervals that their formulas give, through the same estimators and tables, to 1e-9",
            (one for question in questions for one in question.recovered()),
        ),
        rehearsal(list(_trials(questions, stream))),
    )


def _equal(name: str, sentence: str, compared: Iterable[Compared]) -> Gate:
    """Its sentence says what a budget leaves to double precision where that is more."""
    known = list(compared)
    off, slack = [one.off for one in known], max((one.slack for one in known), default=0.0)
    blur = f", or to the {slack:.1g} that a budget so small leaves to double precision" if slack > EXACT else ""
    return Gate(
        name,
        f"{sentence}{blur}.",
        {"off": off},
        (Between("off", high=EXACT),),
        observed=max(off, default=float("inf")),
        bound=EXACT,
    )


def _trials(questions: Sequence[Question], stream: Keystream) -> Iterable[Trial]:
    """What cannot be counted at all is as far from its law as can be."""
    for question in questions:
        try:
            yield from question.rehearsed(stream, MOST_CELLS // len(questions))
        except ValueError:
            yield Trial.of(f"{question.kind}: reports that the plan cannot make", 0.0, 0, [(1.0, 0.0, 0.0, 0.0, 0.0)])


def rehearsal(trials: Sequence[Trial]) -> Gate:
    """Its sentence says what deviation of ε so many people show, and names channels that show 10 % less surely."""
    known = [trial.visible for trial in trials if trial.epsilon >= FROM]
    seen = [visible for visible in known if visible <= 1]
    sharpness = f"; an ε that is {max(seen):.1%} off is caught 99 times in 100" if seen else ""
    blind = len(trials) - len(seen)
    sharpness += f" on {len(seen)} of {len(trials)} channels" if seen and blind else " on every channel" if seen else ""
    return tails(
        "channels_rehearsed",
        f"Reports of {sum(trial.people for trial in trials):,} made-up people, drawn and counted by the same code and "
        f"kept nowhere, are as the budgets promise{sharpness}{_less_seen(trials)}.",
        [trial.tail for trial in trials],
        REHEARSED,
    )


def _less_seen(trials: Sequence[Trial]) -> str:
    """Channels on which an ε that is 10 % off may pass, those that show least first, and what each does show."""
    dim = sorted((one for one in trials if one.visible > OFF * (1 + ROUNDING)), key=lambda one: -one.visible)
    if not dim:
        return ""
    named = [f"{one.channel} ({f'{one.visible:.0%}' if one.visible <= 1 else 'nothing'})" for one in dim[:NAMED]]
    more = f" and {len(dim) - NAMED} more" if len(dim) > NAMED else ""
    return f"; 10 % may pass on {', '.join(named)}{more}"
