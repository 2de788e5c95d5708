"""From a spec and its declared items to a plan; nobody's items are looked at."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Literal

from pldp.questions.items.allocation import RowWish, bounded_items, split_capped, split_proportional, symmetric_items
from pldp.questions.items.bounded import Wish, bounded_channel
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import level_budgets
from pldp.questions.items.plan import ItemLevel, Origin
from pldp.questions.items.predict import telling_length, typical_error
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
            # By single items, where both are unbiased: sampled sets are candidates only, and long rows understate them.
            plans.append((typical_error(plan, 1), plan))
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
                channel=_channel(spec, items, sensitivity, protocol, spec.budget.total * share),
            )
            for name, share in ordered
        ),
        default=spec.levels.default,
        combination=spec.combination,
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
    spec: ItemsSpec, items: tuple[str, ...], sensitivity: tuple[int, ...] | None, protocol: Chosen, total: Fraction
) -> Bits | OneValue | Sampled:
    weights = tuple(1.0 if spec.weights is None else spec.weights[item] for item in items)
    n_levels = 2 if spec.sensitivity is None else spec.sensitivity.of
    if protocol == "sampling":
        sets = None
        if spec.itemsets.length > 1:
            sets = _phase(SetSampling.for_budget(spec.sampling.candidates, spec.sampling.sets_padding, total))
        return Sampled(items=_phase(SetSampling.for_budget(len(items), spec.sampling.padding, total)), sets=sets)
    if spec.holds == "one":
        if protocol == "aprr":
            value = ValueChannel.aprr(sensitivity or (), n_levels, total)
        else:
            # What aprr promises a value of each level; one of level 0 is bounded by the total.
            promised = [total if one is None else min(one, total) for one in level_budgets(n_levels, total)]
            budgets = total if sensitivity is None else tuple(promised[level] for level in sensitivity)
            value = bounded_channel(Wish.of(weights, budgets))
        return OneValue(redraw=value.redraw, mass=value.mass)
    if protocol == "aprr":
        bits = ItemChannels.aprr(sensitivity or (), n_levels, total)
    elif sensitivity is None or spec.sensitivity is None:
        bits = bounded_items(RowWish(weights, total))
    elif spec.sensitivity.split == "proportional":
        bits = symmetric_items(split_proportional(total, sensitivity, n_levels), total)
    else:
        bits = symmetric_items(split_capped(total, sensitivity, n_levels, weights), total)
    return Bits(keep_zero=bits.keep_zero, keep_one=bits.keep_one)


def _phase(sampling: SetSampling) -> Phase:
    return Phase(
        n_values=sampling.n_items,
        length=sampling.length,
        mechanism=sampling.protocol.name,
        parameters=asdict(sampling.protocol),
    )
