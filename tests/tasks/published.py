"""Published releases made by hand: rows as they are wished, through the real publication, without a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pldp.expectations.runner import Verdict
from pldp.tables.common import BUDGETS
from pldp.tasks.publish import publish
from pldp.tasks.tables import frame as declared
from tests.people import histograms_of, make_people, opened, world

PASSED = Verdict("level_sums", "Every level's estimates sum to one.", True, 0.5, 2.5e-06, 5e-06)
FAILED = Verdict("levels_agree", "The levels estimate the same histogram.", False, 0.0, 5e-06, 5e-06)


def publish_by_hand(
    folder: Path,
    slot: str = "manual",
    *verdicts: Verdict,
    method: str = "guarded",
    more: Mapping[str, pl.DataFrame] | None = None,
    **sections: Any,
) -> tuple[Path, str]:
    """The home, and the id of a release with the spec's values at falling frequencies."""
    home = folder / "home"
    run, _ = opened(world(folder, make_people(10), **sections), home, slot)
    plan = histograms_of(run)
    histograms, levels = [], []
    for attribute in plan.attributes:
        weights = 1 / np.arange(1, len(attribute.values) + 1)
        shares = weights / weights.sum()
        frame = pl.DataFrame({"value": attribute.values, "frequency": shares}).with_columns(
            attribute=pl.lit(attribute.name), standard_error=pl.lit(0.02)
        )
        histograms.append(
            frame.with_columns(
                method=pl.lit(method),
                postprocess=pl.lit("norm-sub"),
                ci_low=(pl.col("frequency") - 0.04).clip(0, 1),
                ci_high=(pl.col("frequency") + 0.04).clip(0, 1),
                count=pl.col("frequency") * 2000,
                unbiased_frequency=pl.col("frequency") - 0.001,
                n_reports=pl.lit(2000, dtype=pl.Int64),
                reliable=pl.col("frequency") > 0.06,
                unbiased_standard_error=pl.lit(0.03),
            )
        )
        levels += [
            frame.with_columns(
                level=pl.lit(level.level), mechanism=pl.lit("brr"), n_reports=pl.lit(700, dtype=pl.Int64)
            )
            for level in attribute.levels
        ]
    tables = {
        "histograms": pl.concat(histograms),
        "level_estimates": pl.concat(levels),
        "budgets": declared(BUDGETS, plan.budgets(None)),
    }
    publish.fn(run, 2000, {**tables, **(more or {})}, verdicts or (PASSED,))
    return home, run.release_id
