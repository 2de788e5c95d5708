"""A small valid spec as YAML would give it, ways to change it, and the plan that it resolves to."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from typing import Any

from pldp.channels.exact import within
from pldp.questions.histograms.plan import LevelPlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.numbers.question import Numbers
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.resolve import make_plan

GOOD: dict[str, Any] = {
    "name": "census",
    "source": {"path": "people.csv", "user_id": "id"},
    "attributes": [
        {"name": "sex", "values": ["Female", "Male"]},
        {"name": "job", "values": ["a", "b", "c", "none"], "missing": "none", "other": "c"},
        {"name": "both", "kind": "crosstab", "of": ["sex", "job"]},
    ],
    "budget": {"total": 6},
    "levels": {"dependence": 1, "column": "level"},
}
HIDDEN = {"dependence": 1, "visibility": "hidden", "epsilon_p": 1, "max_leak": 5, "column": "level"}


def changed(**sections: Any) -> dict[str, Any]:
    """The good spec with whole sections replaced; None removes one."""
    spec = deepcopy(GOOD)
    for name, section in sections.items():
        if section is None:
            del spec[name]
        else:
            spec[name] = section
    return spec


def make_spec(**sections: Any) -> Spec:
    return Spec.model_validate(changed(**sections))


def planned(spec: Spec | None = None, total: Fraction | None = None, **sections: Any) -> Plan:
    """The plan of this spec, or of the good one with whole sections replaced."""
    return make_plan(spec or make_spec(**sections), total)


def histograms(**sections: Any) -> Histograms:
    return histograms_of(planned(**sections))


def histograms_of(plan: Plan) -> Histograms:
    return next(question for question in plan.questions if isinstance(question, Histograms))


def numbers_of(plan: Plan) -> Numbers:
    return next(question for question in plan.questions if isinstance(question, Numbers))


def keeps_promise(level: LevelPlan) -> bool:
    """Whether a level's exact worst ratio is within what its budget allows."""
    return within(level.protocol.worst_ratio, level.budget)
