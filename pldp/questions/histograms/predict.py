"""What a plan promises the analyst, from the spec's assumptions alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.answer import GUARDED
from pldp.estimate.capped import cap_sentence
from pldp.estimate.combine import (
    LINEAR_METHODS,
    Levels,
    estimate_levels,
    linear_variance,
    linear_weights,
    noise_variances,
    spread,
)
from pldp.estimate.hidden import auem, hidden_sum, self_calibrated
from pldp.estimate.inference import Recipe, apply
from pldp.estimate.invert import INDEPENDENT, Cover, hypothesis_table
from pldp.estimate.likelihood import MOST_VALUES, table_blocks
from pldp.estimate.mixture import correct_em
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.fakes import with_fakes
from pldp.questions.histograms.choices import covered, width_rows
from pldp.questions.histograms.considered import protocol_rows
from pldp.questions.histograms.fakes import FORCED, fake_reaches, may_fall_back
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan
from pldp.questions.question import Predictions
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

SIMULATIONS = 400
_SEED = 0
"""Simulated predictions are repeatable; they touch nobody's data."""


@dataclass(frozen=True)
class LevelCost:
    """What the analyst pays when people choose a level."""

    level: str
    standard_error: float
    """Typical standard error of this level's own estimate."""
    everyone: float
    """Typical standard error of the histogram if everybody chose this level."""
    information: float
    """What one user at this level tells, as a share of what one at the weakest level tells."""


def typical(standard_error: Floats) -> float:
    """One number for an attribute: the root mean square over its values."""
    return float(np.sqrt(np.mean(np.square(standard_error))))


def predict_linear(
    attribute: AttributePlan, method: str, sizes: Counts, frequency: Floats, cover: Cover = INDEPENDENT
) -> Floats:
    """Standard error of a linear method per value, if levels are chosen independently of the value."""
    chosen = sizes > 0
    protocols = tuple(p for p, has_users in zip(attribute.protocols, chosen, strict=True) if has_users)
    noise = noise_variances(protocols, frequency)
    between = spread(frequency, int(sizes.sum()))
    if method == GUARDED:
        weights = hypothesis_table(method, sizes[chosen], protocols, cover).weights_at(frequency)
    else:
        weights = linear_weights(method, sizes[chosen], noise, between, cover.cap)
    return np.sqrt(linear_variance(weights, sizes[chosen], noise, between))


def predict_level(attribute: AttributePlan, level: int, size: int, frequency: Floats) -> Floats:
    """Standard error of one level's estimate of its own users."""
    return np.sqrt(attribute.protocols[level].noise_variance(frequency) / max(size, 1))


def predict_simulated(
    attribute: AttributePlan, method: str, recipe: Recipe, sizes: Counts, frequency: Floats, rng: np.random.Generator
) -> Floats:
    """Root mean squared error of a biased choice (`op`, post-processing), by simulation; `op` with the truth."""
    counts = whole_counts(frequency, int(sizes.sum()))
    truth = counts / counts.sum()
    levels = _simulate(attribute, counts, sizes, rng)
    return np.sqrt(np.mean((apply(method, recipe, levels, truth) - truth) ** 2, axis=0))


def _simulate(attribute: AttributePlan, counts: Counts, sizes: Counts, rng: np.random.Generator) -> Levels:
    dealt = draw_levels(counts, sizes, SIMULATIONS, rng)
    return estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)


def predict_hidden(attribute: AttributePlan, hidden: HiddenPlan, sizes: Counts, frequency: Floats) -> dict[str, Floats]:
    """Standard errors per value by method where levels are hidden, from the counts to be expected.

    `em` only where distinct reports are few (k-RR); elsewhere it is no worse than the others.
    """
    protocols, report = attribute.protocols, hidden.protocol
    n_users = int(sizes.sum())
    telling = np.full((sizes.size, sizes.size), report.q) + np.eye(sizes.size) * report.gap
    supported = np.stack([protocol.q + frequency * protocol.gap for protocol in protocols])
    reported = sizes @ telling
    joint = telling.T @ (sizes[:, None] * supported)
    errors = {
        "auem": auem(joint, reported, protocols, report).standard_error,
        "sum": hidden_sum(joint, reported, protocols, report).standard_error,
    }
    if isinstance(protocols[0], KRR) and frequency.size <= MOST_VALUES:
        fitted = correct_em(table_blocks(protocols, joint), protocols, report)
        errors["em"] = fitted.standard_error
    elif attribute.levels[0].mechanism == "brr" and frequency.size > 2:
        errors["self-calibrated"] = self_calibrated(joint.sum(axis=0), n_users, protocols).standard_error
    return errors


