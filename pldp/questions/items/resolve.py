"""From a spec and its declared items to a plan; nobody's items are looked at."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Literal

import numpy as np

from pldp.estimate.simulate import whole_counts
from pldp.questions.items.allocation import RowDemand, bounded_items, split_capped, split_proportional, symmetric_items
from pldp.questions.items.bounded import bounded_channel
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.demand import Demand
from pldp.questions.items.levels import level_budgets
from pldp.questions.items.padding import (
    UNDECLARED_PADDING,
    Lengths,
    Outlook,
    choose_padding,
    held_sets_at_most,
    within,
)
from pldp.questions.items.plan import ItemLevel, Origin
from pldp.questions.items.pooling import Weighing
from pldp.questions.items.predict import beyond_error, telling_length, typical_error
from pldp.questions.items.question import Items
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Phase, Sampled
from pldp.questions.items.sampling import SetSampling
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.items.values import ValueChannel
from pldp.questions.plan import Plan

Chosen = Literal["bounded", "aprr", "sampling"]


def make_plan(spec: ItemsSpec, items: tuple[str, ...], sensitivity: tuple[int, ...] | None) -> Items:
    """`sensitivity` are the items' levels, declared or (in an evaluation) scored; None where all are alike."""
    if spec.protocol != "auto":
        return _plan(spec, items, sensitivity, spec.protocol, "the spec asks for it")
    if spec.holds == "one":
        return _plan(spec, items, sensitivity, "bounded", "of single values it is never worse than plain k-RR")
    if sensitivity is not None or spec.weights is not None:
        return _plan(spec, items, sensitivity, "bounded", "it alone tells items apart and keeps its bound")
    plans: list[tuple[float, Items]] = []
    refused = ""
    for protocol in ("bounded", "sampling"):
        try:
            plan = _plan(spec, items, None, protocol, "")
            # By single items: sampled sets are candidates only.
            plans.append((typical_error(plan, 1) + beyond_error(plan, 1), plan))
        except ValueError as error:
            refused = str(error)  # no signal
    if not plans:
        raise ValueError(refused)
    plans.sort(key=lambda one: one[0])
    best = plans[0][1]
    why = f"single items are predicted a standard error of {plans[0][0]:.3g}"
    why += f", with {plans[1][1].protocol} one of {plans[1][0]:.3g}" if plans[1:] else "; no other leaves a signal"
    return best.model_copy(update={"why": why})


def make_release(spec: ItemsSpec, question: Items) -> Plan:
    """The plan of a release that asks for items and nothing else."""
    if spec.source.reports is not None and question.phases > 1:
        raise ValueError(
            "source.reports: with protocol sampling the second half of the people is asked what the first half's "
            "reports tell, so they cannot lie there together. Set itemsets.length: 1, or protocol: bounded"
        )
    return Plan(
        name=spec.name,
        total=spec.bound,
        questions=(question,),
        expected_users=spec.expected.users,
        minimum_users=spec.gates.minimum_users,
        perturbed_by="vault" if spec.source.reports is None else "clients",
    )


def _plan(
    spec: ItemsSpec, items: tuple[str, ...], sensitivity: tuple[int, ...] | None, protocol: Chosen, why: str
) -> Items:
    ordered = sorted(spec.levels.choices.items(), key=lambda choice: choice[1])
    stated = spec.expected.levels
    shares = [Fraction(1, len(ordered)) if stated is None else stated.get(name, Fraction(0)) for name, _ in ordered]
    asked = spec.sensitivity
    paddings = _paddings(spec, len(items), shares) if protocol == "sampling" else (1, 1)
    plan = Items(
        items=items,
        holds=spec.holds,
        protocol=protocol,
        why=why,
        n_sensitivities=None if asked is None else asked.of,
        sensitivity=sensitivity,
        split=None if asked is None or protocol != "bounded" or spec.holds == "one" else asked.split,
        origin=None
        if asked is None or asked.collected is None
        else Origin(release=asked.collected.release, epsilon=asked.collected.epsilon),
        levels=tuple(
            ItemLevel(
                level=name,
                budget=spec.budget.total * share,
                bound=spec.bound * share,
                channel=_channel(spec, items, sensitivity, protocol, spec.budget.total * share, paddings),
            )
            for name, share in ordered
        ),
        default=spec.levels.default,
        combination=spec.method,
        level_weight_cap=spec.pooling.level_weight_cap,
        dependence=spec.levels.gamma,
        lengths=declared_lengths(spec),
        minimum_support=spec.itemsets.minimum_support,
        length=min(spec.itemsets.length, len(items)),
        asked_length=spec.itemsets.length,
        reach=spec.itemsets.reach,
        minimum_confidence=spec.itemsets.minimum_confidence,
        confidence=spec.intervals.confidence,
        population=spec.intervals.target == "population",
        candidates=spec.sampling.candidates,
        expected_users=spec.expected.users,
        expected_shares=tuple(float(share) for share in shares),
    )
    return plan if protocol == "sampling" else plan.model_copy(update={"length": telling_length(plan)})


