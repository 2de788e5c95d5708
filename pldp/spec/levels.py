"""The spec's budget and levels: what users may choose, where the choice stands, and what a plan may assume of it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from pldp.errors import BrokenRule, quoted
from pldp.spec.fields import Model, Name, Ratio, Text, Whole, no_truth

MAX_BUDGET = 1_000
MAX_USERS = 1_000_000_000

Spend = Annotated[Ratio, Field(gt=0, le=MAX_BUDGET)]
"""A budget. One of zero would tell nothing: leave out what it is for."""
Share = Annotated[Ratio, Field(gt=0, le=1)]
"""Of a budget."""
Shares = Annotated[dict[Name, Share], Field(min_length=1, max_length=16)]
"""What a user may choose: the share of the budget that each level spends."""


Dependence = Annotated[Ratio, Field(ge=1, le=1_000_000)] | Literal["unknown"]
"""Γ: how many times likelier, or less likely, the holders of any value may be to choose any level than everybody."""


def is_whole(shares: Iterable[Fraction]) -> bool:
    """Whether shares sum to one, as far as a person writes decimals."""
    return abs(sum(shares, Fraction()) - 1) <= Fraction(1, 1000)


WeightCap = Annotated[float, BeforeValidator(no_truth), Field(ge=1, allow_inf_nan=False)] | None
"""How many times its share of the people a level may weigh at most; None is any number, 1 is `sum`."""


class Budget(Model):
    total: Spend
    allocation: Literal["optimal", "equal"] | dict[Name, Share] = "optimal"


UNDECLARED = (
    "levels.dependence is missing: people choose their levels, so the spec must say how far the choice may depend on "
    "the answer. 1: whoever gives an answer chooses like everybody else; levels then weigh by their precision, and "
    "errors are smallest. A number above 1, such as 1.3: whoever gives an answer is at most so many times likelier, or "
    "less likely, to choose a level than everybody; intervals cover that. unknown: nothing is assumed; levels weigh by "
    "their people, and intervals are longest"
)


NOT_COVERED = (
    "levels.dependence must be 1 or unknown where levels are hidden: without knowing levels no interval can cover a "
    "number above 1 (got {stated:g}). 1: whoever gives an answer chooses like everybody else. unknown: nothing is "
    "assumed; the method is sum, and intervals are longer. Or make levels public (levels.visibility), where intervals "
    "cover it"
)


class Levels(Model):
    """What a user may choose, and where the choice stands."""

    choices: Shares = Field(default={"high": Fraction(1, 3), "mid": Fraction(1, 2), "low": Fraction(1)})
    column: Text | dict[Name, Text] | None = None
    assigned: dict[Name, Annotated[Ratio, Field(ge=0, le=1)]] | None = None
    missing: Name | None = None
    visibility: Literal["public", "hidden"] = "public"
    dependence: Dependence | None = None
    epsilon_p: Spend | None = None
    max_leak: Spend | None = None

    @property
    def hidden(self) -> bool:
        return self.visibility == "hidden"

    @property
    def strictest(self) -> str:
        return strictest(self.choices)

    @property
    def gamma(self) -> float | None:
        """The declared Γ, 1 where nobody chooses; None where it is unknown."""
        if self.dependence == "unknown":
            return None
        return 1.0 if self.dependence is None else float(self.dependence)

    @property
    def usual_method(self) -> str:
        """How levels are combined unless the spec says otherwise."""
        if self.gamma is None:
            return "sum"
        return "auem" if self.hidden else "guarded"

    @property
    def beside(self) -> tuple[str, ...]:
        """Methods that stand beside every answer from several public levels."""
        return () if self.hidden or len(self.choices) == 1 else ("oc+", "sum")

    def check_dependence(self, *, personal: bool) -> None:
        """Nothing is assumed in silence: where people choose, the spec says how far by their answers.

        `personal` says that people choose what their budget goes to, whatever their level.
        """
        chosen = personal or (len(self.choices) > 1 and self.assigned is None)
        if chosen and self.dependence is None:
            raise ValueError(UNDECLARED)
        if not chosen and self.assigned is not None and self.dependence not in (None, 1):
            raise BrokenRule(
                "must be 1, or left out, where levels are assigned: they are drawn by chance, and "
                "no answer changes the draw",
                field="levels.dependence",
                value=str(self.dependence),
            )
        if self.hidden and self.gamma is not None and self.gamma > 1:
            raise ValueError(NOT_COVERED.format(stated=self.gamma))

    @model_validator(mode="after")
    def _placed(self) -> Self:
        check_choices(self.choices, self.missing)
        check_shares("assigned", self.assigned, self.choices)
        stated = (self.epsilon_p is not None, self.max_leak is not None)
        if self.hidden and stated != (True, True):
            raise BrokenRule(
                "hidden needs epsilon_p, the budget of the report about the level, and max_leak, the most "
                "that all reports of a user may tell about it",
                field="visibility",
            )
        if not self.hidden and any(stated):
            raise ValueError("epsilon_p and max_leak go with visibility: hidden")
        if self.hidden and len(self.choices) == 1:
            raise BrokenRule("hidden needs at least two choices: a single level tells nothing", field="visibility")
        return self


def strictest(choices: dict[str, Fraction]) -> str:
    """The level of the smallest budget."""
    return min(choices, key=lambda level: choices[level])


def check_choices(choices: dict[str, Fraction], missing: str | None) -> None:
    """`missing` is the level of whoever states none."""
    if max(choices.values()) != 1:
        raise BrokenRule(
            "must give 1, the whole budget, to the weakest level: the rest is never spent", field="choices"
        )
    if missing is not None and missing not in choices:
        raise BrokenRule("must be one of choices", field="missing", value=quoted(missing))


def check_shares(field: str, shares: dict[str, Fraction] | None, choices: dict[str, Fraction]) -> None:
    """BrokenRule unless the shares declared in `field` are of levels that there are, and sum to 1 as decimals go."""
    if shares is None:
        return
    unknown = set(shares) - set(choices)
    if unknown:
        raise BrokenRule(f"names levels that choices does not have: {', '.join(sorted(unknown))}", field=field)
    if not is_whole(shares.values()):
        raise BrokenRule("must sum to 1", field=field, value=f"{float(sum(shares.values(), Fraction())):g}")


class ExpectedUsers(Model):
    """What the plan may assume, since it never sees the data."""

    users: Annotated[Whole, Field(ge=1, lt=MAX_USERS)] = 100_000


class Expected(ExpectedUsers):
    levels: dict[Name, Annotated[Ratio, Field(ge=0, le=1)]] | None = None
