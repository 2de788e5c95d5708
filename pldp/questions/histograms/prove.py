"""Histograms prove their channels and estimators: see docs/methods.md, section 17."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.protocol import Counts, Floats, Values
from pldp.channels.randomness import Keystream
from pldp.channels.unary import Unary
from pldp.estimate.combine import LINEAR_METHODS
from pldp.estimate.simulate import whole_counts
from pldp.proof.compared import Compared
from pldp.proof.laws import ROUNDING, support_law
from pldp.proof.power import Count, shared
from pldp.proof.support import BLOCKS, cells_for, compare_support, people_for, support_trial
from pldp.proof.trial import OFF, Trial, shifted
from pldp.questions.histograms.prove_errors import errors, noise_of
from pldp.questions.histograms.prove_tables import Cells, Known, published, shares_of_levels
from pldp.questions.histograms.reports import HistogramTally
from pldp.questions.histograms.reports import weights as set_bits
from pldp.questions.madeup import MadeUp, NoReports, counted
from pldp.questions.question import Sheet

if TYPE_CHECKING:
    from pldp.questions.histograms.plan import AttributePlan, HiddenPlan
    from pldp.questions.histograms.question import Histograms

MADE_UP = 1_000_000
"""People behind expected tallies: enough that no estimator takes them for few."""
_CALLS, _LEAST_BLOCKS = 400, 3
"""How often people of one value are drawn, of all channels together: each time takes a millisecond, however few."""
_LEAST_NOISE = 1e-6
HIDDEN_METHODS = ("auem", "self-calibrated", "sum")


def recomputed(plan: Histograms) -> Iterator[Compared]:
    """Every channel of every attribute and level, and the one of hidden levels, against its law."""
    for attribute in plan.attributes:
        for level in attribute.levels:
            yield compare_support(f"{attribute.name} at {level.level}", level.protocol, float(level.budget))
    if plan.hidden is not None:
        yield compare_support("the level", plan.hidden.protocol, float(plan.hidden.budget))


def recovered(plan: Histograms) -> Iterator[Compared]:
    """By every method that is linear in the tallies, or a ratio of such; likelihoods and `op` have them beside.
    Post-processing comes after the unbiased column; of hidden levels the errors of quantiles are simulated."""
    known = LINEAR_METHODS if plan.hidden is None else HIDDEN_METHODS
    asked = [method for method in plan.methods if method in known] or [known[0] if plan.hidden else "oc+"]
    left_out = {"probabilities": ()} if plan.hidden is not None else {}
    for method in asked:
        # Levels whose people differ show the weight of each. Nothing falls back, however far they are apart.
        leaning = plan.hidden is None and _weights_known(plan, method)
        recipe = replace(plan.recipe, method=method, postprocess="none", alpha=0.0)
        # Of hidden levels not every protocol has every method: those that do not name this one have the first.
        mine = [a for a in plan.attributes if plan.hidden is None or method in plan.methods_of(a)] or plan.attributes
        by = {a.name: method if a in mine else known[0] for a in plan.attributes}
        attributes = tuple(a.model_copy(update={"methods": (by[a.name],), **left_out}) for a in plan.attributes)
        alone = plan.model_copy(update={"attributes": attributes, "recipe": recipe})
        tallies = {path: _expected(alone, *place, leaning=leaning) for path, place in alone.places.items()}
        estimates = {each: alone.combine(each, tallies, NoReports()) for each in dict.fromkeys(by.values())}
        tables = alone.tables(alone.conclude(tallies, estimates))
        cells = Cells(tables)
        for attribute in (one for one in attributes if by[one.name] == method):
            truth, slack = _truths(attribute, len(plan.levels), leaning), _slack(plan, attribute)
            weights = _weights(plan, attribute, method, truth) if leaning else np.eye(len(truth), 1)
            whole = (weights * truth).sum(axis=0)
            by_level = truth if leaning else np.repeat(truth[:1], len(plan.levels), axis=0)
            known_shares = Known(attribute, method, by_level, whole, _sizes(plan), slack)
            yield from published(cells, known_shares)
            if len(attribute.values) > 1:
                yield from errors(alone, cells, known_shares, weights if leaning else None)
        if plan.hidden is not None:
            names = [None] if plan.one_level_for_all else [attribute.name for attribute in attributes]
            slack = ROUNDING / plan.hidden.protocol.gap
            yield from shares_of_levels(cells, names, plan.levels, _sizes(plan), slack)


def _weights_known(plan: Histograms, method: str) -> bool:
    """Whether weights have a formula: not under a cap, nor of `guarded` with a dependence above 1, where they are
    found; and of `oc`, whose weights are the noise's, where doubles have digits of it."""
    if method == "sum":
        return True
    if plan.recipe.level_weight_cap is not None or (method == "guarded" and plan.recipe.dependence != 1):
        return False
    return method != "oc" or all(
        support_law(at.protocol, float(at.budget)).q > _LEAST_NOISE for a in plan.attributes for at in a.levels
    )


