"""How sensitive items are, as an author writes it: levels that are declared, or scores that lead to them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pldp.errors import BrokenRule
from pldp.questions.items.levels import Scale
from pldp.spec.fields import Model, Text, Value, Whole
from pldp.spec.levels import Spend
from pldp.spec.source import Table

MAX_LEVELS = 100


class Scores(Table):
    """Raw scores, one row a user and item: for evaluations alone, since scores are personal data."""

    user: Text = "user"
    item: Text = "item"
    score: Text = "score"
    range: tuple[float, float]
    cuts: tuple[float, ...] | None = None

    def scale(self, n_levels: int) -> Scale:
        low, high = self.range
        return Scale.equal(low, high, n_levels) if self.cuts is None else Scale(low, high, self.cuts)


class Collected(Model):
    """The release whose published scores the levels follow, and what it spent on the same users."""

    release: Text
    epsilon: Spend


class Sensitivity(Model):
    """Levels of items, 0 to `of` − 1 (the most sensitive): declared, or from raw scores in an evaluation.

    `split` says how protocol bounded shares a row's bound: `capped` keeps each item within aprr's promise to its level
    and shares the rest for least error, `proportional` gives ε in proportion to `of` − level.
    """

    of: Annotated[Whole, Field(ge=2, le=MAX_LEVELS)]
    levels: dict[Value, Annotated[Whole, Field(ge=0)]] | None = None
    scores: Scores | None = None
    collected: Collected | None = None
    split: Literal["capped", "proportional"] = "capped"

    @model_validator(mode="after")
    def _given(self) -> Self:
        if (self.levels is None) == (self.scores is None):
            raise ValueError("needs either levels (one an item) or scores (a file, for evaluations)")
        above = [f"{item} {level}" for item, level in (self.levels or {}).items() if level >= self.of]
        if above:
            raise BrokenRule(
                f"must lie in 0 … {self.of - 1}, since `of` is {self.of}",
                field="levels",
                value=f"{', '.join(above[:5])}",
            )
        if self.scores is not None:
            try:
                scale = self.scores.scale(self.of)
            except ValueError as error:
                raise ValueError(str(error)) from None
            if scale.n_levels != self.of:
                raise BrokenRule(
                    f"must be {self.of - 1}, one less than levels", field="scores.cuts", value=str(len(scale.cuts))
                )
        if self.collected is not None and self.levels is None:
            raise BrokenRule("goes with levels: it names the release they come from", field="collected")
        return self
