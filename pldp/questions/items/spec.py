"""The spec of a release of frequent items (`kind: items`). See docs/items.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from pldp.page.wording import Description, Label, Labels, Wording, check_labels
from pldp.questions.items.levels import Scale
from pldp.questions.items.mining import MOST_LENGTH
from pldp.questions.items.padding import MOST_PADDING
from pldp.spec.columns import check_roles
from pldp.spec.fields import Model, Name, Text, Value, Whole
from pldp.spec.levels import (
    UNDECLARED,
    Dependence,
    Expected,
    Share,
    Shares,
    Spend,
    check_choices,
    check_shares,
    is_whole,
    strictest,
)
from pldp.spec.release import Gates, Intervals, Retention
from pldp.spec.runner import Runner
from pldp.spec.schedule import Schedule
from pldp.spec.source import Holdings, Table

KIND = "items"
MAX_ITEMS = 50_000
MAX_ONE = 2_000
"""Values of which a user has one: their channel is inverted."""
MAX_LEVELS = 100
"""Of sensitivity."""
ALL = "all"
"""The one level of a release in which users have no choice."""


class Rows(Holdings):
    """Which user has which item, one row each, in any order; an empty item says that the user has none.

    An item counts once however often a user has it.
    """

    level: Text | None = None


class ItemList(Table):
    """A public file that lists the items, one row each."""

    item: Text = "item"


class Takers(Table):
    """Who takes part at which level, one row a user; users who have no items too."""

    user: Text = "user"
    level: Text | None = None


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


def _shape(value: Any) -> str:
    return "file" if isinstance(value, dict | Model) else "list"


Items = Annotated[
    Annotated[ItemList, Tag("file")]
    | Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_ITEMS), Tag("list")],
    Discriminator(_shape),
]
"""Declared here, or in a public file."""


class ItemsSpec(Model):
    kind: Literal["items"]
    name: Name
    title: Label = None
    description: Description = None
    source: Rows
    items: Items
    labels: Labels = None
    holds: Literal["many", "one"] = "many"
    missing: Value | None = None
    other: Value | None = None
    budget: RowBudget
    protocol: Literal["auto", "bounded", "aprr", "sampling"] = "auto"
    sensitivity: Sensitivity | None = None
    weights: dict[Value, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = None
    levels: Choices = Choices(choices={ALL: Fraction(1)})
    users: Takers | None = None
    itemsets: Itemsets
    sampling: Sampling = Sampling()
    combination: Literal["oc+", "sum"] | None = None
    expected: Expected = Expected()
    intervals: Intervals = Intervals()
    gates: Gates = Gates()
    retention: Retention = Retention()
    schedule: Schedule | None = None
    runner: Annotated[Runner, Field(exclude=True)] = Runner()

    def files(self) -> list[str]:
        """Everything whose content makes another release; the source first."""
        return [
            self.source.path or self.source.reports or "",
            *(one.path for one in self.public_tables().values()),
            *_path(self.users),
        ]

    def public_tables(self) -> dict[str, ItemList | Scores]:
        """Files that the plan follows from, by the field that names them; scores are for evaluations."""
        tables: dict[str, ItemList | Scores] = {}
        if isinstance(self.items, ItemList):
            tables["items"] = self.items
        if self.sensitivity is not None and self.sensitivity.scores is not None:
            tables["sensitivity.scores"] = self.sensitivity.scores
        return tables

    @property
    def refusal(self) -> str | None:
        return None

    @property
    def wording(self) -> Wording:
        """What it says for readers alone."""
        return Wording(self.title, self.description, {}, {"": self.labels or {}})

    @property
    def bound(self) -> Fraction:
        return self.budget.bound or self.budget.total

    @property
    def method(self) -> Literal["oc+", "sum"]:
        """How levels are pooled: by their precision only where nobody's choice depends on what they hold."""
        return self.combination or ("oc+" if self.levels.gamma == 1 else "sum")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not isinstance(self.items, ItemList):
            self.check_items(self.items)
        if self.holds == "many" and (self.missing is not None or self.other is not None):
            raise ValueError("missing and other go with holds: one; a row of items may be empty")
        if self.holds == "one" and self.itemsets.length != 1:
            raise ValueError("itemsets.length must be 1 with holds: one: nobody has two values")
        if self.holds == "one" and self.protocol == "sampling":
            raise ValueError("protocol must be bounded or aprr with holds: one: there is nothing to sample from")
        if self.protocol == "aprr" and self.sensitivity is None:
            raise ValueError("protocol: aprr needs sensitivity: its budgets follow the items' levels")
        if self.protocol == "sampling" and (self.sensitivity is not None or self.weights is not None):
            raise ValueError(
                "protocol: sampling treats all items alike: leave out sensitivity and weights, or use bounded"
            )
        if self.sensitivity is not None and self.sensitivity.split == "proportional":
            if self.holds == "one" or self.protocol == "aprr":
                raise ValueError(
                    "sensitivity.split: proportional goes with protocol: bounded and holds: many, where a row's bound "
                    "is split between items"
                )
            if self.weights is not None:
                raise ValueError(
                    "weights go with sensitivity.split: capped: a proportional split leaves nothing to share by them"
                )
        if self.protocol != "aprr" and self.bound != self.budget.total:
            raise ValueError("budget.bound goes with protocol: aprr; others keep the total exactly")
        choices = self.levels.choices
        placed = (self.source.level is not None) + (self.users is not None and self.users.level is not None)
        if self.source.reports is not None:
            if placed or self.users is not None:
                raise ValueError("source.reports takes no level and no users: the folders name the levels")
            placed = 1
        if placed > 1:
            raise ValueError("levels stand either in users.level or in source.level, not in both")
        if len(choices) > 1 and not placed:
            raise ValueError("levels: several choices need source.level or users.level (the column they stand in)")
        if self.combination == "oc+" and self.levels.gamma != 1:
            raise ValueError(
                "combination: oc+ weighs levels by their precision, and its intervals hold only where users choose "
                f"independently of what they hold (got levels.dependence {self.levels.dependence}). Leave combination "
                "out, which takes sum and assumes nothing, or declare dependence: 1"
            )
        check_shares("expected.levels", self.expected.levels, choices)
        rows = self.source
        check_roles({"source.item": rows.item}, {"source.level": rows.level}, {"source.user": rows.user})
        if self.users is not None:
            check_roles({}, {"users.level": self.users.level}, {"users.user": self.users.user})
        return self

    def check_items(self, items: tuple[str, ...]) -> None:
        """What must hold of the declared items; ValueError otherwise."""
        declared = set(items)
        if len(declared) != len(items):
            raise ValueError("items must differ from each other")
        check_labels(self.labels, items)
        if self.holds == "one" and not 2 <= len(items) <= MAX_ONE:
            raise ValueError(f"items must be 2 to {MAX_ONE:,} with holds: one (got {len(items):,})")
        for role, value in (("missing", self.missing), ("other", self.other)):
            if value is not None and value not in declared:
                raise ValueError(f"{role} must be one of items (got {value!r})")
        if self.sensitivity is not None and self.sensitivity.levels is not None:
            _same("sensitivity.levels", "a level", set(self.sensitivity.levels), declared)
        if self.weights is not None:
            _same("weights", "a weight", set(self.weights), declared)


def _path(table: Table | None) -> list[str]:
    return [] if table is None else [table.path]


def _same(field: str, what: str, found: set[str], declared: set[str]) -> None:
    unknown, missing = sorted(found - declared), sorted(declared - found)
    if unknown:
        raise ValueError(f"{field} names items that items does not have: {', '.join(unknown[:5])}")
    if missing:
        raise ValueError(f"{field} must give {what} to every item; there is none for {', '.join(missing[:5])}")