def _weights(plan: Histograms, attribute: AttributePlan, method: str, truth: Floats) -> Floats:
    """(level, value), by the formulas of docs/methods.md, section 7: ∝ n_τ, n_τ/v_τ, n_τ/(v_τ + S²)."""
    sizes = _sizes(plan)[:, None] / MADE_UP
    if method == "sum" or len(attribute.values) == 1:
        return np.asarray(np.broadcast_to(sizes, truth.shape))

    def weights(share: Floats, between: float) -> Floats:
        raw = sizes / (noise_of(attribute, share) + between * share * (1 - share) * MADE_UP / (MADE_UP - 1))
        return np.asarray(raw / raw.sum(axis=0))

    uniform = np.full(truth.shape[1], 1 / truth.shape[1])
    pilot = np.clip((weights(uniform, 1.0) * truth).sum(axis=0), 1 / MADE_UP, 1 - 1 / MADE_UP)
    return weights(pilot, 0.0 if method == "oc" else 1.0)


def _slack(plan: Histograms, attribute: AttributePlan) -> float:
    """Estimates divide by p − q, and those of hidden levels by that of the level's report too."""
    smallest = min(level.protocol.gap for level in attribute.levels)
    gap = 1.0 if plan.hidden is None else plan.hidden.protocol.gap
    return ROUNDING / (smallest * gap) if smallest else 0.0  # a subset of one value has no gap, nor any noise


def _truths(attribute: AttributePlan, levels: int, leaning: bool = False) -> Floats:
    """By level. Skewed, every value another share: k-RR leaves a uniform one where it is."""
    parts = 1 / np.arange(1, len(attribute.values) + 1)
    return np.stack([np.roll(parts / parts.sum(), level * leaning) for level in range(levels)])


def _sizes(plan: Histograms) -> Counts:
    return whole_counts(np.arange(1, len(plan.levels) + 1) / 1.0, MADE_UP)


def _expected(plan: Histograms, attribute: int, level: int | None, leaning: bool) -> HistogramTally:
    """What the reports add up to on average, by laws computed again; not whole numbers."""
    truth, sizes = _truths(plan.attributes[attribute], len(plan.levels), leaning), _sizes(plan)
    laws = [support_law(one.protocol, float(one.budget)) for one in plan.attributes[attribute].levels]
    chances = np.stack([law.q + shares * law.gap for law, shares in zip(laws, truth, strict=True)])
    if level is not None:
        return HistogramTally(sizes[level : level + 1], chances[level : level + 1] * sizes[level])
    if plan.hidden is None:
        raise ValueError("a sheet without a level is one of hidden levels")
    level_law = support_law(plan.hidden.protocol, float(plan.hidden.budget))
    say = np.full((len(laws), len(laws)), level_law.q) + level_law.gap * np.eye(len(laws))
    told_by, support = sizes @ say, say.T @ (sizes[:, None] * chances)
    return HistogramTally(told_by, support)  # type: ignore[arg-type]


