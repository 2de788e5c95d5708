"""From the spec of a table of people to the plan of a release. It sees only the spec."""

from __future__ import annotations

from fractions import Fraction

from pldp.channels.exact import BITS, SCALE
from pldp.estimate.inference import Recipe
from pldp.questions.gate import FAMILY
from pldp.questions.histograms.budgets import budgets_of
from pldp.questions.histograms.considered import strictest_first
from pldp.questions.histograms.resolve import expected_shares, make_histograms
from pldp.questions.numbers.question import Numbers
from pldp.questions.numbers.resolve import plan_numbers
from pldp.questions.numbers.spec import Numbers as NumbersSpec
from pldp.questions.plan import Plan
from pldp.questions.registry import AnyQuestion
from pldp.spec.release import Spec

_RAISE = "Raise it, or the smallest share that it is cut by"


def make_plan(spec: Spec, total: Fraction | None = None) -> Plan:
    """Resolve a spec; `total` overrides its budget when a target error is being sought."""
    total = total or spec.budget.total
    if total * SCALE < 1:
        # No threshold of a mechanism can express it, and doubles would underflow on the way there.
        raise ValueError(f"budget.total: a budget below 2^-{BITS} is too small to leave any signal. {_RAISE}")
    budgets, for_numbers = budgets_of(spec, total)
    tested = len(spec.published) + len(spec.number_attributes)
    recipe = _recipe(spec, tested)
    questions: list[AnyQuestion] = []
    if spec.published:
        questions.append(make_histograms(spec, total, budgets, recipe, tested))
    if for_numbers is not None:
        choices = strictest_first(spec)
        planned = plan_numbers(spec.number_attributes, spec.numbers or NumbersSpec(), for_numbers, choices)
        fields = tuple(range(len(spec.number_attributes)))
        questions.append(
            Numbers(
                **dict(planned),
                total=total,
                recipe=recipe,
                tested=tested,
                fields=fields,
                expected_users=spec.expected.users,
                expected_shares=expected_shares(spec),
            )
        )
    return Plan(
        name=spec.name,
        total=total,
        questions=tuple(questions),
        expected_users=spec.expected.users,
        minimum_users=spec.gates.minimum_users,
        perturbed_by="vault" if spec.source.reports is None else "clients",
    )


def _recipe(spec: Spec, tested: int) -> Recipe:
    return Recipe(
        method=spec.method,
        postprocess=spec.postprocess,
        disagreement=spec.combination.disagreement,
        # A fallback costs only precision, so it may come early; a refusal shares the gates' false alarms.
        alpha=spec.combination.alpha if spec.combination.disagreement == "sum" else FAMILY / 2 / tested,
        confidence=spec.intervals.confidence,
        population=spec.intervals.target == "population",
        steps=spec.combination.steps,
        sum_to_one=spec.combination.sum_to_one,
    )
