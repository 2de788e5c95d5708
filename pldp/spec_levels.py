"""The spec's budget and levels: what users may choose, where the choice stands, and what a plan may assume of it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pldp.fields import Model, Name, Ratio, Text, Whole

MAX_BUDGET = 1_000
MAX_USERS = 1_000_000_000


def is_whole(shares: Iterable[Fraction]) -> bool:
    """Whether shares sum to one, as far as a person writes decimals."""
    return abs(sum(shares, Fraction()) - 1) <= Fraction(1, 1000)


class Budget(Model):
    total: Annotated[Ratio, Field(gt=0, le=MAX_BUDGET)]
    allocation: Literal["optimal", "equal"] | dict[Name, Annotated[Ratio, Field(gt=0, le=1)]] = "optimal"


class Levels(Model):
    """What a user may choose, and where the choice stands."""

    choices: Annotated[dict[Name, Annotated[Ratio, Field(gt=0, le=1)]], Field(min_length=1, max_length=16)] = Field(
        default={"high": Fraction(1, 3), "mid": Fraction(1, 2), "low": Fraction(1)}
    )
    column: Text | dict[Name, Text] | None = None
    assigned: dict[Name, Annotated[Ratio, Field(ge=0, le=1)]] | None = None
    missing: Name | None = None
    visibility: Literal["public", "hidden"] = "public"
    epsilon_p: Annotated[Ratio, Field(gt=0, le=MAX_BUDGET)] | None = None
    max_leak: Annotated[Ratio, Field(gt=0, le=MAX_BUDGET)] | None = None

    @property
    def hidden(self) -> bool:
        return self.visibility == "hidden"

    @property
    def strictest(self) -> str:
        return min(self.choices, key=lambda level: self.choices[level])

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if max(self.choices.values()) != 1:
            raise ValueError("choices must give 1, the whole budget, to the weakest level: the rest is never spent")
        if self.missing is not None and self.missing not in self.choices:
            raise ValueError(f"missing must be one of choices (got {self.missing!r})")
        check_shares("assigned", self.assigned, self.choices)
        given = (self.epsilon_p is not None, self.max_leak is not None)
        if self.hidden and given != (True, True):
            raise ValueError(
                "visibility: hidden needs epsilon_p, the budget of the report about the level, and max_leak, the most "
                "that all reports of a user may tell about it"
            )
        if not self.hidden and any(given):
            raise ValueError("epsilon_p and max_leak go with visibility: hidden")
        if self.hidden and len(self.choices) == 1:
            raise ValueError("visibility: hidden needs at least two choices: a single level tells nothing")
        return self


def check_shares(field: str, shares: dict[str, Fraction] | None, choices: dict[str, Fraction]) -> None:
    if shares is None:
        return
    unknown = set(shares) - set(choices)
    if unknown:
        raise ValueError(f"{field} names levels that choices does not have: {', '.join(sorted(unknown))}")
    if not is_whole(shares.values()):
        raise ValueError(f"{field} must sum to 1 (got {float(sum(shares.values(), Fraction())):g})")


class Expected(Model):
    """What the plan may assume, since it never sees the data."""

    users: Annotated[Whole, Field(ge=1, lt=MAX_USERS)] = 100_000
    levels: dict[Name, Annotated[Ratio, Field(ge=0, le=1)]] | None = None
