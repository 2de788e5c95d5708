"""Truth: true counts from the vault. For evaluations only."""

from __future__ import annotations

import numpy as np

from pldp.mechanisms.protocol import Counts
from tasks.query import connect, statement
from tasks.run import Run
from tasks.stage import stage


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