def level_costs(attribute: AttributePlan, sizes: Counts, frequency: Floats) -> tuple[LevelCost, ...]:
    """By level: the error of its people, the error if all chose it, and what one of them tells beside the best."""
    n_users = int(sizes.sum())
    information = [
        float(np.mean(1 / (protocol.noise_variance(frequency) + spread(frequency, n_users))))
        for protocol in attribute.protocols
    ]
    return tuple(
        LevelCost(
            level=level.level,
            standard_error=typical(predict_level(attribute, i, int(sizes[i]), frequency)),
            everyone=typical(predict_level(attribute, i, n_users, frequency)),
            information=information[i] / max(information),
        )
        for i, level in enumerate(attribute.levels)
    )


def typical_errors(plan: Histograms, users: int | None = None) -> dict[str, float]:
    """The typical standard error of every attribute's shares, before post-processing.

    Of `guarded` where the method has no formula; where levels are hidden, of the method or else of `auem`.
    """
    sizes = plan.expected_sizes(users)
    errors = {}
    for attribute in plan.attributes:
        method = plan.methods_of(attribute)[0]
        if plan.hidden is not None:
            known = predict_hidden(attribute, plan.hidden, sizes, attribute.frequencies)
            error = known.get(method, known["auem"])
        else:
            linear = method if method in LINEAR_METHODS else GUARDED
            error = predict_linear(attribute, linear, sizes, attribute.frequencies, plan.recipe.cover)
        errors[attribute.name] = typical(error)
    return errors


def predictions(plan: Histograms, spec: Any) -> Predictions:
    """Tables: errors (attribute × method), levels (attribute × level: what a choice costs), widths (attribute ×
    dependence: how long intervals are that cover it), protocols (attribute × level × mechanism: what each does), and
    where clients send reports fakes (attribute × combination: how far one fake in a hundred moves a share)."""
    sizes = plan.expected_sizes()
    costs = [
        {"attribute": [attribute.name], **vars(cost)}
        for attribute in plan.attributes
        for cost in level_costs(attribute, sizes, attribute.frequencies)
    ]
    errors = [row for attribute in plan.attributes for row in _errors(plan, attribute, sizes)]
    tables = {"errors": stacked(errors), "levels": stacked(costs)}
    widths = width_rows(plan, sizes)
    if widths:
        tables["widths"] = stacked(widths)
    tables["protocols"] = protocol_rows(plan, spec)
    assumed = _assumptions(plan, sizes)
    if spec.source.reports is not None and may_fall_back(plan):
        assumed += (FORCED,)
    return with_fakes(Predictions(tables, assumed), spec, fake_reaches(plan, sizes))


def _errors(plan: Histograms, attribute: AttributePlan, sizes: Counts) -> list[dict[str, Any]]:
    """Typical error per method: by formula where there is one, by simulation where the estimate is biased."""
    truth, recipe = attribute.frequencies, replace(plan.recipe, method=plan.methods_of(attribute)[0])
    rng = np.random.default_rng(_SEED)
    known: list[tuple[str, str, float]] = []
    simulated: dict[str, Recipe] = {}
    if plan.hidden is not None:
        for method, error in predict_hidden(attribute, plan.hidden, sizes, truth).items():
            known.append((method, "formula", typical(error)))
    else:
        for method in LINEAR_METHODS:
            known.append((method, "formula", typical(predict_linear(attribute, method, sizes, truth, recipe.cover))))
        linear = replace(recipe, method=GUARDED) if recipe.method == "em" else recipe
        if recipe.postprocess != "none":
            simulated[f"{linear.method}, {recipe.postprocess}"] = linear
    for method in plan.methods_of(attribute):
        if method in ("op", "op-exact"):
            simulated[f"{method}, none"] = replace(recipe, method=method, postprocess="none")
    for label, variant in simulated.items():
        error = predict_simulated(attribute, variant.method, variant, sizes, truth, rng)
        known.append((label, "simulation", typical(error)))
    return [
        {"attribute": [attribute.name], "values": len(truth), "method": method, "standard_error": error, "by": by}
        for method, by, error in known
    ]


def _assumptions(plan: Histograms, sizes: Counts) -> tuple[str, ...]:
    chosen = ", ".join(f"{level} {size:,}" for level, size in zip(plan.levels, sizes, strict=True))
    stated = [a.name for a in plan.attributes if len(set(a.assumed)) > 1]
    assumed = [
        f"{plan.expected_users:,} users, of whom choose {chosen}",
        "errors are those of levels chosen independently of the value",
        *filter(None, [covered(plan), cap_sentence(plan.recipe.level_weight_cap)]),
        f"frequencies as stated for {', '.join(stated)}, equal for the rest" if stated else "equal frequencies",
    ]
    if plan.hidden is not None:
        assumed.append("levels are hidden: estimates see only what the reports tell about them")
    if any(method in ("op", "op-exact") for method in plan.methods):
        assumed.append(
            "op is simulated with the true histogram as its reference; with a noisy one (the previous release) "
            "its largest error is typically 5 to 15 % above that of oc"
        )
    return tuple(assumed)
