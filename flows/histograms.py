"""Histograms and numbers of users' attributes: what a release and an evaluation of them do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from pldp.errors import SpecError
from pldp.flows.kinds import Asked, Concluded, Kind
from pldp.flows.pipeline import Outcome, conclude, draw
from pldp.flows.progress import report
from pldp.questions.histograms.binned import even_quantiles
from pldp.questions.histograms.study import Study, study_attribute
from pldp.questions.histograms.study_hidden import study_hidden
from pldp.tasks.collect import collect
from pldp.tasks.combine import References, references_of
from pldp.tasks.histogram_tables import budget_rows, level_rows, share_rows
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.numbers import mean_rows, number_tables, quantile_rows
from pldp.tasks.run import Run, open_run
from pldp.tasks.specfile import Given, SpecFile, load_spec
from pldp.tasks.truth import study_numbers, true_counts, true_numbers

REPEATS = 1000
_MEANS = {"attribute": pl.String, "method": pl.String, "repeats": pl.Int64, "users": pl.Int64} | dict.fromkeys(
    ("rmse", "predicted", "bias", "coverage"), pl.Float64
)


def _load(path: Path, source: Path | None, runner: Given, *, evaluation: bool) -> SpecFile:
    file = load_spec(path, source, runner)
    if evaluation and file.spec.source.reports is not None:
        raise SpecError(
            f"{path}: source.reports holds no truth to compare with; an evaluation needs source.path. Nothing was run."
        )
    return file


def _ingest(run: Run, file: SpecFile) -> Ingested:
    references_of(run, file)  # a bad reference is told before anything is spent
    return ingest(run, file) if file.spec.source.reports is None else collect(run, file)


def _draw(run: Run, file: SpecFile, ingested: Ingested) -> None:
    if file.spec.source.reports is None:
        draw(run, ingested)


def _conclude(run: Run, file: SpecFile, ingested: Ingested) -> Concluded:
    outcome = conclude(run, ingested, references_of(run, file))
    plan = run.plan
    tables = {
        "histograms": outcome.rows,
        "budgets": budget_rows(plan, outcome.supports, outcome.numbers),
        **(
            {"level_estimates": level_rows(plan, outcome.estimates)}
            if plan.hidden is None
            else {"level_shares": share_rows(plan, outcome.supports)}
        ),
        **number_tables(plan, outcome.numbers, outcome.binned),
    }
    return Concluded(tables, outcome.verdicts)


def _study(run: Run, file: SpecFile, ingested: Ingested, asked: Asked) -> Concluded:
    """The one run beside the truth, then runs of the exact aggregate sampler.

    Tables: cells (attribute × value) and numbers of the one run; methods and means over the repetitions.
    """
    repeat = REPEATS if asked.repeat is None else asked.repeat
    counts = true_counts(run)
    truth = {name: found.sum(axis=0) / ingested.n_users for name, found in counts.items()}
    reference = file.spec.combination.reference
    is_truth = reference is not None and reference.kind == "truth"
    references: References | None = truth if is_truth else references_of(run, file)
    true_means, true_quantiles = true_numbers(run)
    for attribute in run.plan.attributes:
        true_quantiles |= even_quantiles(attribute, truth[attribute.name])
    outcome = conclude(run, ingested, references, truth, true_means)
    rng = np.random.default_rng(asked.seed)
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
                keep_levels=asked.keep_levels,
            )
        report("repeat", done, len(run.plan.attributes))
    shares = [share for attribute in run.plan.attributes for share in truth[attribute.name]]
    tables = {
        "cells": outcome.rows.with_columns(truth=pl.Series(shares, dtype=pl.Float64)),
        "methods": _method_rows(run, studies),
        "means": pl.DataFrame([vars(study) for study in study_numbers(run, repeat)], schema=_MEANS),
        "numbers": _number_rows(run, outcome, true_means, true_quantiles),
    }
    return Concluded(tables, outcome.verdicts)


def _number_rows(
    run: Run,
    found: Outcome,
    true_means: dict[str, float],
    true_quantiles: dict[tuple[str, float], float],
) -> pl.DataFrame:
    """Means have no probability."""
    shared = ("attribute", "probability", "method", "estimate", "standard_error", "ci_low", "ci_high", "n_reports")
    means = (
        mean_rows(run.plan, found.numbers)
        .rename({"mean": "estimate"})
        .with_columns(probability=pl.lit(None, pl.Float64))
    )
    distributions = (*(found.numbers.quantiles if found.numbers is not None else ()), *found.binned)
    quantiles = quantile_rows(distributions).rename({"quantile": "estimate"})
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


KIND = Kind(
    load=_load,
    open=open_run,
    ingest=_ingest,
    draw=_draw,
    conclude=_conclude,
    study=_study,
    artifacts=("histograms", "budgets"),
)
