"""The spec: one YAML file a release, validated whole before anything runs. See docs/spec.md."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from pldp.page.wording import Description, Label, Wording
from pldp.questions.histograms.spec import (
    MAX_VALUES,
    Binned,
    Category,
    Cells,
    Crosstab,
    Mechanism,
    Method,
    check_assumed,
)
from pldp.questions.numbers.spec import Number, Numbers
from pldp.spec.columns import check_roles
from pldp.spec.fields import Model, Name, Text, Whole
from pldp.spec.gates import Gates as Gates
from pldp.spec.levels import Budget, Expected, Levels, check_shares, is_whole
from pldp.spec.retention import Retention as Retention
from pldp.spec.runner import Runner
from pldp.spec.schedule import Schedule
from pldp.spec.source import Source

CROSS = " × "
PUBLIC_METHODS = ("guarded", "sum", "oc", "oc+", "op", "op-exact", "em")
LINEAR = ("guarded", "sum", "oc", "oc+", "auem", "self-calibrated")
HIDDEN_METHODS = ("auem", "self-calibrated", "sum", "em", "emoa-paper")


def _kind(value: Any) -> str:
    kind = value.get("kind", "category") if isinstance(value, dict) else getattr(value, "kind", "category")
    return kind if isinstance(kind, str) else ""


Attribute = Annotated[
    Annotated[Category, Tag("category")]
    | Annotated[Binned, Tag("binned")]
    | Annotated[Crosstab, Tag("crosstab")]
    | Annotated[Number, Tag("number")],
    Discriminator(_kind, "kind", "kind must be category, binned, crosstab or number"),
]


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
    """`method` gives the published answer (Spec.method where it is not stated); `also` stand beside it."""

    method: Method | None = None
    also: Annotated[tuple[Method, ...], Field(max_length=8)] = ()
    disagreement: Literal["sum", "refuse"] = "sum"
    alpha: Annotated[float, Field(gt=0, le=0.2)] = 1e-3
    reference: Reference | None = None
    steps: Annotated[Whole, Field(ge=1, le=1000)] = 20
    sum_to_one: bool = False

    @model_validator(mode="after")
    def _referenced(self) -> Self:
        if len({self.method, *self.also}) != 1 + len(self.also):
            raise ValueError("also must name other methods than method, each once")
        for method in (self.method, *self.also):
            if method in ("op", "op-exact") and self.reference is None:
                raise ValueError(f"method {method} needs a reference: public, previous, or truth in an evaluation")
        return self


class Intervals(Model):
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    target: Literal["users", "population"] = "users"


class Spec(Model):
    """A release that asks about a table of people, one row each."""

    kind: Annotated[Literal["histograms"], Field(exclude=True)] = "histograms"
    name: Name
    title: Label = None
    description: Description = None
    source: Source
    attributes: Annotated[tuple[Attribute, ...], Field(min_length=1, max_length=200)]
    budget: Budget
    levels: Levels
    mechanism: Mechanism = "auto"
    report_bytes: Annotated[Whole, Field(ge=1, le=MAX_VALUES)] | None = None
    numbers: Numbers | None = None
    expected: Expected = Expected()
    combination: Combination = Combination()
    postprocess: Literal["none", "clip", "norm-sub", "norm-mul", "base-cut", "auto"] = "norm-sub"
    intervals: Intervals = Intervals()
    gates: Gates = Gates()
    retention: Retention = Retention()
    schedule: Schedule | None = None
    runner: Annotated[Runner, Field(exclude=True)] = Runner()  # where, not what: no part of its identity

    def files(self) -> list[str]:
        """Everything whose content makes another release; the source first."""
        reference = self.combination.reference
        public = [] if reference is None or reference.path is None else [reference.path]
        return [self.source.path or self.source.reports or "", *public]

    def public_tables(self) -> dict[str, Reference]:
        """Public files that the plan or its estimates follow from, by the field that names them."""
        reference = self.combination.reference
        return {} if reference is None or reference.path is None else {"combination.reference": reference}

    @property
    def refusal(self) -> str | None:
        """Why no release may be made of it, where only an evaluation is."""
        reference = self.combination.reference
        if reference is not None and reference.kind == "truth":
            return (
                "combination.reference.kind must be public or previous in a release (got 'truth'): the true histogram "
                "is private. Use `pldp evaluate`"
            )
        return None

    @property
    def users(self) -> None:
        """People and their choices stand in the source itself."""

    @property
    def method(self) -> str:
        return self.combination.method or self.levels.usual_method

    @property
    def published(self) -> tuple[Cells | Crosstab, ...]:
        """The attributes that get a histogram."""
        return tuple(
            a for a in self.attributes if isinstance(a, Crosstab) or (isinstance(a, Cells) and not a.only_in_crosstabs)
        )

    @property
    def categories(self) -> tuple[Cells, ...]:
        """What has values of its own, bins included."""
        return tuple(a for a in self.attributes if isinstance(a, Cells))

    @property
    def number_attributes(self) -> tuple[Number, ...]:
        """The attributes that get a mean."""
        return tuple(a for a in self.attributes if isinstance(a, Number))

    def parts(self, attribute: Cells | Crosstab) -> tuple[Cells, ...]:
        """The categories an attribute is made of: itself, or what it crosses."""
        if not isinstance(attribute, Crosstab):
            return (attribute,)
        named = {a.name: a for a in self.categories}
        return tuple(named[name] for name in attribute.of)

    def labels(self, attribute: Cells | Crosstab) -> tuple[str, ...]:
        """Its values, the last part running fastest."""
        return tuple(CROSS.join(cell) for cell in product(*(part.values for part in self.parts(attribute))))

    def methods_of(self, attribute: Cells | Crosstab) -> tuple[str, ...]:
        """How its levels are combined, the published answer first, then what stands beside it."""
        named: tuple[str, ...] = attribute.methods or (self.method, *self.combination.also)
        return tuple(dict.fromkeys([*named, *self.levels.beside]))

    @property
    def wording(self) -> Wording:
        """What it says for readers alone; a cross-tab's values read as those of its parts."""
        labels: dict[str, dict[str, str]] = {a.name: a.labels for a in self.categories if a.labels}
        for attribute in self.attributes:
            if isinstance(attribute, Crosstab) and labels:
                parts = self.parts(attribute)
                shown = product(*([labels.get(p.name, {}).get(v, v) for v in p.values] for p in parts))
                labels[attribute.name] = {
                    value: label
                    for value, label in zip(self.labels(attribute), map(CROSS.join, shown), strict=True)
                    if value != label
                }
        titles = {a.name: a.label for a in self.attributes if a.label is not None}
        return Wording(self.title, self.description, titles, labels)

    def mechanism_of(self, attribute: Cells | Crosstab) -> str:
        """Its own, else the spec's."""
        return attribute.mechanism or self.mechanism

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        placed = (self.levels.column is not None) + (self.levels.assigned is not None)
        if self.source.reports is not None and placed:
            raise ValueError("levels: takes no column or assigned with source.reports: the folders name the levels")
        if self.source.reports is None and ((placed == 0 and len(self.levels.choices) > 1) or placed == 2):
            raise ValueError(
                "levels: needs either column (where users' choices stand) or assigned (shares drawn for a study)"
            )
        self.levels.check_dependence(personal=self.numbers is not None and isinstance(self.numbers.importance, dict))
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise ValueError("attributes must have different names")
        categories = {a.name for a in self.categories}
        for attribute in self.attributes:
            if isinstance(attribute, Crosstab):
                unknown = [name for name in attribute.of if name not in categories]
                if unknown or len(set(attribute.of)) != len(attribute.of):
                    raise ValueError(
                        f"attributes: {attribute.name}.of must name different category or binned attributes"
                    )
                size = prod(len(part.values) for part in self.parts(attribute))
                if size > MAX_VALUES:
                    raise ValueError(f"attributes: {attribute.name} has {size} combinations, more than {MAX_VALUES}")
                if len(set(self.labels(attribute))) != size:
                    raise ValueError(f"attributes: {attribute.name} has combinations that read alike")
                check_assumed(attribute.assumed, size)
        if not self.published and not self.number_attributes:
            raise ValueError("attributes must publish at least one histogram or number")
        self._check_numbers()
        self._check_columns()
        published = {attribute.name for attribute in self.published}
        if isinstance(self.budget.allocation, dict):
            if set(self.budget.allocation) != published:
                raise ValueError("budget.allocation must give a share to every published attribute and to no other")
            if not is_whole(self.budget.allocation.values()):
                raise ValueError("budget.allocation must sum to 1")
        ruled = categories | {number.name for number in self.number_attributes}
        if isinstance(self.levels.column, dict) and set(self.levels.column) != ruled:
            raise ValueError(
                "levels.column must name a column for every category, binned and numeric attribute, or one for all"
            )
        check_shares("expected.levels", self.expected.levels, self.levels.choices)
        crossed = any(isinstance(attribute, Crosstab) for attribute in self.attributes)
        if self.levels.hidden and isinstance(self.levels.column, dict) and crossed:
            raise ValueError(
                "levels.column must be one column for all attributes where levels are hidden and attributes are "
                "crossed: a cross-tab's reports would tell about several levels"
            )
        self._check_methods()
        return self

    def _check_methods(self) -> None:
        known = HIDDEN_METHODS if self.levels.hidden else PUBLIC_METHODS
        for attribute in self.published:
            own = attribute.methods or ()
            if len(set(own)) != len(own):
                raise ValueError(f"attributes: {attribute.name}.methods must differ from each other")
            for place, method in enumerate(self.methods_of(attribute)):
                field = (
                    f"attributes: {attribute.name}.methods" if own else "combination." + ("also" if place else "method")
                )
                if method not in known:
                    raise ValueError(
                        f"{field} must be one of {', '.join(known)} with levels.visibility: "
                        f"{self.levels.visibility} (got {method!r})"
                    )
                if method in ("op", "op-exact") and self.combination.reference is None:
                    raise ValueError(f"{field}: {method} needs combination.reference")
                if method == "self-calibrated" and len(self.labels(attribute)) < 3:
                    raise ValueError(
                        f"{field}: self-calibrated needs attributes of at least 3 values: of 2, the sum of the "
                        f"support tells nothing about the noise ({attribute.name}). Use em or auem"
                    )
                if self.postprocess in ("base-cut", "auto") and method not in LINEAR:
                    raise ValueError(f"postprocess: {self.postprocess} does not go with {field} {method!r}")

    def _check_numbers(self) -> None:
        if not self.number_attributes:
            if self.numbers is not None:
                raise ValueError("numbers: needs an attribute of kind: number")
            return
        if self.levels.hidden:
            raise ValueError(
                "levels.visibility must be public where there are numbers: what a user spends on a number shows in "
                "the report. Cut them into bins (kind: binned), or publish numbers and hidden levels in two releases"
            )
        (self.numbers or Numbers()).check(self.number_attributes, with_categories=bool(self.published))

    def _check_columns(self) -> None:
        values = {f"attributes.{a.name}": a.column or a.name for a in (*self.categories, *self.number_attributes)}
        column, importance = self.levels.column, None if self.numbers is None else self.numbers.importance
        own = column if isinstance(column, dict) else {}
        choices = {f"levels.column.{name}": stated for name, stated in own.items()}
        choices |= {"levels.column": column} if isinstance(column, str) else {}
        if isinstance(importance, dict):
            choices |= {f"numbers.importance.{name}": stated for name, stated in importance.items()}
        check_roles(values, choices, {"source.user_id": self.source.user_id})
