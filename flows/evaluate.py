"""The evaluation: the release's own stages with the truth beside them. It stays on the vault's side."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from prefect import flow

from flows.pipeline import conclude, draw, forget_vault, threads
from flows.progress import report
from pldp.errors import SpecError
from pldp.study import Study, study_attribute
from pldp.study_hidden import study_hidden
from tasks.combine import References, references_of
from tasks.home import Home
from tasks.ingest import ingest
from tasks.numbers import NumberResults, mean_rows, quantile_rows
from tasks.query import connect
from tasks.run import AnyRun, Run, open_run
from tasks.specfile import load_spec
from tasks.tables import validation_rows
from tasks.truth import study_numbers, true_counts, true_numbers

if TYPE_CHECKING:
    from expectations.runner import Verdict

_MEANS = {"attribute": pl.String, "method": pl.String, "repeats": pl.Int64, "users": pl.Int64} | dict.fromkeys(
    ("rmse", "predicted", "bias", "coverage"), pl.Float64
)


@dataclass(frozen=True)
class Evaluated:
    evaluation_id: str
    folder: Path
    n_users: int
    cells: pl.DataFrame
    """One run through the pipeline: attribute × value, with the truth."""
    methods: pl.DataFrame
    """Over the repetitions: attribute × method."""
    means: pl.DataFrame
    """Over the repetitions: numeric attribute × estimator, in the attribute's units."""
    numbers: pl.DataFrame
    """The one run's means and quantiles, with the truth."""
    verdicts: tuple[Verdict, ...]


def evaluate(
    spec_path: Path,
    home: Path,
    *,
    repeat: int = 1000,
    seed: int | None = None,
    keep_levels: bool = False,
    source: Path | None = None,
) -> Evaluated:
    file = load_spec(spec_path, source)
    if file.spec.source.reports is not None:
        raise SpecError(
            f"{spec_path}: source.reports holds no truth to compare with; an evaluation needs source.path. "
            "Nothing was run."
        )
    Home(home).prepare()
    return evaluate_flow(str(spec_path), str(home), repeat, seed, keep_levels, None if source is None else str(source))


@flow(name="evaluate", task_runner=threads(), persist_result=False, validate_parameters=False)
def evaluate_flow(
    spec_path: str, home: str, repeat: int, seed: int | None, keep_levels: bool, source: str | None
) -> Evaluated:
    """One run of the pipeline, then `repeat` runs of the exact aggregate sampler."""
    file = load_spec(Path(spec_path), None if source is None else Path(source))
    slot = "evaluation" if seed is not None else f"evaluation-{secrets.token_hex(8)}"
    run = open_run(Home(Path(home)), file, slot, evaluation=True, seed=seed)
    report("ingest", 0)
    ingested = ingest(run, file)
    report("ingest", 1)
    draw(run, ingested)
    counts = true_counts(run)
    truth = {name: found.sum(axis=0) / ingested.n_users for name, found in counts.items()}
    reference = file.spec.combination.reference
    is_truth = reference is not None and reference.kind == "truth"
    references: References | None = truth if is_truth else references_of(run, file)
    true_means, true_quantiles = true_numbers(run)
    outcome = conclude(run, ingested, references, truth, true_means)
    rng = np.random.default_rng(seed)
    studies: dict[str, Study] = {}
    hidden = run.plan.hidden
    for done, attribute in enumerate(run.plan.attributes, start=1):
        if repeat:
            study = study_attribute if hidden is None else partial(study_hidden, hidden=hidden)
            studies[attribute.name] = study(
                attribute,
                recipe=run.plan.recipe,
                level_counts=counts[attribute.name],
                repeats=repeat,
                rng=rng,
                keep_levels=keep_levels,
            )
        report("repeat", done, len(run.plan.attributes))
    shares = [share for attribute in run.plan.attributes for share in truth[attribute.name]]
    cells = outcome.rows.with_columns(truth=pl.Series(shares, dtype=pl.Float64))
    methods = _method_rows(run, studies)
    means = pl.DataFrame([vars(study) for study in study_numbers(run, repeat)], schema=_MEANS)
    numbers = _number_rows(run, outcome.numbers, true_means, true_quantiles)
    tables = {"cells": cells, "methods": methods, "means": means, "numbers": numbers}
    keep(run, {**tables, "validations": validation_rows(outcome.verdicts)})
    forget_vault(run, file)
    return Evaluated(run.release_id, run.folder, ingested.n_users, cells, methods, means, numbers, outcome.verdicts)


def _number_rows(
    run: Run,
    found: NumberResults | None,
    true_means: dict[str, float],
    true_quantiles: dict[tuple[str, float], float],
) -> pl.DataFrame:
    """Means have no probability."""
    shared = ("attribute", "probability", "method", "estimate", "standard_error", "ci_low", "ci_high", "n_reports")
    means = mean_rows(run.plan, found).rename({"mean": "estimate"}).with_columns(probability=pl.lit(None, pl.Float64))
    quantiles = quantile_rows(found).rename({"quantile": "estimate"})
    truth = [true_means[name] for name in means["attribute"]]
    truth += [true_quantiles[key] for key in zip(quantiles["attribute"], quantiles["probability"], strict=True)]
    rows = pl.concat([means.select(shared), quantiles.select(shared)])
    return rows.with_columns(truth=pl.Series(truth, dtype=pl.Float64))


def _method_rows(run: Run, studies: dict[str, Study]) -> pl.DataFrame:
    rows = []
    for attribute, study in studies.items():
        for method in study.methods:
            rmse = float(np.sqrt(np.mean(method.rmse**2)))
            predicted = None if method.predicted is None else float(np.sqrt(np.mean(method.predicted**2)))
            rows.append(
                {
                    "attribute": attribute,
                    "method": method.method,
                    "repeats": method.repeats,
                    "rmse": rmse,
                    "predicted": predicted,
                    "worst_bias": float(np.max(np.abs(method.bias))),
                    "coverage": method.coverage,
                    "maximum_error": method.maximum_error,
                    "nse": method.nse,
                    "unbiasedness_rate": study.unbiasedness_rate,
                    "disagreement_rate": study.disagreement_rate,
                }
            )
    numbers = ("rmse", "predicted", "worst_bias", "coverage", "maximum_error", "nse")
    rates = ("unbiasedness_rate", "disagreement_rate")
    schema = {"attribute": pl.String, "method": pl.String, "repeats": pl.Int64} | dict.fromkeys(
        (*numbers, *rates), pl.Float64
    )
    return pl.DataFrame(rows, schema=schema)


def keep(run: AnyRun, tables: dict[str, pl.DataFrame]) -> None:
    """The evaluation's own database, in its folder on the vault's side; no command publishes it."""
    path = run.folder / "evaluation.duckdb"
    path.unlink(missing_ok=True)
    with connect(path) as connection:
        for table, frame in tables.items():
            connection.from_arrow(frame.to_arrow()).create(table)