def _channel(
    spec: ItemsSpec,
    items: tuple[str, ...],
    sensitivity: tuple[int, ...] | None,
    protocol: Chosen,
    total: Fraction,
    paddings: tuple[int, int],
) -> Bits | OneValue | Sampled:
    weights = tuple(1.0 if spec.weights is None else spec.weights[item] for item in items)
    n_levels = 2 if spec.sensitivity is None else spec.sensitivity.of
    if protocol == "sampling":
        sets = None
        if spec.itemsets.length > 1:
            sets = _phase(SetSampling.for_budget(spec.sampling.candidates, paddings[1], total))
        return Sampled(items=_phase(SetSampling.for_budget(len(items), paddings[0], total)), sets=sets)
    if spec.holds == "one":
        if protocol == "aprr":
            value = ValueChannel.aprr(sensitivity or (), n_levels, total)
        else:
            # What aprr promises a value of each level; one of level 0 is bounded by the total.
            promised = [total if one is None else min(one, total) for one in level_budgets(n_levels, total)]
            budgets = total if sensitivity is None else tuple(promised[level] for level in sensitivity)
            value = bounded_channel(Demand.of(weights, budgets))
        return OneValue(redraw=value.redraw, mass=value.mass)
    if protocol == "aprr":
        bits = ItemChannels.aprr(sensitivity or (), n_levels, total)
    elif sensitivity is None or spec.sensitivity is None:
        bits = bounded_items(RowDemand(weights, total))
    elif spec.sensitivity.split == "proportional":
        bits = symmetric_items(split_proportional(total, sensitivity, n_levels), total)
    else:
        bits = symmetric_items(split_capped(total, sensitivity, n_levels, weights), total)
    return Bits(keep_zero=bits.keep_zero, keep_one=bits.keep_one)


def declared_lengths(spec: ItemsSpec) -> Lengths | None:
    """The shares of people by how many items they have, shortest first; None where the spec does not declare them."""
    declared = spec.sampling.lengths
    return None if declared is None else tuple((length, float(declared[length])) for length in sorted(declared))


def _paddings(spec: ItemsSpec, n_items: int, shares: list[Fraction]) -> tuple[int, int]:
    """Places of a row, and of the candidate sets that it holds: as stated, or where intervals are shortest.

    Of undeclared lengths every candidate set has a place, and a row a moderate number: intervals hold by what reports
    tell of longer rows.
    """
    asked, lengths = spec.sampling, declared_lengths(spec)
    ordered = sorted(spec.levels.choices.values())
    n = whole_counts(np.array([float(share) for share in shares]), spec.expected.users)
    halves = (n, n) if spec.itemsets.length == 1 else (n - n // 2, n // 2)
    outlooks = [
        Outlook(
            tuple(spec.budget.total * share for share in ordered),
            half,
            spec.expected.users,
            Weighing.of(spec.method, spec.pooling.level_weight_cap),
            spec.itemsets.minimum_support,
            spec.intervals.confidence,
        )
        for half in halves
    ]
    if lengths is None:
        return asked.padding or min(n_items, UNDECLARED_PADDING), asked.sets_padding or asked.candidates
    rows = within(lengths, n_items)
    # Candidates may all be of one length: as many as any length may have bound what a row holds.
    longest = min(spec.itemsets.length, n_items)
    sets = held_sets_at_most(rows, [(size, asked.candidates) for size in range(2, longest + 1)])
    sets = within(sets, asked.candidates)
    padding = asked.padding or choose_padding(rows, lambda one: outlooks[0].half_length(n_items, one, rows))
    return padding, asked.sets_padding or choose_padding(
        sets, lambda one: outlooks[1].half_length(asked.candidates, one, sets)
    )


def _phase(sampling: SetSampling) -> Phase:
    return Phase(
        n_values=sampling.n_items,
        length=sampling.length,
        mechanism=sampling.protocol.name,
        parameters=asdict(sampling.protocol),
    )
