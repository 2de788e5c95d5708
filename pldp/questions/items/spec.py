"""The spec of a release of frequent items (`kind: items`). See docs/items.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from pldp.errors import BrokenRule, quoted
from pldp.questions.items.sections import Choices, Itemsets, RowBudget, Sampling
from pldp.questions.items.sensitivity import Scores, Sensitivity
from pldp.spec.columns import check_roles
from pldp.spec.fields import Model, Name, Text, Value, check_complete, check_different, each_or_all
from pldp.spec.gates import Gates
from pldp.spec.intervals import Intervals
from pldp.spec.levels import Expected, WeightCap, check_shares
from pldp.spec.retention import Retention
from pldp.spec.runner import Runner
from pldp.spec.schedule import Schedule
from pldp.spec.source import Holdings, Table
from pldp.spec.wording import Description, Label, Labels, Wording, check_labels

MAX_ITEMS = 50_000
MAX_ONE = 2_000
"""Values of which a user has one: their channel is inverted."""
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


class Participants(Table):
    """Who takes part at which level, one row a user; users who have no items too."""

    user: Text = "user"
    level: Text | None = None


Items = Annotated[
    Annotated[ItemList, Tag("each")]
    | Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_ITEMS), Tag("all")],
    Discriminator(each_or_all),
]
"""Declared here, or in a public file."""


class Pooling(Model):
    """How levels are pooled; `method` as where it stands alone."""

    method: Literal["oc+", "sum"] | None = None
    level_weight_cap: WeightCap = None


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
    users: Participants | None = None
    itemsets: Itemsets
    sampling: Sampling = Sampling()
    combination: (
        Annotated[
            Annotated[Pooling, Tag("each")] | Annotated[Literal["oc+", "sum"], Tag("all")],
            Discriminator(each_or_all),
        ]
        | None
    ) = None
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
    def pooling(self) -> Pooling:
        """What is stated of how levels are pooled."""
        return self.combination if isinstance(self.combination, Pooling) else Pooling(method=self.combination)

    @property
    def method(self) -> Literal["oc+", "sum"]:
        """How levels are pooled: by their precision only where nobody's choice depends on what they hold."""
        return self.pooling.method or ("oc+" if self.levels.gamma == 1 else "sum")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not isinstance(self.items, ItemList):
            self.check_items(self.items)
        if self.holds == "many" and (self.missing is not None or self.other is not None):
            raise ValueError("missing and other go with holds: one; a row of items may be empty")
        if self.holds == "one" and self.itemsets.length != 1:
            raise BrokenRule("must be 1 with holds: one: nobody has two values", field="itemsets.length")
        if self.holds == "one" and self.protocol == "sampling":
            raise BrokenRule(
                "must be bounded or aprr with holds: one: there is nothing to sample from", field="protocol"
            )
        if self.protocol == "aprr" and self.sensitivity is None:
            raise BrokenRule("aprr needs sensitivity: its budgets follow the items' levels", field="protocol")
        if self.protocol == "sampling" and (self.sensitivity is not None or self.weights is not None):
            raise BrokenRule(
                "sampling treats all items alike: leave out sensitivity and weights, or use bounded", field="protocol"
            )
        if self.sensitivity is not None and self.sensitivity.split == "proportional":
            if self.holds == "one" or self.protocol == "aprr":
                raise BrokenRule(
                    "proportional goes with protocol: bounded and holds: many, where a row's bound "
                    "is split between items",
                    field="sensitivity.split",
                )
            if self.weights is not None:
                raise ValueError(
                    "weights go with sensitivity.split: capped: a proportional split leaves nothing to share by them"
                )
        if self.protocol != "aprr" and self.bound != self.budget.total:
            raise BrokenRule("goes with protocol: aprr; others keep the total exactly", field="budget.bound")
        choices = self.levels.choices
        placed = (self.source.level is not None) + (self.users is not None and self.users.level is not None)
        if self.source.reports is not None:
            if placed or self.users is not None:
                raise BrokenRule("takes no level and no users: the folders name the levels", field="source.reports")
            placed = 1
        if placed > 1:
            raise ValueError("levels stand either in users.level or in source.level, not in both")
        if len(choices) > 1 and not placed:
            raise BrokenRule(
                "several choices need source.level or users.level (the column they stand in)", field="levels"
            )
        if self.pooling.method == "oc+" and self.levels.gamma != 1:
            raise BrokenRule(
                "must be left out, which takes sum and assumes nothing, unless levels.dependence is 1: oc+ weighs "
                "levels by their precision, and its intervals hold only where users choose independently of what they "
                "hold",
                field="combination",
                value="oc+",
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
        check_different("items", items)
        check_labels(self.labels, items)
        if self.holds == "one" and not 2 <= len(items) <= MAX_ONE:
            raise BrokenRule(f"must be 2 to {MAX_ONE:,} with holds: one", field="items", value=f"{len(items):,}")
        for role, value in (("missing", self.missing), ("other", self.other)):
            if value is not None and value not in declared:
                raise BrokenRule("must be one of items", field=role, value=quoted(value))
        if self.sensitivity is not None and self.sensitivity.levels is not None:
            check_complete("sensitivity.levels", "a level", "item", self.sensitivity.levels, declared)
        if self.weights is not None:
            check_complete("weights", "a weight", "item", self.weights, declared)


def _path(table: Table | None) -> list[str]:
    return [] if table is None else [table.path]
