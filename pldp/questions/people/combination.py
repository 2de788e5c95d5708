"""How levels are combined: the methods that a spec may name, and what each needs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pldp.errors import BrokenRule, quoted
from pldp.questions.histograms.spec import (
    Method,
)
from pldp.spec.fields import Model, Text, Whole
from pldp.spec.levels import WeightCap

PUBLIC_METHODS = ("guarded", "sum", "oc", "oc+", "op", "op-exact", "em")
LINEAR = ("guarded", "sum", "oc", "oc+", "auem", "self-calibrated")
UNWEIGHED = {
    "op": "chooses weights by what the reports say",
    "op-exact": "chooses weights by what the reports say",
    "em": "weighs every report by its likelihood, and no level has a weight",
}
"""Methods without weights of levels that could be bounded beforehand, and why."""
HIDDEN_METHODS = ("auem", "self-calibrated", "sum", "em", "emoa-paper")


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
    level_weight_cap: WeightCap = None

    @model_validator(mode="after")
    def _referenced(self) -> Self:
        if len({self.method, *self.also}) != 1 + len(self.also):
            raise BrokenRule("must name other methods than method, each once", field="also")
        for method in (self.method, *self.also):
            if method in ("op", "op-exact") and self.reference is None:
                raise ValueError(f"method {method} needs a reference: public, previous, or truth in an evaluation")
        return self

    def check_method(self, field: str, method: str, visibility: str, attribute: str, n_values: int) -> None:
        """What a method needs of the attribute whose levels it combines; ValueError otherwise."""
        known = HIDDEN_METHODS if visibility == "hidden" else PUBLIC_METHODS
        if method not in known:
            raise BrokenRule(
                f"must be one of {', '.join(known)} with levels.visibility: {visibility}",
                field=field,
                value=quoted(method),
            )
        if method in ("op", "op-exact") and self.reference is None:
            raise ValueError(f"{field}: {method} needs combination.reference")
        if self.level_weight_cap is not None:
            self._check_cap(method, visibility)
        if method == "self-calibrated" and n_values < 3:
            raise BrokenRule(
                f"self-calibrated needs attributes of at least 3 values: of 2, the sum of the "
                f"support tells nothing about the noise ({attribute}). Use em or auem",
                field=field,
            )

    @staticmethod
    def _check_cap(method: str, visibility: str) -> None:
        field = "combination.level_weight_cap"
        if visibility == "hidden":
            raise BrokenRule(
                "must be left out where levels are hidden: nothing is known by level, so that levels have no weights "
                "to bound. `pldp plan` says how far fake people reach (table fakes)",
                field=field,
            )
        if method in UNWEIGHED:
            raise BrokenRule(
                f"does not go with {method}, which {UNWEIGHED[method]}. Use guarded, sum, oc or oc+, or leave it out",
                field=field,
            )
