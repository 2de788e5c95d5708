"""The plan's part about numbers: which questions there are, how many of them a user answers, and at which budgets.

A *question* is the mean of an attribute, or its distribution where quantiles are asked for. A user at some level
samples k of the Q questions and spends the level's budget on them, each with one of the level's classes
(docs/numeric.md, sections 6 and 7). So one rule covers both, and a user's budgets sum to the level's exactly.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Literal

from pldp.channels.exact import float_above, log_above
from pldp.channels.numeric.domain import Bounds
from pldp.channels.numeric.mechanism import NumericMechanism
from pldp.channels.numeric.window import Window
from pldp.questions.numbers.budgets import BudgetClasses
from pldp.questions.numbers.choice import MECHANISMS
from pldp.spec.fields import Frozen, Ratio

MEAN, DISTRIBUTION = "mean", "distribution"
RESOLUTION = 128


class MechanismPlan(Frozen):
    """What draws the reports of one question, level and class."""

    mechanism: str
    parameters: dict[str, int]

    @cached_property
    def realised(self) -> NumericMechanism:
        return MECHANISMS[self.mechanism](**self.parameters)

    @property
    def window(self) -> Window:
        if not isinstance(self.realised, Window):
            raise TypeError("only windows tell a distribution")
        return self.realised


class ClassPlan(Frozen):
    """One of the budgets that a sampled question may get at a level; `mechanisms` has one a question."""

    units: int
    budget: Ratio
    mechanisms: tuple[MechanismPlan, ...]

    @cached_property
    def exact_epsilon(self) -> float:
        """The worst of its mechanisms, rounded up."""
        ratios = {mechanism.realised.worst_ratio for mechanism in self.mechanisms}
        return max(log_above(ratio) for ratio in ratios)


class NumberLevel(Frozen):
    """One level: its budget, how many questions a user answers, and the classes, from the strictest to the weakest."""

    level: str
    budget: Ratio
    tau: Ratio
    sampled: int
    units: int
    classes: tuple[ClassPlan, ...]

    @cached_property
    def budgets(self) -> BudgetClasses:
        return BudgetClasses(self.budget, self.tau, self.sampled, self.units)

    @property
    def sums_up(self) -> bool:
        """Whether every class has the budget that its units say: then whatever a user deals sums to the level's."""
        return all(class_plan.budget == self.budgets.budget(class_plan.units) for class_plan in self.classes)

    def most(self, questions: int) -> tuple[float, float]:
        """The most that a user of the level can spend on so many questions: nominal and exact, rounded up."""
        asked = min(questions, self.sampled)
        nominal = self._dealt({class_plan.units: class_plan.budget for class_plan in self.classes}, asked)
        exact = self._dealt(
            {class_plan.units: Fraction(class_plan.exact_epsilon) for class_plan in self.classes}, asked
        )
        # The gate compares rationals; rounding up must not make the exact one look larger.
        return float_above(nominal), float_above(min(exact, nominal))

    def _dealt(self, spends: dict[int, Fraction], asked: int) -> Fraction:
        """The largest sum of spends over every way in which the units can be dealt to so many of the sampled."""
        if len(spends) == self.units + 1:  # weights: any way to cut the units into parts
            best = {0: Fraction(0)}
            for _ in range(asked):
                following: dict[int, Fraction] = {}
                for (dealt, spent), units in product(best.items(), spends):
                    if dealt + units <= self.units:
                        following[dealt + units] = max(spent + spends[units], following.get(dealt + units, Fraction(0)))
                best = following
            return max(best.values())
        # Important or not: m of the sampled share the units equally, the others have none.
        shared = [self.units // units for units in spends if units]
        few = [(min(m, asked), spends[self.units // m]) for m in shared]
        return max(n * each + (asked - n) * spends.get(0, Fraction(0)) for n, each in few)

    @cached_property
    def worst_exact(self) -> float:
        """The most that all reports of a user spend exactly, over every way to deal the units."""
        return self.most(self.sampled)[1]


class Question(Frozen):
    """What a sampled user reports on, and what the plan assumes of it in [−1, 1] terms."""

    attribute: str
    kind: Literal["mean", "distribution"]
    lower: float
    upper: float
    column: int
    """Which numeric attribute it reads."""
    source_column: str | None = None
    """The source's column behind it; the attribute's name where a stored plan does not say."""
    important: bool
    mean: float
    second_moment: float
    bins: int
    probabilities: tuple[float, ...]
    chosen: bool = True
    """Whether its mechanism was chosen by the plan, not stated."""

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.lower, self.upper)

    @property
    def resolution(self) -> int:
        """Bins that reports are counted by: intervals end at their edges."""
        return max(self.bins, RESOLUTION)


class NumbersPlan(Frozen):
    """Everything that is decided about numbers before anybody is asked."""

    budget: Ratio
    columns: int
    """How many numeric attributes there are."""
    importance: Literal["none", "stated", "columns", "weights"]
    assumed_important: float
    estimator: str
    sampling: str = "optimal"
    """The rule by which the number of answers was chosen, or that number."""
    questions: tuple[Question, ...]
    levels: tuple[NumberLevel, ...]

    @property
    def attributes(self) -> dict[str, list[int]]:
        """The questions of every attribute."""
        questions: dict[str, list[int]] = {}
        for i, question in enumerate(self.questions):
            questions.setdefault(question.attribute, []).append(i)
        return questions

    @property
    def tells_importance(self) -> bool:
        """Whether the class of a report tells what matters to its user."""
        return self.importance in ("columns", "weights") and any(level.budgets.personal for level in self.levels)

    def mechanisms(self, question: int, level: int) -> tuple[NumericMechanism, ...]:
        """One a class."""
        return tuple(class_plan.mechanisms[question].realised for class_plan in self.levels[level].classes)

    def windows(self, question: int, level: int) -> tuple[Window, ...]:
        return tuple(class_plan.mechanisms[question].window for class_plan in self.levels[level].classes)
