"""The plan command on numbers: predicted errors of means, and why this many attributes and these mechanisms."""

from __future__ import annotations

from typing import Any

import polars as pl

from pldp.channels.protocol import Counts
from pldp.questions.numbers.means import ESTIMATORS
from pldp.questions.numbers.plan import MEAN, NumbersPlan
from pldp.questions.numbers.predict import considered_noise, predict_mean, sampling_costs
from pldp.spec.release import Spec


def mean_errors(numbers: NumbersPlan | None, sizes: Counts) -> pl.DataFrame:
    """Attribute × estimator, in the attribute's units."""
    rows = [
        {
            "attribute": question.attribute,
            "lower": question.lower,
            "upper": question.upper,
            "method": method,
            "published": method == numbers.estimator,
            "standard_error": predict_mean(numbers, i, method, sizes) * question.bounds.half_width,
        }
        for i, question in enumerate(() if numbers is None else numbers.questions)
        if numbers is not None and question.kind == MEAN
        for method in ESTIMATORS
    ]
    schema = {"attribute": pl.String, "lower": pl.Float64, "upper": pl.Float64, "method": pl.String}
    return pl.DataFrame(rows, schema={**schema, "published": pl.Boolean, "standard_error": pl.Float64})


def sampling_rows(spec: Spec, numbers: NumbersPlan | None) -> pl.DataFrame:
    """One row a level: how many questions its users answer, at which budgets, and why."""
    rows: list[dict[str, Any]] = []
    rule = "optimal" if spec.numbers is None else spec.numbers.sampling
    for i, level in enumerate(() if numbers is None else numbers.levels):
        if numbers is None:
            break
        near = sampling_costs(numbers, i, range(level.sampled - 1, level.sampled + 2))
        noises = ", ".join(f"{k}: {cost / near[level.sampled]:.2f}" for k, cost in near.items())
        why = (
            f"as stated ({level.sampled})" if isinstance(rule, int) else f"{rule}; noise by number, relative: {noises}"
        )
        rows.append(
            {
                "level": level.level,
                "budget": float(level.budget),
                "questions": len(numbers.questions),
                "sampled": level.sampled,
                "lowest": float(level.classes[0].budget),
                "highest": float(level.classes[-1].budget),
                "why": why,
            }
        )
    names = ("budget", "questions", "sampled", "lowest", "highest")
    types = dict(zip(names, (pl.Float64, pl.Int64, pl.Int64, pl.Float64, pl.Float64), strict=True))
    return pl.DataFrame(rows, schema={"level": pl.String, **types, "why": pl.String})


def mechanism_rows(spec: Spec, numbers: NumbersPlan | None) -> pl.DataFrame:
    """Attribute × level: the mechanism of its equal budget, and why."""
    rows: list[dict[str, Any]] = []
    wanted = {number.name: number.mechanism for number in spec.number_attributes}
    for asked, question in enumerate(() if numbers is None else numbers.questions):
        for level in () if numbers is None else numbers.levels:
            usual = next((c for c in level.classes if c.units == level.budgets.equal), level.classes[0])
            used = usual.mechanisms[asked].mechanism
            noises = considered_noise(usual.budget, question.second_moment)
            told = ", ".join(f"{name} {found:.3g}" for name, found in sorted(noises.items(), key=lambda item: item[1]))
            why = f"least noise of {told}" if wanted[question.attribute] == "auto" else f"as stated; {told}"
            rows.append(
                {
                    "attribute": question.attribute,
                    "question": question.kind,
                    "level": level.level,
                    "budget": float(usual.budget),
                    "mechanism": used,
                    "why": why if question.kind == MEAN else "the square wave tells most about a distribution",
                }
            )
    texts = dict.fromkeys(("attribute", "question", "level"), pl.String)
    return pl.DataFrame(rows, schema={**texts, "budget": pl.Float64, "mechanism": pl.String, "why": pl.String})
