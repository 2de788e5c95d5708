"""Combine: level estimates to one histogram an attribute, with its errors."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from pldp.channels.protocol import Floats
from pldp.errors import SpecError
from pldp.estimate.inference import Histogram, estimate_histogram
from pldp.estimate.likelihood import maximum_likelihood
from pldp.questions.histograms.hidden import estimate_hidden
from pldp.questions.histograms.plan import Plan
from pldp.tasks.blocks import blocks_of
from pldp.tasks.count import Support
from pldp.tasks.estimate import LevelEstimates
from pldp.tasks.query import connect_published, statement
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage

References = Mapping[str, Floats]


@stage(retries=2)
def combine(
    run: Run,
    supports: tuple[Support, ...],
    estimates: tuple[LevelEstimates, ...],
    references: References | None,
    partitions: int,
) -> tuple[Histogram, ...]:
    """The recipe of the plan, attribute by attribute.

    The bootstrap behind biased methods simulates from published numbers only, so its generator needs no secret;
    it follows from the release, and a resumed release gets the same errors (a seeded evaluation in any home).
    """
    plan = run.plan
    if plan.hidden is not None:
        report = plan.hidden.protocol
        return tuple(
            estimate_hidden(
                support.counts,
                support.n,
                attribute.protocols,
                report,
                plan.recipe,
                blocks_of(run, attribute, support, partitions),
                generator(run, attribute.name),
                with_covariance=bool(attribute.probabilities),
            )
            for attribute, support in zip(plan.attributes, supports, strict=True)
        )
    histograms = []
    for attribute, support, found in zip(plan.attributes, supports, estimates, strict=True):
        reference = None if references is None else references.get(found.attribute)
        recipe = plan.recipe
        if reference is None and recipe.method in ("op", "op-exact"):
            recipe = replace(recipe, method="oc+")  # the first release of its name has no previous one
        likelihood = partial(maximum_likelihood, blocks_of(run, attribute, support, partitions), attribute.protocols)
        rng, dependent = generator(run, attribute.name), bool(attribute.probabilities)
        histograms.append(
            estimate_histogram(found.levels, recipe, reference, rng, likelihood, with_covariance=dependent)
        )
    return tuple(histograms)


def generator(run: Run, attribute: str) -> np.random.Generator:
    origin = run.release_id if run.seed is None else f"seed {run.seed}"
    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{origin} {attribute}".encode()).digest()))


def references_of(run: Run, file: SpecFile) -> References | None:
    """What the spec measures `op` against; the truth is not for this function to know."""
    reference = file.spec.combination.reference
    if reference is None or reference.kind == "truth":
        return None
    if reference.path is not None:
        found = public_references(file, reference.path)
        run.require_unchanged(file.resolve(reference.path))
        return found
    return previous_references(run.home.results, run.plan)


def public_references(file: SpecFile, path: str) -> References:
    """A table the operator supplies: attribute, value, frequency."""
    table = file.resolve(path)
    try:
        with table.open(encoding="utf-8", newline="") as handle:
            rows = {(row["attribute"], row["value"]): float(row["frequency"]) for row in csv.DictReader(handle)}
    except (OSError, KeyError, ValueError, TypeError, csv.Error):  # a short row has None for a number
        raise SpecError(
            f"{file.path}: combination.reference.path must be a CSV with columns attribute, value, frequency "
            f"(got {path!r}). Nothing was run."
        ) from None
    return _complete(file.plan, rows, f"{file.path}: combination.reference.path {path!r}")


def previous_references(results: Path, plan: Plan) -> References | None:
    """The last published release of the same name, if there is one with the same values."""
    if not results.exists():
        return None
    with connect_published(results) as connection:
        rows = connection.execute(statement("40_combine_previous"), {"name": plan.name}).fetchall()
    found = {(attribute, value): frequency for attribute, value, frequency in rows}
    if not all((a.name, value) in found for a in plan.attributes for value in a.values):
        return None
    return _complete(plan, found, "the previous release")


def _complete(plan: Plan, rows: Mapping[tuple[str, str], float], origin: str) -> References:
    for attribute in plan.attributes:
        for value in attribute.values:
            if not np.isfinite(rows.get((attribute.name, value), np.nan)):
                raise SpecError(
                    f"{origin} needs a finite frequency for attribute {attribute.name!r}, value {value!r}. "
                    "Nothing was run."
                )
    return {a.name: np.array([rows[a.name, value] for value in a.values]) for a in plan.attributes}
