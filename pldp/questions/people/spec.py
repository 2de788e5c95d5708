"""The spec: one YAML file a release, validated whole before anything runs. See docs/spec.md."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pldp.errors import BrokenRule, quoted
from pldp.estimate.postprocess import POSTPROCESSES
from pldp.questions.histograms.spec import (
    MAX_VALUES,
    Cells,
    Crosstab,
    Mechanism,
    check_assumed,
)
from pldp.questions.numbers.spec import Number, Numbers
from pldp.questions.people.attributes import Attribute
from pldp.questions.people.combination import LINEAR, Combination, Reference
from pldp.spec.columns import check_roles
from pldp.spec.fields import Model, Name, OneOf, Whole
from pldp.spec.gates import Gates
from pldp.spec.intervals import Intervals
from pldp.spec.levels import Budget, Expected, Levels, check_shares, is_whole
from pldp.spec.retention import Retention
from pldp.spec.runner import Runner
from pldp.spec.schedule import Schedule
from pldp.spec.source import Source
from pldp.spec.wording import Description, Label, Wording

CROSS = " × "


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
    postprocess: Annotated[str, OneOf(tuple(POSTPROCESSES))] | None = None
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
            raise BrokenRule(
                "must have no column or assigned with source.reports: the folders name the levels", field="levels"
            )
        if self.source.reports is None and ((placed == 0 and len(self.levels.choices) > 1) or placed == 2):
            raise BrokenRule(
                "must have either column (where users' choices stand) or assigned (shares drawn for a study)",
                field="levels",
            )
        self.levels.check_dependence(personal=self.numbers is not None and isinstance(self.numbers.importance, dict))
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise BrokenRule("must have different names", field="attributes")
        categories = {a.name for a in self.categories}
        for attribute in self.attributes:
            if isinstance(attribute, Crosstab):
                unknown = [name for name in attribute.of if name not in categories]
                if unknown or len(set(attribute.of)) != len(attribute.of):
                    other = f"; {quoted(unknown[0])} is none" if unknown else ""
                    raise ValueError(
                        f"attributes: {attribute.name}.of must name different category or binned attributes{other}"
                    )
                size = prod(len(part.values) for part in self.parts(attribute))
                if size > MAX_VALUES:
                    raise ValueError(f"attributes: {attribute.name} has {size} combinations, more than {MAX_VALUES}")
                if len(set(self.labels(attribute))) != size:
                    raise ValueError(f"attributes: {attribute.name} has combinations that read alike")
                check_assumed(attribute.assumed, size)
        if not self.published and not self.number_attributes:
            raise BrokenRule("must publish at least one histogram or number", field="attributes")
        self._check_numbers()
        self._check_columns()
        published = {attribute.name for attribute in self.published}
        if isinstance(self.budget.allocation, dict):
            if wrong := min(set(self.budget.allocation) ^ published, default=""):
                state = "has none" if wrong in published else "is not published"
                raise BrokenRule(
                    f"must give a share to every published attribute and to no other; {quoted(wrong)} {state}",
                    field="budget.allocation",
                )
            if not is_whole(shares := self.budget.allocation.values()):
                raise BrokenRule("must sum to 1", field="budget.allocation", value=f"{float(sum(shares)):g}")
        ruled = categories | {number.name for number in self.number_attributes}
        if isinstance(self.levels.column, dict) and set(self.levels.column) != ruled:
            raise BrokenRule(
                "must name a column for every category, binned and numeric attribute, or one for all",
                field="levels.column",
            )
        check_shares("expected.levels", self.expected.levels, self.levels.choices)
        crossed = any(isinstance(attribute, Crosstab) for attribute in self.attributes)
        if self.levels.hidden and isinstance(self.levels.column, dict) and crossed:
            raise BrokenRule(
                "must be one column for all attributes where levels are hidden and attributes are "
                "crossed: a cross-tab's reports would tell about several levels",
                field="levels.column",
            )
        self._check_methods()
        return self

    def _check_methods(self) -> None:
        for attribute in self.published:
            name, stated = attribute.name, attribute.methods or ()
            if len(set(stated)) != len(stated):
                raise ValueError(f"attributes: {name}.methods must differ from each other")
            for place, method in enumerate(self.methods_of(attribute)):
                field = f"attributes: {name}.methods" if stated else "combination." + ("also" if place else "method")
                self.combination.check_method(field, method, self.levels.visibility, name, len(self.labels(attribute)))
                if self.postprocess and POSTPROCESSES[self.postprocess].measures and method not in LINEAR:
                    raise ValueError(f"postprocess: {self.postprocess} does not go with {field} {method!r}")

    def _check_numbers(self) -> None:
        if not self.number_attributes:
            if self.numbers is not None:
                raise BrokenRule("needs an attribute of kind: number", field="numbers")
            return
        if self.levels.hidden:
            raise BrokenRule(
                "must be public where there are numbers: what a user spends on a number shows in "
                "the report. Cut them into bins (kind: binned), or publish numbers and hidden levels in two releases",
                field="levels.visibility",
            )
        (self.numbers or Numbers()).check(self.number_attributes, with_categories=bool(self.published))

    def _check_columns(self) -> None:
        values = {f"attributes.{a.name}": a.column or a.name for a in (*self.categories, *self.number_attributes)}
        column, importance = self.levels.column, None if self.numbers is None else self.numbers.importance
        by_attribute = column if isinstance(column, dict) else {}
        choices = {f"levels.column.{name}": stated for name, stated in by_attribute.items()}
        choices |= {"levels.column": column} if isinstance(column, str) else {}
        if isinstance(importance, dict):
            choices |= {f"numbers.importance.{name}": stated for name, stated in importance.items()}
        check_roles(values, choices, {"source.user_id": self.source.user_id})
