"""Doubts: what speaks against the reports of a question that clients sent.

A gate refuses a release; a doubt is about one question of it. An estimate that no population could give withholds that
question, everything else marks it. Where the vault drew, the same findings mean that the software is wrong, and gates
refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pldp.questions.gate import Gate, holds

FALSE_ALARM = 1e-4
"""The most probable an honest release is to have any doubt at all."""
IMPOSSIBLE = "impossible estimate"
WEIGHTS = "weights of reports"
REPEATS = "repeated reports"
UNANSWERED = "no reports"
"""Nothing speaks against it: nobody answered the question, so that it is withheld."""


@dataclass(frozen=True)
class Doubt:
    """One finding. `observed` and `bound` are the estimate and the last one that honest noise explains, the number of
    equal reports and the largest by chance, or, of weights, probabilities."""

    attribute: str
    level: str | None
    finding: str
    observed: float
    bound: float
    chance: float
    """Bound on the probability that honest reports look like this or worse."""
    withheld: bool = False


def doubts_gate(doubts: Sequence[Doubt], *, refuse: bool) -> tuple[Gate, ...]:
    """Where the spec asks for it, no doubt passes."""
    if not refuse:
        return ()
    return (
        holds(
            "no_doubt",
            "Nothing speaks against the reports that clients sent (gates.poisoning: refuse).",
            [True, *(False for _ in doubts)],
            observed=float(len(doubts)),
            bound=0.0,
            false_alarm=FALSE_ALARM,
        ),
    )


def answers_left(names: Sequence[str], withheld: Iterable[str]) -> Gate:
    """Of everything that was asked, something is left to publish."""
    left = set(names) - set(withheld)
    return holds(
        "answers_left",
        "At least one question has estimates that a population could give.",
        [bool(left)],
        observed=float(len(left)),
        bound=1.0,
    )
