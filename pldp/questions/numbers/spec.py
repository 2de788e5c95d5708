"""The parts of a spec that speak of numbers: attributes with declared bounds, and how users spread a budget on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from pldp.channels.numeric.domain import Bounds
from pldp.errors import BrokenRule
from pldp.spec.fields import Model, Name, Ratio, Text, Whole, check_different
from pldp.spec.wording import Label

MAX_BINS = 256

Estimator = Literal["inverse-variance", "reports", "scaled"]
NumberMechanism = Literal["auto", "pm", "duchi", "hm", "laplace"]


def _as_number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    # Whole numbers of hundreds of digits are beyond what a double can hold.
    if (isinstance(value, int) and abs(value) > 1 << 1000) or not math.isfinite(value):
        raise ValueError("must be finite")
    return value


Finite = Annotated[float, BeforeValidator(_as_number)]


Probabilities = Annotated[tuple[Annotated[Finite, Field(gt=0, lt=1)], ...], Field(max_length=99)]


def check_bounds(bounds: tuple[float, float]) -> None:
    """BrokenRule unless the lower bound is below the upper one and their distance is finite."""
    low, high = bounds
    if not low < high or not math.isfinite(high - low):
        raise BrokenRule(f"must rise, from the lowest to the highest value (got {low:g} and {high:g})", field="bounds")


def check_probabilities(quantiles: tuple[float, ...]) -> None:
    """BrokenRule where a quantile is asked for twice."""
    check_different("quantiles", quantiles)


class Moments(Model):
    """What the plan may assume of the values, in the attribute's units."""

    mean: Finite
    standard_deviation: Annotated[Finite, Field(ge=0)]


class Number(Model):
    """An attribute whose mean is wanted, and where `quantiles` are given also they.

    Values beyond the bounds count as the bound; what is empty or no finite number becomes `missing`.
    """

    kind: Literal["number"]
    name: Name
    column: Text | None = None
    bounds: tuple[Finite, Finite]
    missing: Finite | None = None
    assumed: Moments | None = None
    mechanism: NumberMechanism = "auto"
    quantiles: Probabilities = ()
    bins: Annotated[Whole, Field(ge=2, le=MAX_BINS)] = 32
    label: Label = None

    @property
    def range(self) -> Bounds:
        return Bounds(*self.bounds)

    @property
    def moments(self) -> tuple[float, float]:
        """Assumed mean and E[x²] in [−1, 1] terms; spread evenly over the bounds unless stated."""
        if self.assumed is None:
            return 0.0, 1 / 3
        half = self.range.half_width
        mean = (self.assumed.mean - self.bounds[0]) / half - 1
        return mean, mean**2 + (self.assumed.standard_deviation / half) ** 2

    @model_validator(mode="after")
    def _inside(self) -> Self:
        check_bounds(self.bounds)
        low, high = self.bounds
        assumed = None if self.assumed is None else self.assumed.mean
        for role, value in (("missing", self.missing), ("assumed.mean", assumed)):
            if value is not None and not low <= value <= high:
                raise BrokenRule("must lie within bounds", field=role, value=f"{value:g}")
        if self.moments[1] > 1 + 1e-9:
            raise BrokenRule("is larger than any within bounds can be", field="assumed.standard_deviation")
        check_probabilities(self.quantiles)
        if self.bins & (self.bins - 1):
            raise BrokenRule("must be a power of two", field="bins", value=str(self.bins))
        return self


class Numbers(Model):
    """How every user spreads the budget for numbers over those that they report on."""

    sampling: Literal["optimal", "round", "floor", "mpm"] | Annotated[Whole, Field(ge=1)] = "optimal"
    tau: Annotated[Ratio, Field(ge=1, le=1000)] = Fraction(1)
    importance: tuple[Name, ...] | dict[Name, Text] | None = None
    weights: bool = False
    assumed_important: Annotated[Ratio, Field(ge=0, le=1)] = Fraction(1, 2)
    estimator: Estimator = "inverse-variance"
    share: Literal["by predicted error"] | Annotated[Ratio, Field(gt=0, lt=1)] = "by predicted error"

    @model_validator(mode="after")
    def _personal(self) -> Self:
        if self.tau > 1 and self.importance is None:
            raise ValueError(
                "tau above 1 needs importance: a column for every numeric attribute, or a list of the important ones"
            )
        if self.importance is not None and not self.importance:
            raise BrokenRule("must name an important attribute: if nothing matters, leave it out", field="importance")
        if self.weights and not isinstance(self.importance, dict):
            raise BrokenRule("true needs importance to be a column for every numeric attribute", field="weights")
        return self

    def check(self, numbers: Sequence[Number], *, with_categories: bool) -> None:
        """The rules that need the attributes."""
        named = {number.name for number in numbers}
        if isinstance(self.importance, dict) and set(self.importance) != named:
            raise BrokenRule(
                "must name a column for every numeric attribute, and for no other", field="numbers.importance"
            )
        if isinstance(self.importance, tuple) and not named.issuperset(self.importance):
            raise BrokenRule("must name numeric attributes", field="numbers.importance")
        questions = len(numbers) + sum(bool(number.quantiles) for number in numbers)
        if isinstance(self.sampling, int) and self.sampling > questions:
            raise BrokenRule(
                f"must be at most {questions}: one for each mean and one for each attribute with quantiles",
                field="numbers.sampling",
                value=str(self.sampling),
            )
        if not with_categories and self.share != "by predicted error":
            raise BrokenRule("is for specs that publish histograms too", field="numbers.share")
