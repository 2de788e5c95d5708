"""The spec of a release of aggregates towards providers (`kind: aggregates`). See docs/aggregates.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from pldp.errors import BrokenRule, quoted
from pldp.spec.columns import check_roles
from pldp.spec.fields import Model, Name, Ratio, Text, Value, Whole, check_complete, check_different, each_or_all
from pldp.spec.gates import Gates
from pldp.spec.intervals import Intervals
from pldp.spec.levels import ExpectedUsers, Spend, is_whole
from pldp.spec.retention import Retention
from pldp.spec.runner import Runner
from pldp.spec.schedule import Schedule
from pldp.spec.source import Holdings, Table
from pldp.spec.wording import Description, Label, Labels, Wording, check_labels

MAX_ATTRIBUTES = 200
MAX_PROFILES = 10_000
MAX_PROVIDERS = 64
MAX_CAP = 1 << 20
MAX_SPREAD = 1e12
"""How far apart an objective's weights may be: beyond, doubles cannot weigh one against the other."""
PROFILE = "profile"
"""The column of a report that is no attribute."""

Unit = Literal["item", "occurrence"]
"""What budgets protect; different units are never added."""


class Items(Holdings):
    """Which user has which item, one row each; an empty item says that the user has none."""

    count: Text | None = None
    profile: Text | None = None


class CatalogueFile(Table):
    """Which item counts how much for which attribute, one row a pair. Public."""

    item: Text = "item"
    attribute: Text = "attribute"
    weight: Text | None = None
    grid: Annotated[Ratio, Field(ge=Fraction(1, 10**30), le=10**30)] = Fraction(1)


class Users(Table):
    """Who takes part with which profile, one row a user; users of whom there are no items too."""

    user: Text = "user"
    profile: Text = "profile"


class Provider(Model):
    """Who gets the aggregates; `reputation` says in words why it is trusted with so much."""

    epsilon: Spend
    reputation: Text | None = None


class Cap(Model):
    """The unit is an item with all its occurrences, of which at most `cap` are counted."""

    cap: Annotated[Whole, Field(ge=1, le=MAX_CAP)]


class Weighted(Model):
    """An objective of one's own: Σ_j weight_j · E|noise_j|^power."""

    weights: dict[Value, Annotated[float, Field(gt=0, allow_inf_nan=False)]]
    power: Annotated[float, Field(gt=0, le=8)] = 1.0

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        if self.weights and max(self.weights.values()) > MAX_SPREAD * min(self.weights.values()):
            raise BrokenRule(f"the largest must be at most {MAX_SPREAD:.0e} times the smallest", field="weights")
        return self


class ExpectedProfiles(ExpectedUsers):
    profiles: dict[Name, Annotated[Ratio, Field(ge=0, le=1)]] | None = None


Profile = Annotated[
    Annotated[dict[Value, Spend], Tag("each")] | Annotated[Spend, Tag("all")],
    Discriminator(each_or_all),
]
"""A budget for each attribute, or one number for every attribute."""
Count = Annotated[
    Annotated[Cap, Tag("each")] | Annotated[Literal["occurrence"], Tag("all")],
    Discriminator(each_or_all),
]
Loss = Annotated[
    Annotated[Weighted, Tag("each")] | Annotated[Literal["mae", "mse", "mael"], Tag("all")],
    Discriminator(each_or_all),
]


class AggregatesSpec(Model):
    kind: Literal["aggregates"]
    name: Name
    title: Label = None
    description: Description = None
    source: Items
    catalogue: CatalogueFile
    attributes: Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_ATTRIBUTES)]
    labels: Labels = None
    providers: Annotated[dict[Name, Provider], Field(min_length=1, max_length=MAX_PROVIDERS)]
    profiles: Annotated[dict[Name, Profile], Field(min_length=1, max_length=MAX_PROFILES)]
    default: Name | None = None
    users: Users | None = None
    count: Count = "occurrence"
    objective: Loss = "mae"
    expected: ExpectedProfiles = ExpectedProfiles()
    intervals: Intervals = Intervals()
    gates: Gates = Gates()
    retention: Retention = Retention()
    schedule: Schedule | None = None
    runner: Annotated[Runner, Field(exclude=True)] = Runner()

    def files(self) -> list[str]:
        """Everything whose content makes another release; the source first."""
        return [
            self.source.path or self.source.reports or "",
            self.catalogue.path,
            *([] if self.users is None else [self.users.path]),
        ]

    def public_tables(self) -> dict[str, CatalogueFile]:
        """Files that the plan follows from, by the field that names them."""
        return {"catalogue": self.catalogue}

    @property
    def refusal(self) -> str | None:
        return None

    @property
    def wording(self) -> Wording:
        """What it says for readers alone."""
        return Wording(self.title, self.description, self.labels or {})

    @property
    def cap(self) -> int | None:
        """How many occurrences of an item count; None where the unit is one occurrence."""
        return self.count.cap if isinstance(self.count, Cap) else None

    @property
    def unit(self) -> Unit:
        return "occurrence" if self.cap is None else "item"

    @property
    def default_profile(self) -> str:
        """The profile of whoever states none, or one that is not declared."""
        return self.default or next(iter(self.profiles))

    def budgets(self, profile: str) -> tuple[Fraction, ...]:
        """t_j of every attribute, in their order."""
        stated = self.profiles[profile]
        if isinstance(stated, dict):
            return tuple(stated[attribute] for attribute in self.attributes)
        return (stated,) * len(self.attributes)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        declared = set(self.attributes)
        check_different("attributes", self.attributes)
        check_labels(self.labels, self.attributes)
        if PROFILE in declared:
            raise ValueError(f"attributes: {PROFILE!r} is the name of another column of the reports; give it another")
        for profile, stated in self.profiles.items():
            if isinstance(stated, dict):
                check_complete(f"profiles.{profile}", "a budget", "attribute", stated, declared)
        if isinstance(self.objective, Weighted):
            check_complete("objective.weights", "a weight", "attribute", self.objective.weights, declared)
        if self.default is not None and self.default not in self.profiles:
            raise BrokenRule("must be one of profiles", field="default", value=quoted(self.default))
        if self.default is None and len(self.profiles) > 1:
            raise BrokenRule(
                "is required with several profiles: whose is a user who states none? The strictest", field="default"
            )
        if self.source.reports is not None and (self.users is not None or self.source.profile is not None):
            raise BrokenRule("takes no profile and no users: every report names its profile", field="source.reports")
        if self.users is not None and self.source.profile is not None:
            raise ValueError("profiles stand either in users or in the source's column profile, not in both")
        placed = self.users is not None or self.source.profile is not None or self.source.reports is not None
        if len(self.profiles) > 1 and not placed:
            raise ValueError("several profiles need users (a table of who has which) or source.profile (a column)")
        shares = self.expected.profiles
        if shares is not None:
            unknown = sorted(set(shares) - set(self.profiles))
            if unknown:
                raise BrokenRule(
                    f"names profiles that are not declared: {', '.join(unknown)}", field="expected.profiles"
                )
            if not is_whole(shares.values()):
                raise BrokenRule("must sum to 1", field="expected.profiles", value=f"{float(sum(shares.values())):g}")
        if self.intervals.target != "users":
            raise BrokenRule("must be users: totals are those of the users of the release", field="intervals.target")
        rows = self.source
        held = {"source.item": rows.item, "source.count": rows.count}
        check_roles(held, {"source.profile": rows.profile}, {"source.user": rows.user})
        if self.users is not None:
            check_roles({}, {"users.profile": self.users.profile}, {"users.user": self.users.user})
        return self
