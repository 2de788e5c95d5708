"""Truth: true counts, means and quantiles from the vault. For evaluations only."""

from __future__ import annotations

import numpy as np

from pldp.channels.numeric.domain import CODES
from pldp.channels.protocol import Counts
from pldp.questions.numbers.plan import MEAN
from pldp.questions.numbers.study import MeanStudy, study_means
from pldp.tasks.perturb_numbers import number_fields
from pldp.tasks.query import connect, statement
from pldp.tasks.run import Run
from pldp.tasks.stage import stage


@stage()
def true_counts(run: Run) -> dict[str, Counts]:
    """(level, value) counts of every attribute."""
    if not run.evaluation:
        raise ValueError("a release never reads the truth")
    plan = run.plan
    found = {}
    with connect(run.vault, read_only=True) as vault:
        for i, attribute in enumerate(plan.attributes):
            level = f"level_{0 if plan.one_level_for_all else i}"
            rows = vault.execute(statement("30_evaluate_truth", level=level, value=f"value_{i}")).fetchnumpy()
            counts = np.zeros((len(plan.levels), len(attribute.values)), dtype=np.int64)
            counts[rows["level"], rows["value"]] = rows["n"]
            found[attribute.name] = counts
    return found


STUDIED_CODES = 1 << 24
"""Numbers held at a time for repeated draws; of more users, those that come first in the order of the hash."""


@stage()
def true_numbers(run: Run) -> tuple[dict[str, float], dict[tuple[str, float], float]]:
    """Means by attribute, and quantiles by attribute and probability, in the attributes' units."""
    if not run.evaluation:
        raise ValueError("a release never reads the truth")
    numbers = run.plan.numbers
    means: dict[str, float] = {}
    found: dict[tuple[str, float], float] = {}
    if numbers is None:
        return means, found
    sums = ", ".join(f"sum(number_{i}::HUGEINT)::DOUBLE AS sum_{i}" for i in range(numbers.columns))
    with connect(run.vault, read_only=True) as vault:
        n_users, *totals = vault.execute(statement("31_evaluate_number_truth", sums=sums)).fetchall()[0]
        for question in numbers.questions:
            if question.kind == MEAN:
                means[question.attribute] = question.bounds.decode(2 * totals[question.column] / n_users / CODES - 1)
                continue
            query = statement("32_evaluate_number_quantiles", number=f"number_{question.column}")
            codes = vault.execute(query, {"probabilities": list(question.probabilities)}).fetchall()[0][0]
            for probability, code in zip(question.probabilities, codes, strict=True):
                found[question.attribute, probability] = question.bounds.decode(2 * code / CODES - 1)
    return means, found


@stage()
def study_numbers(run: Run, repeats: int) -> tuple[MeanStudy, ...]:
    """Repeated draws of the means, in memory."""
    if not run.evaluation:
        raise ValueError("a release never reads the truth")
    numbers = run.plan.numbers
    if numbers is None or not repeats:
        return ()
    fields = number_fields(numbers)
    query = statement("33_evaluate_numbers", numbers=", ".join(fields))
    with connect(run.vault, read_only=True) as vault:
        found = vault.execute(query, {"users": max(1, STUDIED_CODES // len(fields))}).fetchnumpy()
    columns = [np.asarray(found[name]) for name in fields]
    weights = np.stack(columns[numbers.columns :]) if len(columns) > numbers.columns else None
    codes, levels = np.stack(columns[: numbers.columns]).astype(np.uint32), np.asarray(found["level"], dtype=np.uint8)
    return study_means(numbers, levels, codes, weights, repeats, run.plan.recipe, run.stream("study numbers"))
