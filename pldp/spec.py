"""The spec: one YAML file a release, validated whole before anything runs. See docs/spec.md."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from pldp.fields import Model, Name, Ratio, Text, Value, Whole
from pldp.schedule import Schedule
from pldp.spec_numbers import Number, Numbers

MAX_VALUES = 10_000
MAX_BUDGET = 1_000
MAX_USERS = 1_000_000_000
CROSS = " × "
PUBLIC_METHODS = ("sum", "oc", "oc+", "op", "op-exact", "em")
HIDDEN_METHODS = ("em", "auem", "self-calibrated", "emoa-paper")

Mechanism = Literal["auto", "krr", "brr", "oue", "olh", "subset"]


class Csv(Model):
    """How to read a CSV source. Cells are text; nothing is guessed."""

    delimiter: Annotated[str, Field(min_length=1, max_length=4)] = ","
    quote: Annotated[str, Field(max_length=1)] = '"'
    header: bool = True
    columns: tuple[Name, ...] | None = None
    comment: Annotated[str, Field(max_length=1)] = ""
    trim: bool = True

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.header and not self.columns:
            raise ValueError("needs columns, because header is false")
        if len({name.lower() for name in self.columns or ()}) != len(self.columns or ()):
            raise ValueError("columns must have different names, whatever their case")
        signs = [sign for sign in (self.quote, self.comment) if sign]
        if {"\n", "\r", "\0"} & {*self.delimiter, *signs}:
            raise ValueError("delimiter, quote and comment cannot be the end of a line")
        if len(set(signs)) != len(signs) or any(sign in self.delimiter for sign in signs):
            raise ValueError("delimiter, quote and comment must differ from each other")
        return self


class Source(Model):
    """A file of raw rows (`path`), or a folder of reports that clients perturbed themselves (`reports`)."""

    path: Text | None = None
    reports: Text | None = None
    format: Literal["csv", "parquet"] | None = None
    csv: Csv = Csv()
    user_id: Text | None = None
    one_row_per_user: bool = False

    @model_validator(mode="after")
    def _identified(self) -> Self:
        if (self.path is None) == (self.reports is None):
            raise ValueError("needs either path (raw rows) or reports (a folder of what clients sent)")
        if self.reports is not None:
            if self.user_id is not None or self.one_row_per_user:
                raise ValueError("takes no user_id or one_row_per_user with reports: they hold no ids")
            return self
        if (self.user_id is None) == (not self.one_row_per_user):
            raise ValueError("needs either user_id or one_row_per_user: true; a user in two rows would spend twice")
        return self


class Category(Model):
    """An attribute with declared values. A null becomes `missing`, an undeclared value becomes `other`."""

    kind: Literal["category"] = "category"
    name: Name
    column: Text | None = None
    values: Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_VALUES)]
    missing: Value | None = None
    other: Value | None = None
    assumed: tuple[Ratio, ...] | None = None
    mechanism: Mechanism | None = None
    only_in_crosstabs: bool = False

    @model_validator(mode="after")
    def _declared(self) -> Self:
        if len(set(self.values)) != len(self.values):
            raise ValueError("values must differ from each other")
        for role, value in (("missing", self.missing), ("other", self.other)):
            if value is not None and value not in self.values:
                raise ValueError(f"{role} must be one of values (got {value!r})")
        _check_assumed(self.assumed, len(self.values))
        return self


class Crosstab(Model):
    """The declared product of attributes: one histogram over their combinations, with a budget of its own."""

    kind: Literal["crosstab"]
    name: Name
    of: Annotated[tuple[Name, ...], Field(min_length=2, max_length=4)]
    assumed: tuple[Ratio, ...] | None = None
    mechanism: Mechanism | None = None


def _kind(value: Any) -> str:
    kind = value.get("kind", "category") if isinstance(value, dict) else getattr(value, "kind", "category")
    return kind if isinstance(kind, str) else ""


Attribute = Annotated[
    Annotated[Category, Tag("category")] | Annotated[Crosstab, Tag("crosstab")] | Annotated[Number, Tag("number")],
    Discriminator(_kind, "kind", "kind must be category, crosstab or number"),
]


def _is_whole(shares: Iterable[Fraction]) -> bool:
    """Whether shares sum to one, as far as a person writes decimals."""
    return abs(sum(shares, Fraction()) - 1) <= Fraction(1, 1000)


def _check_assumed(assumed: tuple[Fraction, ...] | None, size: int) -> None:
    if assumed is None:
        return
    if len(assumed) != size:
        raise ValueError(f"assumed needs one frequency a value ({size}, got {len(assumed)})")
    if min(assumed) >= 0 and max(assumed) > 1:
        raise ValueError("assumed must be shares of at most 1")
    if min(assumed) < 0 or not _is_whole(assumed):
        raise ValueError(
            f"assumed must be non-negative and sum to 1 (got a sum of {float(sum(assumed, Fraction())):g})"
        )


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
        _check_shares("assigned", self.assigned, self.choices)
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


def _check_shares(field: str, shares: dict[str, Fraction] | None, choices: dict[str, Fraction]) -> None:
    if shares is None:
        return
    unknown = set(shares) - set(choices)
    if unknown:
        raise ValueError(f"{field} names levels that choices does not have: {', '.join(sorted(unknown))}")
    if not _is_whole(shares.values()):
        raise ValueError(f"{field} must sum to 1 (got {float(sum(shares.values(), Fraction())):g})")


class Expected(Model):
    """What the plan may assume, since it never sees the data."""

    users: Annotated[Whole, Field(ge=1, lt=MAX_USERS)] = 100_000
    levels: dict[Name, Annotated[Ratio, Field(ge=0, le=1)]] | None = None


class Reference(Model):
    """What `op` measures its error against. `truth` exists only in an evaluation."""

    kind: Literal["truth", "public", "previous"]
    path: Text | None = None

    @model_validator(mode="after")
    def _found(self) -> Self:
        if (self.kind == "public") != (self.path is not None):
            raise ValueError("needs path exactly when kind is public (a CSV of attribute, value, frequency)")
        return self


class Combination(Model):
    """`method` is oc+ unless given, em where levels are hidden."""

    method: Literal["sum", "oc", "oc+", "op", "op-exact", "em", "auem", "self-calibrated", "emoa-paper"] | None = None
    disagreement: Literal["sum", "refuse"] = "sum"
    alpha: Annotated[float, Field(gt=0, le=0.2)] = 1e-3
    reference: Reference | None = None
    steps: Annotated[Whole, Field(ge=1, le=1000)] = 20
    sum_to_one: bool = False

    @model_validator(mode="after")
    def _referenced(self) -> Self:
        if self.method in ("op", "op-exact") and self.reference is None:
            raise ValueError(f"method {self.method} needs a reference: public, previous, or truth in an evaluation")
        return self


class Intervals(Model):
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    target: Literal["users", "population"] = "users"


class Gates(Model):
    minimum_users: Annotated[Whole, Field(ge=1, lt=MAX_USERS)] = 1


class Retention(Model):
    vault: Literal["delete", "keep"] = "delete"


class Spec(Model):
    name: Name
    source: Source
    attributes: Annotated[tuple[Attribute, ...], Field(min_length=1, max_length=200)]
    budget: Budget
    levels: Levels
    mechanism: Mechanism = "auto"
    report_bytes: Annotated[Whole, Field(ge=1, le=MAX_VALUES)] | None = None
    numbers: Numbers | None = None
    expected: Expected = Expected()
    combination: Combination = Combination()
    postprocess: Literal["none", "clip", "norm-sub", "norm-mul", "base-cut"] = "norm-sub"
    intervals: Intervals = Intervals()
    gates: Gates = Gates()
    retention: Retention = Retention()
    schedule: Schedule | None = None

    @property
    def method(self) -> str:
        return self.combination.method or ("em" if self.levels.hidden else "oc+")

    @property
    def published(self) -> tuple[Category | Crosstab, ...]:
        """The attributes that get a histogram."""
        return tuple(
            a
            for a in self.attributes
            if isinstance(a, Crosstab) or (isinstance(a, Category) and not a.only_in_crosstabs)
        )

    @property
    def number_attributes(self) -> tuple[Number, ...]:
        """The attributes that get a mean."""
        return tuple(a for a in self.attributes if isinstance(a, Number))

    def parts(self, attribute: Category | Crosstab) -> tuple[Category, ...]:
        """The categories an attribute is made of: itself, or what it crosses."""
        if isinstance(attribute, Category):
            return (attribute,)
        named = {a.name: a for a in self.attributes if isinstance(a, Category)}
        return tuple(named[name] for name in attribute.of)

    def labels(self, attribute: Category | Crosstab) -> tuple[str, ...]:
        """Its values, the last part running fastest."""
        return tuple(CROSS.join(cell) for cell in product(*(part.values for part in self.parts(attribute))))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        placed = (self.levels.column is not None) + (self.levels.assigned is not None)
        if self.source.reports is not None and placed:
            raise ValueError("levels: takes no column or assigned with source.reports: the folders name the levels")
        if self.source.reports is None and ((placed == 0 and len(self.levels.choices) > 1) or placed == 2):
            raise ValueError(
                "levels: needs either column (where users' choices stand) or assigned (shares drawn for a study)"
            )
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise ValueError("attributes must have different names")
        categories = {a.name for a in self.attributes if isinstance(a, Category)}
        for attribute in self.attributes:
            if isinstance(attribute, Crosstab):
                unknown = [name for name in attribute.of if name not in categories]
                if unknown or len(set(attribute.of)) != len(attribute.of):
                    raise ValueError(f"attributes: {attribute.name}.of must name different category attributes")
                size = prod(len(part.values) for part in self.parts(attribute))
                if size > MAX_VALUES:
                    raise ValueError(f"attributes: {attribute.name} has {size} combinations, more than {MAX_VALUES}")
                if len(set(self.labels(attribute))) != size:
                    raise ValueError(f"attributes: {attribute.name} has combinations that read alike")
                _check_assumed(attribute.assumed, size)
        if not self.published and not self.number_attributes:
            raise ValueError("attributes must publish at least one histogram or number")
        self._check_numbers()
        published = {attribute.name for attribute in self.published}
        if isinstance(self.budget.allocation, dict):
            if set(self.budget.allocation) != published:
                raise ValueError("budget.allocation must give a share to every published attribute and to no other")
            if not _is_whole(self.budget.allocation.values()):
                raise ValueError("budget.allocation must sum to 1")
        if isinstance(self.levels.column, dict) and set(self.levels.column) != categories:
            raise ValueError("levels.column must name a column for every category attribute, or one for all")
        _check_shares("expected.levels", self.expected.levels, self.levels.choices)
        crossed = any(isinstance(attribute, Crosstab) for attribute in self.attributes)
        if self.levels.hidden and isinstance(self.levels.column, dict) and crossed:
            raise ValueError(
                "levels.column must be one column for all attributes where levels are hidden and attributes are "
                "crossed: a cross-tab's reports would tell about several levels"
            )
        known = HIDDEN_METHODS if self.levels.hidden else PUBLIC_METHODS
        if self.method not in known:
            raise ValueError(
                f"combination.method must be one of {', '.join(known)} with levels.visibility: "
                f"{self.levels.visibility} (got {self.method!r})"
            )
        small = [a.name for a in self.published if len(self.labels(a)) < 3]
        if self.method == "self-calibrated" and small:
            raise ValueError(
                "combination.method: self-calibrated needs attributes of at least 3 values: of 2, the sum of the "
                f"support tells nothing about the noise ({', '.join(small)}). Use em or auem"
            )
        if self.postprocess == "base-cut" and self.method not in ("sum", "oc", "oc+", "auem", "self-calibrated"):
            raise ValueError(f"postprocess: base-cut does not go with combination.method {self.method!r}")
        return self

    def _check_numbers(self) -> None:
        if not self.number_attributes:
            if self.numbers is not None:
                raise ValueError("numbers: needs an attribute of kind: number")
            return
        if self.levels.hidden:
            raise ValueError(
                "levels.visibility must be public where there are numbers: what a user spends on a number shows in "
                "the report. Publish numbers and hidden levels in two releases"
            )
        if isinstance(self.levels.column, dict):
            raise ValueError("levels.column must be one column for all attributes where there are numbers")
        if self.source.reports is not None:
            raise ValueError("source.reports holds reports on categories only: numbers need source.path")
        (self.numbers or Numbers()).check(self.number_attributes, with_categories=bool(self.published))
