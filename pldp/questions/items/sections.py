"""Parts of the spec of a release of frequent items: budget, choices, what is looked for, sampling."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Self

from pydantic import Field, model_validator

from pldp.questions.items.mining import MOST_LENGTH
from pldp.questions.items.padding import MOST_PADDING
from pldp.spec.fields import Model, Name, Whole
from pldp.spec.levels import UNDECLARED, Dependence, Share, Shares, Spend, check_choices, is_whole, strictest


class RowBudget(Model):
    """`total` is what a protocol is given for a user's whole row; `bound` the most that its exact ε may be.

    They differ only for aprr as published, which promises less than it spends.
    """

    total: Spend
    bound: Spend | None = None


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
