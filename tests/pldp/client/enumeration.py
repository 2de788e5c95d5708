"""Every way a client's draw can go, with its exact chance: dice that are asked again and again, a branch each time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

from pldp.client.dice import SCALE, Dice

Words = list[tuple[int, Fraction]]
"""Classes of words that lead to the same: one of each, and the chance of the class."""


class _Unlikely(Exception):
    pass


class _Scripted(Dice):
    """Takes the branches that a script says; beyond its end the first ones, noting how many there were."""

    def __init__(self, script: list[int], words: Words, least: Fraction) -> None:
        self.script, self.sizes, self.chance = script, list[int](), Fraction(1)
        self._words, self._least = words, least

    def _branch(self, chances: list[Fraction]) -> int:
        at = len(self.sizes)
        taken = self.script[at] if at < len(self.script) else 0
        self.sizes.append(len(chances))
        self.chance *= chances[taken]
        if self.chance <= self._least:
            raise _Unlikely
        return taken

    def word(self) -> int:
        return self._words[self._branch([chance for _, chance in self._words])][0]

    def coin(self, threshold: int) -> bool:
        yes = Fraction(threshold, SCALE)
        return self._branch([1 - yes, yes]) == 1

    def below(self, bound: int) -> int:
        return self._branch([Fraction(1, bound)] * bound)


def enumerated(
    draw: Callable[[Dice], Hashable], words: Words | None = None, least: Fraction = Fraction(0)
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """The chance of every report, and of all the ways that were not followed, being no likelier than `least`."""
    chances: dict[Hashable, Fraction] = defaultdict(Fraction)
    rest = Fraction(0)
    script: list[int] | None = []
    while script is not None:
        dice = _Scripted(script, words or [], least)
        try:
            report = draw(dice)
            chances[report] += dice.chance
        except _Unlikely:
            rest += dice.chance
        taken = [script[i] if i < len(script) else 0 for i in range(len(dice.sizes))]
        # The next script: the last branch that has a sibling left.
        while taken and taken[-1] + 1 == dice.sizes[len(taken) - 1]:
            taken.pop()
        script = [*taken[:-1], taken[-1] + 1] if taken else None
    return {report: chance for report, chance in chances.items() if chance}, rest
