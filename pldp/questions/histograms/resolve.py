"""From a spec to its histograms: who spends what on which mechanism. It sees only the spec."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction

from pldp.channels.choice import AUTO, Candidate, choose
from pldp.channels.exact import log_above, within
from pldp.estimate.hidden_choice import MOST_VARIATION, choose_hidden, needed_epsilon
from pldp.estimate.inference import Recipe
from pldp.estimate.likelihood import MOST_VALUES
from pldp.privacy.leak import level_leak
from pldp.questions.histograms.considered import considered, frequencies, hidden_plan, strictest_first
from pldp.questions.histograms.hidden import LIKELIHOODS
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan, LevelPlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.spec import Binned, Cells, Crosstab
from pldp.questions.people.spec import Spec

_RAISE = "Raise it, or the smallest share that it is cut by"


def make_histograms(
    spec: Spec, total: Fraction, budgets: Sequence[Fraction], recipe: Recipe, tested: int
) -> Histograms:
    """The histograms of a spec on these budgets, which are their shares of the total."""
    _refuse_large(spec)
    choices = strictest_first(spec)
    plan = Histograms(
        total=total,
        levels=tuple(choices),
        attributes=tuple(
            _attribute_plan(spec, attribute, budget) for attribute, budget in zip(spec.published, budgets, strict=True)
        ),
        recipe=recipe,
        tested=tested,
        expected_users=spec.expected.users,
        expected_shares=expected_shares(spec),
        one_level_for_all=not isinstance(spec.levels.column, dict),
        hidden=hidden_plan(spec),
    )
    if plan.hidden is None:
        return plan
    return _telling(_within_leak(plan, plan.hidden, spec), plan.hidden, spec)


def expected_shares(spec: Spec) -> tuple[float, ...]:
    """Of the levels, from the strictest to the weakest: stated, or equal."""
    choices = strictest_first(spec)
    shares = spec.expected.levels or spec.levels.assigned or dict.fromkeys(choices, Fraction(1, len(choices)))
    return tuple(float(shares.get(level, 0)) for level in choices)


def _refuse_large(spec: Spec) -> None:
    for attribute in spec.published:
        climbed = [method for method in spec.methods_of(attribute) if method in LIKELIHOODS]
        if climbed and len(spec.labels(attribute)) > MOST_VALUES:
            raise ValueError(
                f"combination.method: {climbed[0]} takes attributes of at most {MOST_VALUES:,} values "
                f"({attribute.name}). Use {'auem' if spec.levels.hidden else 'guarded'}"
            )


def _within_leak(plan: Histograms, hidden: HiddenPlan, spec: Spec) -> Histograms:
    """Hidden levels: the most precise protocols if all reports of a user together stay within the bound, else those
    that tell least."""
    if within(plan.leak() or Fraction(1), hidden.max_leak):
        return plan
    budgets = [attribute.budget for attribute in plan.attributes]
    frugal = tuple(
        _attribute_plan(spec, a, budget, frugal=True) for a, budget in zip(spec.published, budgets, strict=True)
    )
    plan = plan.model_copy(update={"attributes": frugal})
    leak = plan.leak() or Fraction(1)
    if not within(leak, hidden.max_leak):
        used = ", ".join(f"{a.name} {a.levels[0].mechanism}" for a in plan.attributes)
        raise ValueError(
            f"levels.max_leak: reports would tell {log_above(leak):.4g} about the level, more than "
            f"{float(hidden.max_leak):g} ({used}). Raise it, lower epsilon_p, publish fewer attributes, or bring "
            "the choices closer together"
        )
    return plan


def _telling(plan: Histograms, hidden: HiddenPlan, spec: Spec) -> Histograms:
    """Hidden levels: the method of least predicted error among those whose interval holds, unless the spec states one.

    Refused where the reports about the level tell so little that no share could be told from its half.
    """
    sizes, attributes = plan.expected_sizes(), []
    for attribute, asked in zip(plan.attributes, spec.published, strict=True):
        choice = choose_hidden(sizes, attribute.protocols, hidden.protocol, attribute.frequencies)
        stated = spec.combination.method is not None or bool(asked.methods) or spec.levels.gamma is None
        beside = (method for method in attribute.methods[1:] if method != choice.method)
        methods = attribute.methods if stated else (choice.method, *beside)
        if spec.levels.gamma is None and methods[0] != "sum":
            raise ValueError(
                f"combination.method: must be sum where levels are hidden and levels.dependence is unknown (got "
                f"{methods[0]} for {attribute.name}): any other takes levels to be chosen independently of the value. "
                f"Use sum, and {methods[0]} beside it (combination.also), or say dependence: 1"
            )
        if methods[0] not in ("self-calibrated", "sum") and choice.variation > MOST_VARIATION:
            needed = needed_epsilon(sizes, attribute.protocols)
            remedy = "More users" if needed is None else f"Use at least {math.ceil(needed * 100) / 100:g}, more users"
            raise ValueError(
                f"levels.epsilon_p: {float(hidden.budget):g} tells too little about the levels of "
                f"{plan.expected_users:,} users: what {attribute.name} is divided by would vary by "
                f"{choice.variation:.0%} of itself, at most {MOST_VARIATION:.0%} may. {remedy} (expected.users), "
                "or public levels"
            )
        attributes.append(attribute.model_copy(update={"methods": methods}))
    return plan.model_copy(update={"attributes": tuple(attributes)})


def _chosen(spec: Spec, attribute: Cells | Crosstab, budgets: Sequence[Fraction], frugal: bool = False) -> Candidate:
    """The least variance, or where `frugal` the least told about the level."""
    options = considered(spec, attribute, budgets)
    wanted = spec.mechanism_of(attribute)
    if not options or (
        wanted != AUTO and wanted not in {c.mechanism for c in options} and len(spec.labels(attribute)) > 1
    ):
        raise ValueError(
            f"budget.total: a budget of {float(min(budgets)):g} is too small to leave any signal. {_RAISE}"
        )
    hidden = hidden_plan(spec)
    free = [candidate for candidate in options if candidate.refused is None]
    if frugal and hidden is not None and free:
        return min(free, key=lambda candidate: level_leak([candidate.protocols], hidden.protocol) or Fraction(1))
    try:
        return choose(options)
    except ValueError as error:
        raise ValueError(f"mechanism: attribute {attribute.name}: {error}") from None


def _attribute_plan(
    spec: Spec, attribute: Cells | Crosstab, budget: Fraction, *, frugal: bool = False
) -> AttributePlan:
    shares = strictest_first(spec)
    budgets = [budget * share for share in shares.values()]
    if spec.levels.hidden:
        protocols = _chosen(spec, attribute, budgets, frugal).protocols
    else:
        protocols = tuple(_chosen(spec, attribute, [budget]).protocols[0] for budget in budgets)
    return AttributePlan(
        name=attribute.name,
        parts=tuple(part.name for part in spec.parts(attribute)),
        columns=tuple(part.column or part.name for part in spec.parts(attribute)),
        values=spec.labels(attribute),
        budget=budget,
        levels=tuple(
            LevelPlan(level=level, budget=budget, mechanism=protocol.name, parameters=asdict(protocol))
            for level, budget, protocol in zip(shares, budgets, protocols, strict=True)
        ),
        assumed=tuple(frequencies(spec, attribute).tolist()),
        edges=attribute.cuts if isinstance(attribute, Binned) else (),
        probabilities=attribute.quantiles if isinstance(attribute, Binned) else (),
        methods=spec.methods_of(attribute),
    )
