"""From a spec and its public catalogue to a plan; nobody's items are looked at."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pldp.errors import BrokenRule, Problem
from pldp.questions.aggregates.budgets import TICK_BITS, Allocation, profile_ticks, turning_point
from pldp.questions.aggregates.catalogue import Catalogue
from pldp.questions.aggregates.noise import noise_for
from pldp.questions.aggregates.objectives import OBJECTIVES, Objective
from pldp.questions.aggregates.plan import RESIDUAL, Law, ProfilePlan, ProviderPlan, ServicePlan
from pldp.questions.aggregates.providers import serve
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.spec import AggregatesSpec, Weighted
from pldp.questions.plan import Plan


def release_plan(spec: AggregatesSpec, catalogue: Catalogue, catalogue_sha256: str) -> Plan:
    """The plan of a release that asks for nothing but aggregates."""
    try:
        question = make_plan(spec, catalogue, catalogue_sha256)
    except BrokenRule as error:
        raise _of_profile(error.problem, tuple(spec.profiles)) from None
    return Plan(
        name=spec.name,
        total=None,  # no budget is about users as a whole: the unit is an item, or an occurrence of one
        questions=(question,),
        expected_users=question.expected_users,
        minimum_users=question.minimum_users,
        perturbed_by="vault" if spec.source.reports is None else "clients",
    )


def _of_profile(problem: Problem, profiles: tuple[str, ...]) -> BrokenRule:
    """The table of budgets knows profiles by position; their author knows them by name."""
    if problem.row is None:
        return BrokenRule.of(problem)
    within = f"profiles.{profiles[problem.row]}"
    field = within if problem.column is None else f"{within}.{problem.column}"
    return BrokenRule.of(replace(problem, row=None, column=None, field=field))


def make_plan(spec: AggregatesSpec, catalogue: Catalogue, catalogue_sha256: str) -> Aggregates:
    """The question of a spec: each optimum (provider × profile), and the thresholds of the noise that realises it."""
    counted = catalogue if spec.cap is None else catalogue.capped(spec.cap)
    names = tuple(spec.profiles)
    stated = [spec.budgets(name) for name in names]
    budgets = profile_ticks(counted, stated)
    turns = [Fraction(int(turn), 1 << TICK_BITS) for turn in turning_point(counted, budgets)]
    objective = _objective(spec)
    epsilons = {name: provider.epsilon for name, provider in spec.providers.items()}
    allocations = serve(counted, budgets, epsilons, objective)
    ticks = np.unique(np.concatenate([allocation.ticks for allocation in allocations.values()])).tolist()
    return Aggregates(
        name=spec.name,
        unit=spec.unit,
        attributes=counted.attributes,
        grid=counted.grid,
        rows=tuple(tuple(int(unit) for unit in row) for row in counted.rows),
        n_items=counted.n_items,
        n_distinct=counted.n_distinct,
        catalogue_sha256=catalogue_sha256,
        cap=spec.cap,
        coarse=any(allocation.coarse for allocation in allocations.values()),
        objective=objective.name,
        power=objective.power,
        weights=objective.weights,
        profiles=tuple(ProfilePlan(name=n, budgets=b) for n, b in zip(names, stated, strict=True)),
        default=spec.default_profile,
        providers=tuple(
            ProviderPlan(
                name=name,
                epsilon=provider.epsilon,
                reputation=provider.reputation,
                services=_services(allocations[name], names, turns),
            )
            for name, provider in spec.providers.items()
        ),
        laws=tuple(Law(ticks=tick, digits=law.digits, tail=law.tail) for tick in ticks for law in (noise_for(tick),)),
        expected_users=spec.expected.users,
        expected_shares=tuple(float(share) for share in _shares(spec)),
        minimum_users=spec.gates.minimum_users,
        confidence=spec.intervals.confidence,
    )


def _services(allocation: Allocation, names: tuple[str, ...], turns: list[Fraction]) -> tuple[ServicePlan, ...]:
    worst = float(allocation.residual.max(initial=0.0))
    if not worst < RESIDUAL:  # a nan too; nothing is drawn from budgets that are not known to be the best
        raise ValueError(
            f"objective: the optimum was found only to {worst:.1g}; bring weights and budgets closer together"
        )
    return tuple(
        ServicePlan(profile=name, ticks=tuple(ticks), turning_point=turn, residual=residual, gap=gap)
        for name, ticks, turn, residual, gap in zip(
            names,
            allocation.ticks.tolist(),
            turns,
            allocation.residual.tolist(),
            allocation.gap.tolist(),
            strict=True,
        )
    )


def _objective(spec: AggregatesSpec) -> Objective:
    if isinstance(spec.objective, Weighted):
        weights = [spec.objective.weights[attribute] for attribute in spec.attributes]
        return Objective.weighted(weights, spec.objective.power)
    return OBJECTIVES[spec.objective]


def _shares(spec: AggregatesSpec) -> list[Fraction]:
    stated = spec.expected.profiles
    if stated is None:
        return [Fraction(1, len(spec.profiles))] * len(spec.profiles)
    return [stated.get(name, Fraction(0)) for name in spec.profiles]
