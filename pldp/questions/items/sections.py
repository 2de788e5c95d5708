"""Parts of the spec of a release of frequent items: budget, sensitivity, choices, what is looked for, sampling."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pldp.questions.items.levels import Scale
from pldp.questions.items.mining import MOST_LENGTH
from pldp.questions.items.padding import MOST_PADDING
from pldp.spec.fields import Model, Name, Text, Value, Whole
from pldp.spec.levels import UNDECLARED, Dependence, Share, Shares, Spend, check_choices, is_whole, strictest
from pldp.spec.source import Table

MAX_LEVELS = 100
"""Of sensitivity."""


class RowBudget(Model):
    """`total` is what a protocol is given for a user's whole row; `bound` the most that its exact ε may be.

    They differ only for aprr as published, which promises less than it spends.
    """

    total: Spend
    bound: Spend | None = None


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
            raise ValueError(
                f"levels must lie in 0 … {self.of - 1}, since `of` is {self.of} (got {', '.join(above[:5])})"
            )
        if self.scores is not None:
            try:
                found = self.scores.scale(self.of)
            except ValueError as error:
                raise ValueError(str(error)) from None
            if found.n_levels != self.of:
                raise ValueError(f"scores.cuts must be {self.of - 1}, one less than levels (got {len(found.cuts)})")
        if self.collected is not None and self.levels is None:
            raise ValueError("collected goes with levels: it names the release they come from")
        return self


class Choices(Model):
    """What a user may choose: shares of the budget. `missing` is the level of whoever states none; `dependence` says
    how far the choice may depend on what the user holds."""

    choices: Shares
    missing: Name | None = None
    dependence: Dependence | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        check_choices(self.choices, self.missing)
        if len(self.choices) > 1 and self.dependence is None:
            raise ValueError(UNDECLARED)
        return self

    @property
    def gamma(self) -> float | None:
        """The declared Γ, 1 where there is nothing to choose; None where it is unknown."""
        if self.dependence == "unknown":
            return None
        return 1.0 if self.dependence is None else float(self.dependence)

    @property
    def default(self) -> str:
        return self.missing or strictest(self.choices)


class Itemsets(Model):
    """What is looked for: sets that so many users hold whole, and rules of at least so much confidence."""

    minimum_support: Annotated[float, Field(gt=0, le=1)]
    length: Annotated[Whole, Field(ge=1, le=MOST_LENGTH)] = 3
    reach: Annotated[float, Field(ge=0, le=10)] = 2.0
    minimum_confidence: Annotated[float, Field(ge=0, le=1)] = 0.0


class Sampling(Model):
    """Large universes: a user reports one of `padding` places of the own row, or, of the candidate sets that the own
    row holds, one of `sets_padding`.

    `lengths` says how many items users have: `{4: 0.6, 10: 0.4}` that 60 % have at most 4, the others at most 10. The
    plan chooses paddings from it, and intervals allow for the rows that are longer.
    """

    lengths: Annotated[dict[Whole, Share], Field(min_length=1, max_length=1000)] | None = None
    padding: Annotated[Whole, Field(ge=1, le=MOST_PADDING)] | None = None
    candidates: Annotated[Whole, Field(ge=1, le=2000)] = 64
    sets_padding: Annotated[Whole, Field(ge=1, le=MOST_PADDING)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.lengths is None:
            return self
        if min(self.lengths) < 0:
            raise ValueError(f"lengths must be numbers of items, 0 or more (got {min(self.lengths)})")
        if not is_whole(self.lengths.values()):
            total = float(sum(self.lengths.values(), Fraction()))
            raise ValueError(
                "lengths must sum to 1: the share of users who have at most so many items, and more than the number "
                f"before (got {total:g})"
            )
        return self
