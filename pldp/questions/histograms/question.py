"""The histograms of a release as one question: categories, binned numbers and cross-tabs of the same people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from pldp.channels.protocol import Counts
from pldp.channels.words import word_types
from pldp.estimate.honest import collision
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import whole_counts
from pldp.privacy.leak import level_leak
from pldp.questions.histograms import asked, combine, doubts, evaluate, gates, predict, prove, reports, tables
from pldp.questions.histograms import statement as stated
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan
from pldp.questions.question import Part, Partitions, Question, Repeats, Rows, Sheet
from pldp.spec.fields import Ratio


class Histograms(Question):
    kind: Literal["histograms"] = "histograms"
    parted: ClassVar[str] = "attributes"
    total: Ratio
    """The budget of the whole release, of which the attributes have shares."""
    levels: tuple[str, ...]
    """From the strictest to the weakest."""
    attributes: tuple[AttributePlan, ...]
    recipe: Recipe
    """How the levels of an attribute are combined; `method` is the default answer."""
    tested: int
    """How many results of the whole release share the false alarms of the test for agreement."""
    expected_users: int
    expected_shares: tuple[float, ...]
    one_level_for_all: bool
    hidden: HiddenPlan | None = None
    """Where levels are hidden: one protocol per attribute, one unordered file of reports, nothing by level."""

    @property
    def cells(self) -> int:
        return sum(len(attribute.values) for attribute in self.attributes)

    @property
    def granted(self) -> Fraction:
        return sum((attribute.budget for attribute in self.attributes), Fraction(0))

    @property
    def worst_total(self) -> Fraction:
        """mpldp Theorem 5: a user may choose the weakest level everywhere."""
        return sum((max(level.budget for level in a.levels) for a in self.attributes), Fraction(0))

    def spends(self) -> list[tuple[Fraction, Fraction]]:
        spent = [(level.protocol.worst_ratio, level.budget) for a in self.attributes for level in a.levels]
        if self.hidden is not None:
            spent.append((self.hidden.protocol.worst_ratio, self.hidden.budget))
        return spent

    def leak(self, attributes: Sequence[AttributePlan] | None = None) -> Fraction | None:
        """What reports tell about the level, as the worst ratio of probabilities at one value; None where public.

        Of these attributes together with one report about the level; of all reports of a user, unless they are given.
        Where attributes have levels of their own, people may choose alike everywhere: the leaks multiply.
        """
        if self.hidden is None:
            return None
        ruled = [[a] for a in self.attributes] if not self.one_level_for_all else [list(self.attributes)]
        groups = ruled if attributes is None else [list(attributes)]
        leaks = [level_leak([a.protocols for a in group], self.hidden.protocol) for group in groups]
        bounded = [leak for leak in leaks if leak is not None]
        if len(bounded) < len(leaks):
            raise ValueError("hidden levels need one protocol and alphabet an attribute")
        return prod(bounded, start=Fraction(1))

    def expected_sizes(self, users: int | None = None) -> Counts:
        return whole_counts(np.asarray(self.expected_shares), users or self.expected_users)

    def choice_field(self, attribute: int) -> str:
        """The vault's column with the level that rules an attribute."""
        return f"level_{0 if self.one_level_for_all else attribute}"

    @cached_property
    def places(self) -> dict[str, tuple[int, int | None]]:
        """Attribute and level (None for hidden ones) of every sheet by its path, but of those about the level."""
        if self.hidden is not None:
            return {f"attribute={a.name}": (i, None) for i, a in enumerate(self.attributes)}
        return {
            f"attribute={a.name}/level={level}": (i, code)
            for i, a in enumerate(self.attributes)
            for code, level in enumerate(self.levels)
        }

    def sheets(self) -> tuple[Sheet, ...]:
        return tuple(self._sheet(path, *place) for path, place in self.places.items())

    def _sheet(self, path: str, attribute: int, level: int | None) -> Sheet:
        name, field = self.attributes[attribute].name, self.choice_field(attribute)
        if level is not None:
            chosen = self.levels[level]
            return Sheet(path, (f"value_{attribute}",), (name, chosen), chosen, field, level)
        ruled = "" if self.one_level_for_all else name
        about = Sheet(f"levels={ruled}" if ruled else "levels", (field,), ("levels", ruled))
        return Sheet(path, (f"value_{attribute}", field), (name, "hidden"), beside=about)

    def report_types(self, sheet: Sheet) -> dict[str, str]:
        attribute, level = self.places[sheet.path]
        protocol = self.attributes[attribute].protocols[level or 0]
        return {**({reports.LEVEL: "u1"} if level is None else {}), **word_types(protocol.report_bytes)}

    def collision(self, sheet: Sheet) -> float:
        attribute, level = self.places[sheet.path]
        protocols = self.attributes[attribute].protocols
        return max(map(collision, protocols)) if level is None else collision(protocols[level])

    def paths(self, attribute: int) -> list[str]:
        """The sheets of an attribute."""
        return [path for path, (number, _) in self.places.items() if number == attribute]

    def people(self, rows: Mapping[str, int]) -> int:
        by_attribute = [0] * len(self.attributes)
        for path, (attribute, _) in self.places.items():
            by_attribute[attribute] += rows[path]
        return max(by_attribute)

    @property
    def methods(self) -> tuple[str, ...]:
        """All that any attribute names; the default answer first."""
        named = (method for attribute in self.attributes for method in attribute.methods)
        return tuple(dict.fromkeys((self.recipe.method, *named)))

    def methods_of(self, attribute: AttributePlan) -> tuple[str, ...]:
        return attribute.methods or (self.recipe.method,)

    def statement(self, perturbed_by: str) -> Part:
        return stated.statement(self)

    @property
    def refusal(self) -> str | None:
        if "emoa-paper" in self.methods:
            return (
                "combination.method must not be emoa-paper in a release: it is wrong, and here to be compared with. "
                "Use em, or `pldp evaluate`"
            )
        return None

    @property
    def target(self) -> str:
        return "the typical share of every histogram"

    def shares(self) -> Iterable[tuple[str, str]]:
        return ((attribute.name, value) for attribute in self.attributes for value in attribute.values)

    def true_shares(self, people: Partitions) -> dict[tuple[str, str], float]:
        truth = evaluate.HistogramsTruth(evaluate.true_counts(self, people)).shares
        return dict(zip(self.shares(), np.concatenate(list(truth.values())).tolist(), strict=True))

    def truth(self, people: Partitions, result: Any) -> evaluate.HistogramsTruth:
        return evaluate.true_histograms(self, people)

    def study(self, people: Partitions, truth: Any, result: Any, repeats: Repeats) -> dict[str, Rows]:
        return evaluate.study(self, truth, result, repeats)

    # Its stages: functions of the modules beside, which take the plan first and so are methods as they stand.
    draw: ClassVar = reports.draw
    asked: ClassVar = asked.asked
    tally: ClassVar = reports.tally
    invalid: ClassVar = reports.invalid
    report_weights: ClassVar = reports.weights
    likeliest: ClassVar = doubts.likeliest_report
    doubts: ClassVar = doubts.doubts
    conclude: ClassVar = combine.conclude
    combine: ClassVar = combine.combine
    budgets: ClassVar = tables.budgets
    tables: ClassVar = tables.tables
    gates: ClassVar = gates.gates
    recomputed: ClassVar = prove.recomputed
    recovered: ClassVar = prove.recovered
    rehearsed: ClassVar = prove.rehearsed
    exposed: ClassVar = stated.exposed
    predictions: ClassVar = predict.predictions
    typical_errors: ClassVar = predict.typical_errors
