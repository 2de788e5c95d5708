"""The attributes of a spec that get a histogram: categories, numbers cut into bins, and products of both."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from pldp.channels.registry import PROTOCOLS
from pldp.errors import BrokenRule, quoted
from pldp.questions.numbers.spec import MAX_BINS, Finite, Probabilities, check_bounds, check_probabilities
from pldp.spec.fields import Model, Name, OneOf, Ratio, Text, Value, Whole, check_different
from pldp.spec.levels import is_whole
from pldp.spec.wording import Label, Labels, check_labels

MAX_VALUES = 10_000

Method = Literal["guarded", "sum", "oc", "oc+", "op", "op-exact", "em", "auem", "self-calibrated", "emoa-paper"]
Mechanism = Annotated[str, OneOf(("auto", *PROTOCOLS))]


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
    methods: Annotated[tuple[Method, ...], Field(min_length=1, max_length=8)] | None = None
    only_in_crosstabs: bool = False
    label: Label = None
    labels: Labels = None

    @model_validator(mode="after")
    def _declared(self) -> Self:
        check_different("values", self.values)
        for role, value in (("missing", self.missing), ("other", self.other)):
            if value is not None and value not in self.values:
                raise BrokenRule("must be one of values", field=role, value=quoted(value))
        check_assumed(self.assumed, len(self.values))
        check_labels(self.labels, self.values)
        return self


class Binned(Model):
    """A number cut at declared edges, or into equal bins of its bounds: its values are the bins.

    Bin i holds edges[i] ≤ x < edges[i + 1], the last one its upper edge too. What lies beyond the ends counts in the
    end bins; what is empty or no finite number becomes `missing`. Nothing finer than the bin enters the vault.
    """

    kind: Literal["binned"]
    name: Name
    column: Text | None = None
    edges: Annotated[tuple[Finite, ...], Field(min_length=3, max_length=MAX_BINS + 1)] | None = None
    bounds: tuple[Finite, Finite] | None = None
    bins: Annotated[Whole, Field(ge=2, le=MAX_BINS)] | None = None
    missing: Finite | None = None
    quantiles: Probabilities = ()
    assumed: tuple[Ratio, ...] | None = None
    mechanism: Mechanism | None = None
    methods: Annotated[tuple[Method, ...], Field(min_length=1, max_length=8)] | None = None
    only_in_crosstabs: bool = False
    label: Label = None
    labels: Labels = None

    @cached_property
    def cuts(self) -> tuple[float, ...]:
        """All edges, stated or equal."""
        if self.edges is not None:
            return tuple(float(edge) for edge in self.edges)
        low, *inner, high = np.linspace(*(self.bounds or (0.0, 1.0)), (self.bins or 1) + 1).tolist()
        # Edges as people write them: a cell of 0.3 is in the bin from 0.3, not in that below 0.30000000000000004.
        return (low, *(float(f"{edge:.15g}") for edge in inner), high)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The bins as text, in the notation of intervals."""
        shown = [repr(edge).removesuffix(".0") for edge in self.cuts]
        last = len(shown) - 2
        return tuple(f"[{low}, {high}{']' if i == last else ')'}" for i, (low, high) in enumerate(pairwise(shown)))

    @model_validator(mode="after")
    def _cut(self) -> Self:
        if (self.edges is None) == (self.bounds is None) or (self.bounds is None) != (self.bins is None):
            raise ValueError("needs either edges, or bounds and bins for bins of equal width")
        if self.bounds is not None:
            check_bounds(self.bounds)
        cuts = self.cuts
        if any(low >= high for low, high in pairwise(cuts)) or not math.isfinite(cuts[-1] - cuts[0]):
            raise BrokenRule("must rise, each above the one before", field="edges")
        if self.missing is not None and not cuts[0] <= self.missing <= cuts[-1]:
            raise BrokenRule("must lie within the edges", field="missing", value=f"{self.missing:g}")
        check_probabilities(self.quantiles)
        if self.quantiles and self.only_in_crosstabs:
            raise ValueError("quantiles need a histogram of the attribute itself: leave out only_in_crosstabs")
        check_assumed(self.assumed, len(self.values))
        check_labels(self.labels, self.values)
        return self


Cells = Category | Binned
"""What a histogram may be of by itself, and what may be crossed."""


class Crosstab(Model):
    """The declared product of attributes: one histogram over their combinations, with a budget of its own."""

    kind: Literal["crosstab"]
    name: Name
    of: Annotated[tuple[Name, ...], Field(min_length=2, max_length=4)]
    assumed: tuple[Ratio, ...] | None = None
    mechanism: Mechanism | None = None
    methods: Annotated[tuple[Method, ...], Field(min_length=1, max_length=8)] | None = None
    label: Label = None


def check_assumed(assumed: tuple[Fraction, ...] | None, size: int) -> None:
    """BrokenRule unless assumed frequencies are one share per value and sum to one."""
    if assumed is None:
        return
    if len(assumed) != size:
        raise BrokenRule(f"needs one frequency a value ({size}, got {len(assumed)})", field="assumed")
    if min(assumed) >= 0 and max(assumed) > 1:
        raise BrokenRule("must be shares of at most 1", field="assumed")
    if min(assumed) < 0 or not is_whole(assumed):
        raise BrokenRule(
            f"must be non-negative and sum to 1 (got a sum of {float(sum(assumed, Fraction())):g})", field="assumed"
        )
