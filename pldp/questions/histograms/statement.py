"""The privacy statement that goes with every release, for machines and people."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pldp.channels.exact import float_above, log_above
from pldp.privacy.exposure import exposures
from pldp.privacy.trust import trust_model
from pldp.questions.histograms.plan import Plan
from pldp.questions.numbers.statement import attribute_statements, numbers_statement, public_sentences, worst_exact


def privacy_statement(plan: Plan, release_id: str, n_users: int) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's values."""
    worst_ratio, numbers, model = Fraction(1), plan.numbers, trust_model(plan.perturbed_by)
    for attribute in plan.attributes:
        worst_ratio *= max(level.protocol.worst_ratio for level in attribute.levels)
    exact = log_above(worst_ratio) if plan.attributes else 0.0
    if numbers is not None:
        exact = float_above(min(Fraction(exact) + worst_exact(numbers), plan.worst_total))
    return {
        "release_id": release_id,
        "name": plan.name,
        "plan_sha256": plan.sha256,
        "guarantee": model.guarantee("personalised by level"),
        **model.statement(),
        "unit": plan.unit,
        "neighbours": "two values of one user's row, at the same chosen levels",
        "n_users": n_users,
        "total_budget": float_above(plan.total),
        "worst_total": {
            "nominal_epsilon": float_above(plan.worst_total),
            "exact_epsilon": exact,
            "meaning": "a user who chose the weakest level everywhere; nobody spends more",
        },
        "by_level": {
            level: float_above(
                sum(
                    (a.levels[i].budget for a in plan.attributes),
                    Fraction(0) if numbers is None else numbers.levels[i].budget,
                )
            )
            for i, level in enumerate(plan.levels)
        },
        "attributes": [
            {
                "attribute": attribute.name,
                "made_of": list(attribute.parts),
                "values": len(attribute.values),
                "levels": [
                    {
                        "level": level.level,
                        "mechanism": level.mechanism,
                        "nominal_epsilon": level.nominal_epsilon,
                        "exact_epsilon": level.exact_epsilon,
                    }
                    for level in attribute.levels
                ],
            }
            for attribute in plan.attributes
        ]
        + ([] if numbers is None else attribute_statements(numbers)),
        "exposure": exposures(plan),
        **({} if numbers is None else {"numbers": numbers_statement(numbers)}),
        "hidden_levels": _hidden(plan),
        "public": [
            "who took part",
            *(["how many users chose each level, and which level a user chose"] if plan.hidden is None else []),
            *([] if numbers is None else public_sentences(numbers)),
            "this statement, the spec and the plan",
        ],
        "assumptions": [
            model.holder,
            *(["levels are chosen independently of the value, and told as the plan says"] if plan.hidden else []),
            "every user answers once",
            "every further release of the same users spends its own budget on top of this one"
            + ("" if plan.hidden is None else ", and tells about their levels again"),
        ],
    }


def _hidden(plan: Plan) -> dict[str, Any] | None:
    """What reports tell about the level that a user chose."""
    leak = plan.leak()
    if plan.hidden is None or leak is None:
        return None
    return {
        "epsilon_p": float_above(plan.hidden.budget),
        "exact_epsilon_p": log_above(plan.hidden.protocol.worst_ratio),
        "exact_leak": log_above(leak),
        "max_leak": float_above(plan.hidden.max_leak),
        "meaning": (
            "the most that all reports of a user together change the odds between two levels, at the same values; "
            "epsilon_p alone would not bound it, for value reports tell about the level too"
        ),
    }
