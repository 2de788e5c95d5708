"""Aggregates beside the truth, for evaluations. What the noise loses is known by formula, so only intervals of totals
are looked at again and again: by the law of summed noise, which needs nobody's reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.estimate.dealing import AS_STATED
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.losses import loss_rows
from pldp.questions.aggregates.objectives import Floats
from pldp.questions.aggregates.prove import spends
from pldp.questions.aggregates.reports import report_numbers, true_aggregates
from pldp.questions.aggregates.spec import PROFILE
from pldp.questions.aggregates.tables import aggregate_rows
from pldp.questions.aggregates.totals import AggregatesResult
from pldp.questions.question import Partitions, Repeats, Reports, Rows
from pldp.questions.rows import coverage_row, stacked

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates

REPEATS = 1000
_TINY = 1e-6


def true_totals(plan: Aggregates, people: Partitions, result: AggregatesResult) -> Units:
    """The sum of everybody's aggregates, one per attribute, in grid units."""
    totals: Units = np.zeros(len(plan.attributes), dtype=np.int64)
    for rows in people(plan.vault_fields):
        totals += true_aggregates(plan, rows).sum(axis=0)
    return totals


def noise_sums(plan: Aggregates, people: Partitions, reports: Reports) -> dict[str, Floats]:
    """By provider, how far reports lie from their users' aggregates: Σ|noise| and Σ noise², (2, attribute), grid units.

    Row i of a partition is the user of row i of its files, which holds as long as nobody has shuffled them.
    """
    sheets = {provider: sheet for sheet in plan.sheets() for provider in (plan.provider_of(sheet),)}
    sums: dict[str, Floats] = {provider: np.zeros((2, len(plan.attributes))) for provider in sheets}
    partitions = people([plan.choice_field, *plan.vault_fields])
    for rows, *files in zip(partitions, *(reports.columns(sheet) for sheet in sheets.values()), strict=True):
        truth = true_aggregates(plan, rows)
        for total, file in zip(sums.values(), files, strict=True):
            if not np.array_equal(file[PROFILE], rows[plan.choice_field]):
                raise ValueError("reports are not in the order of their users: an evaluation shuffles no sheet")
            noise = np.abs(report_numbers(plan, file) - truth)
            total += [noise.sum(axis=0), np.square(noise.astype(np.float64)).sum(axis=0)]
    return sums


def study(
    plan: Aggregates, people: Partitions, truth: Units, result: AggregatesResult, repeats: Repeats
) -> dict[str, Rows]:
    """Tables: aggregates (provider × attribute), the totals beside the truth and the mean error of a report as measured
    and as predicted; losses (provider × spending × profile); coverage of the totals' intervals over repetitions."""
    reports = repeats.reports
    if reports is None:
        raise ValueError("aggregates are compared with the truth report by report, so their study needs the reports")
    grid, measured = plan.steps, noise_sums(plan, people, reports)
    parts: list[dict[str, Any]] = []
    for name, sums in result.sums.items():
        n_users, mechanism = sums.n_reports, plan.mechanisms[name]
        size, squared = measured[name] * [grid, grid**2] / n_users
        columns = {
            "truth": truth * grid,
            "mean_error": size,
            "predicted_mean_error": sums.users @ mechanism.mean_size / n_users * grid,
            "mean_squared_error": squared,
            "predicted_mean_squared_error": sums.users @ mechanism.variance / n_users * grid**2,
            "z": (result.totals[name].total - truth * grid) / result.totals[name].standard_error,
        }
        parts.append({column: values.tolist() for column, values in columns.items()})
    repeat = REPEATS if repeats.repeat is None else repeats.repeat
    covered = coverage(plan, truth, result, repeat, np.random.default_rng(repeats.seed)) if repeat else {}
    return {
        "aggregates": {**aggregate_rows(plan, result.totals), **stacked(parts)},
        "losses": loss_rows(plan),
        **({"coverage": covered} if covered else {}),
    }


def coverage(plan: Aggregates, truth: Units, result: AggregatesResult, repeats: int, rng: np.random.Generator) -> Rows:
    """Provider × class of attributes: totals of nothing, the largest one, and the others."""
    largest = int(np.abs(truth).argmax())
    classes = ["nobody" if total == 0 else "middle" for total in truth]
    classes[largest] = "top"
    rows = []
    for provider in plan.providers:
        estimated, users = result.totals[provider.name], result.sums[provider.name].users
        reach = (estimated.ci_high - estimated.total) / plan.steps
        held = np.abs(_summed_noise(spends(plan, provider), users, repeats, rng)) <= reach
        rates = dict(zip(plan.attributes, held.mean(axis=0).tolist(), strict=True))
        for name in dict.fromkeys(classes):
            cells = {one: rates[one] for one, belongs in zip(plan.attributes, classes, strict=True) if belongs == name}
            rows.append(coverage_row(provider.name, "total", AS_STATED, name, cells, repeats))
    return stacked(rows)


def _summed_noise(x: Floats, users: Units, repeats: int, rng: np.random.Generator) -> Floats:
    """(repeat, attribute): a sum of n two-sided geometric numbers is the difference of two negative binomial ones."""
    total = np.zeros((repeats, x.shape[1]))
    for spent, n in zip(x, users.tolist(), strict=True):
        for attribute, each in enumerate(spent.tolist() if n else ()):
            sides = (
                rng.gamma(n, 1 / each, (2, repeats))  # its limit, whose counts would not fit whole numbers
                if each < _TINY
                else rng.negative_binomial(n, -np.expm1(-each), (2, repeats))
            )
            total[:, attribute] += sides[0] - sides[1]
    return total