def rehearsed(plan: Histograms, stream: Keystream, cells: int) -> Iterator[Trial]:
    """Made-up people of every attribute and level, who take `cells` at the most."""
    levels = [(number, at) for number, a in enumerate(plan.attributes) for at in a.levels]
    needs = [cells_for(at.protocol, float(at.budget)) for _, at in levels]
    parts = dict(zip([(number, at.level) for number, at in levels], shared(needs, cells), strict=True))
    blocks = min(BLOCKS, max(_LEAST_BLOCKS, _CALLS // len(levels)))
    for sheet in plan.sheets():
        number, level = plan.places[sheet.path]
        attribute = plan.attributes[number]
        allowed = [parts[number, at.level] for at in attribute.levels]
        if level is not None:
            yield _public(plan, sheet, attribute, level, stream, allowed[level], blocks)
        elif plan.hidden is not None:
            yield from _hidden(plan, plan.hidden, sheet, attribute, stream, allowed, blocks)


def _public(
    plan: Histograms, sheet: Sheet, attribute: AttributePlan, level: int, stream: Keystream, cells: int, blocks: int
) -> Trial:
    at = attribute.levels[level]

    bits = np.zeros(at.protocol.domain_size + 1 if isinstance(at.protocol, Unary) else 0, dtype=np.int64)

    def count(values: Values) -> Counts:
        reports, tally = counted(plan, sheet, MadeUp({sheet.fields[0]: values}), stream)
        bits[:] += set_bits(plan, sheet, reports)
        support: Counts = tally.support[0]
        return support

    channel = f"{attribute.name} at {at.level}"
    return support_trial(channel, float(at.budget), at.protocol, count, stream, cells, blocks, bits)


def _hidden(
    plan: Histograms,
    hidden: HiddenPlan,
    sheet: Sheet,
    attribute: AttributePlan,
    stream: Keystream,
    cells: list[int],
    blocks: int,
) -> Iterator[Trial]:
    """Everybody's level is known here, so the reports of a level can be looked at alone, and those about it too."""
    reported = np.zeros((len(attribute.levels), len(attribute.levels)), dtype=np.int64)
    for code, at in enumerate(attribute.levels):

        def count(values: Values, code: int = code) -> Counts:
            levels = np.full(values.size, code, dtype=np.uint16)
            tally = counted(plan, sheet, MadeUp({sheet.fields[0]: values, sheet.fields[1]: levels}), stream)[1]
            reported[code] += tally.n
            support: Counts = tally.support.sum(axis=0)
            return support

        channel = f"{attribute.name} at hidden {at.level}"
        yield support_trial(channel, float(at.budget), at.protocol, count, stream, cells[code], blocks)
    more = people_for(hidden.protocol, float(hidden.budget), max(cells)) - int(reported.sum())
    for code in range(len(attribute.levels) if more > 0 else 0):
        size = -(-more // len(attribute.levels))
        levels, values = (np.full(size, position, dtype=np.uint16) for position in (code, 0))
        people = MadeUp({sheet.fields[0]: values, sheet.fields[1]: levels})
        reported[code] += counted(plan, sheet, people, stream)[1].n
    yield _about_levels(hidden, attribute, reported)


def _about_levels(hidden: HiddenPlan, attribute: AttributePlan, reported: Counts) -> Trial:
    epsilon = float(hidden.budget)
    below, law, above = (support_law(hidden.protocol, epsilon * factor) for factor in (1 - OFF, 1, 1 + OFF))
    people, kept = reported.sum(axis=1), np.diag(reported)
    n = int(people.sum())
    chance = np.where(np.eye(len(reported), dtype=np.bool_), law.p, law.q)
    moves = n * shifted([below.p, law.p, above.p])
    return Trial.of(
        f"the level beside {attribute.name}",
        epsilon,
        n,
        [
            (float(kept.sum()), n * law.p, n * law.p * (1 - law.p), 1.0, moves, n),
            (
                reported.ravel(),
                (people[:, None] * chance).ravel(),
                (people[:, None] * chance * (1 - chance)).ravel(),
                1,
                0,
            ),
        ],
        [Count(n, lambda at: support_law(hidden.protocol, at).p)],
    )
