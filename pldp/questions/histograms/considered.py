"""Which protocols could serve an attribute, and why one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.choice import AUTO, Candidate, candidates, reason
from pldp.channels.exact import log_above, within
from pldp.channels.krr import KRR
from pldp.channels.protocol import Floats
from pldp.channels.registry import PROTOCOLS
from pldp.privacy.leak import level_leak
from pldp.questions.histograms.plan import HiddenPlan
from pldp.questions.histograms.spec import Cells, Crosstab
from pldp.questions.people.spec import Spec
from pldp.questions.question import Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms


def hidden_plan(spec: Spec) -> HiddenPlan | None:
    """The channel of levels where the spec hides them, else None; ValueError where its budget leaves no signal."""
    if spec.levels.epsilon_p is None or spec.levels.max_leak is None:
        return None
    try:
        protocol = KRR.for_budget(len(spec.levels.choices), spec.levels.epsilon_p)
    except ValueError as error:
        raise ValueError(f"levels.epsilon_p: {error}") from None
    return HiddenPlan(budget=spec.levels.epsilon_p, parameters=asdict(protocol), max_leak=spec.levels.max_leak)


def strictest_first(spec: Spec) -> dict[str, Fraction]:
    """Levels with their budgets, the smallest budget first."""
    return dict(sorted(spec.levels.choices.items(), key=lambda choice: choice[1]))


def considered(spec: Spec, attribute: Cells | Crosstab, budgets: Sequence[Fraction]) -> tuple[Candidate, ...]:
    """What `auto` chooses from for levels that are decided on together: each alone, or all where levels are hidden.

    Hidden levels ask for reports that look alike at every level, and leave out what alone would tell too much of it.
    """
    barred = _barred(spec, attribute)
    options = candidates(len(spec.labels(attribute)), budgets, frequencies(spec, attribute), barred, spec.report_bytes)
    hidden = hidden_plan(spec)
    if hidden is None:
        return options
    return tuple(_leak_checked(candidate, hidden) for candidate in options)


def _barred(spec: Spec, attribute: Cells | Crosstab) -> dict[str, str]:
    """Which protocols may not be chosen, and why."""
    wanted = spec.mechanism_of(attribute)
    bound = [method for method in spec.methods_of(attribute) if method in ("self-calibrated", "emoa-paper")]
    reasons = {}
    for name, kind in PROTOCOLS.items():
        if spec.levels.hidden and not kind.level_free:
            reasons[name] = "its reports would give the hidden level away"
        elif bound and name != "brr":
            reasons[name] = f"method {bound[0]} takes brr"
        elif wanted not in (AUTO, name):
            reasons[name] = f"the spec asks for {wanted}"
    return reasons


def _leak_checked(candidate: Candidate, hidden: HiddenPlan) -> Candidate:
    if candidate.refused is not None:
        return candidate
    leak = level_leak([candidate.protocols], hidden.protocol)
    if leak is None:
        return replace(candidate, refused="its reports give the level away")
    if within(leak, hidden.max_leak):
        return candidate
    return replace(candidate, refused=f"it alone tells {log_above(leak):.4g} about the level")


def frequencies(spec: Spec, attribute: Cells | Crosstab) -> Floats:
    """What the plan assumes: stated, else equal."""
    k = len(spec.labels(attribute))
    return np.array([float(share) for share in attribute.assumed or (Fraction(1, k),) * k])


def protocol_rows(plan: Histograms, spec: Spec) -> Rows:
    """Every protocol that could serve, its predicted noise, report size and leak, and why the chosen one was."""
    parts: list[dict[str, Any]] = []
    for attribute, planned in zip(spec.published, plan.attributes, strict=True):
        budgets = [level.budget for level in planned.levels]
        together = [(None, budgets)] if plan.hidden else [(level.level, [level.budget]) for level in planned.levels]
        for i, (level, decided) in enumerate(together):
            known = considered(spec, attribute, decided)
            chosen = next(candidate for candidate in known if candidate.mechanism == planned.levels[i].mechanism)
            for candidate in known:
                leak = None if plan.hidden is None else level_leak([candidate.protocols], plan.hidden.protocol)
                parts.append(
                    {
                        "attribute": [attribute.name],
                        "level": level,
                        "mechanism": candidate.mechanism,
                        "chosen": candidate is chosen,
                        "variance": candidate.variance,
                        "report_bytes": candidate.report_bytes,
                        "level_leak": None if leak is None else log_above(leak),
                        "why": reason(known, chosen) if candidate is chosen else candidate.refused,
                    }
                )
    return stacked(parts)
