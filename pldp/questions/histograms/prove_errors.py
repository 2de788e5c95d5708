"""Errors and intervals of shares that the proof expects of its made-up people, by docs/methods.md, sections 6 and 7,
docs/frequencies.md and docs/intervals.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from pldp.channels.protocol import Floats
from pldp.estimate.answer import gamma_of
from pldp.estimate.ends import Table
from pldp.estimate.inference import Recipe
from pldp.estimate.invert import hypothesis_table
from pldp.proof.compared import NEAR, Compared, errors_between
from pldp.proof.laws import support_law
from pldp.questions.histograms.prove_hidden import ends_of, errors_of_level_shares, variance_of
from pldp.questions.histograms.prove_tables import Cells, Known

if TYPE_CHECKING:
    from pldp.questions.histograms.plan import AttributePlan
    from pldp.questions.histograms.question import Histograms

_FINE = 0.079
"""Of an estimate's standard deviation: where one report moves it by less its law is taken to be normal."""
_SPREAD = 1e-8
"""A standard deviation beside which the rounding of a bias is nothing."""
_KEY = ("attribute", "value")


def errors(plan: Histograms, cells: Cells, known: Known, weights: Floats | None) -> Iterator[Compared]:
    """Of shares, with `weights` where these have a formula, and of every level; both ends of intervals, where levels
    are public."""
    if plan.hidden is not None:
        expected = variance_of(known.method, known, plan.hidden)
        beyond = known.whole * (1 - known.whole) * plan.recipe.population
        yield _published(cells, known, expected + beyond)
        name = None if plan.one_level_for_all else known.attribute.name
        yield errors_of_level_shares(cells, known, plan.hidden, name)
        yield ends_of(cells, known, plan.hidden, plan.recipe)
        return
    yield from errors_of_levels(cells, known)
    if weights is not None:
        yield errors_of_shares(cells, known, weights, plan.recipe)
    yield from intervals(cells, known, plan.recipe)


def noise_of(attribute: AttributePlan, share: Floats) -> Floats:
    """v_τ of one report, (level, value); levels' shares may differ."""
    p, q, gap = _chances(attribute)
    return np.asarray((share * p * (1 - p) + (1 - share) * q * (1 - q)) / gap**2)


def _chances(attribute: AttributePlan) -> tuple[Floats, Floats, Floats]:
    """(level, 1) each."""
    laws = [support_law(at.protocol, float(at.budget)) for at in attribute.levels]
    p, q, gap = (np.array([[getattr(one, part)] for one in laws]) for part in ("p", "q", "gap"))
    return p, q, gap


def errors_of_shares(cells: Cells, known: Known, weights: Floats, recipe: Recipe) -> Compared:
    """The variance of docs/methods.md, section 7, times n."""
    n = known.sizes.sum()
    share = np.clip(known.whole, 1 / n, 1 - 1 / n)
    sizes, spread = known.sizes[:, None] / n, share * (1 - share) * n / (n - 1)
    noise, apart = weights**2 * noise_of(known.attribute, share) / sizes, (weights - sizes) ** 2 / sizes
    expected = noise.sum(axis=0) + spread * (apart.sum(axis=0) + recipe.population)
    return _published(cells, known, expected)


def _published(cells: Cells, known: Known, expected: Floats) -> Compared:
    values = [(known.attribute.name, value) for value in known.attribute.values]
    places = (
        ("histograms", "unbiased_standard_error"),
        ("histograms", "standard_error"),
        ("estimates", "standard_error"),
    )
    stated = np.stack([cells.at(table, column, _KEY, values) for table, column in places])
    what = f"errors of {known.attribute.name} by {known.method}"
    return errors_between(what, stated**2 * known.sizes.sum(), expected, 8 * known.slack)


def errors_of_levels(cells: Cells, known: Known) -> Iterator[Compared]:
    """v_τ/n_τ of every level by itself."""
    attribute, noise = known.attribute, noise_of(known.attribute, known.by_level)
    for at, variance, people in zip(attribute.levels, noise, known.sizes.tolist(), strict=True):
        values = [(attribute.name, at.level, value) for value in attribute.values]
        stated = cells.at("level_estimates", "standard_error", ("attribute", "level", "value"), values)
        yield errors_between(f"errors of {attribute.name} at {at.level}", stated**2 * people, variance, 8 * known.slack)


def intervals(cells: Cells, known: Known, recipe: Recipe) -> Iterator[Compared]:
    """Tests of the shares that might be true, which no reports enter, and ends where they begin to reject."""
    attribute, name = known.attribute, f"{known.attribute.name} by {known.method}"
    table = hypothesis_table(known.method, known.sizes, attribute.protocols, recipe.cover)
    n = known.sizes.sum()
    # Of a single person more or less nothing lies between.
    wide = np.diff(table.share, prepend=-1) * n > 1.5
    apart = np.abs(_accepted(table, known, recipe) - recipe.confidence)
    yield Compared.between(f"tests of {name}", np.maximum(apart - NEAR, 0), 0.0, max(8 * known.slack - NEAR, 0))
    margin = table.weights @ known.by_level - table.share[:, None]
    values = np.arange(known.whole.size)
    asked = [(attribute.name, value) for value in attribute.values]
    estimate = cells.at("histograms", "unbiased_frequency", _KEY, asked)
    for side, column in ((-1, "ci_low"), (1, "ci_high")):
        ends = cells.at("histograms", column, _KEY, asked)
        room = (table.above[:, None] - margin) if side < 0 else (table.below[:, None] + margin)
        after = np.clip(np.searchsorted(table.share, ends), 1, table.share.size - 1)
        low, high = table.share[after - 1], table.share[after]
        part = (ends - low) / (high - low)
        left = (1 - part) * room[after - 1, values] + part * room[after, values]
        reach = table.reach[after]
        inside = (ends > 0) & (ends < 1)
        off = np.where(inside & wide[after], np.abs(left), np.where(inside, 0.0, np.maximum(-left, 0)))
        # Whatever tests say, the estimate is inside; where it lies between two people, that may be what ends there.
        off = np.where((np.abs(ends - estimate) < 1e-12) & wide[after], np.maximum(left, 0), off)
        off = np.where(np.isnan(ends), np.nan, off - NEAR * reach)
        yield Compared.between(f"{column} of {name}", np.maximum(off, 0), 0.0, 4 * known.slack)


def _accepted(table: Table, known: Known, recipe: Recipe) -> Floats:
    """How probable it is that the test of a share accepts it where it is true, at the worst choices that Γ allows; of
    tests whose law is taken to be normal, and has a spread."""
    n = known.sizes.sum()
    sizes, weights, share = known.sizes[:, None] / n, table.weights.T, table.share
    p, q, gap = _chances(known.attribute)
    noisier = (p * (1 - p) - q * (1 - q)) / gap**2
    ratio = weights / sizes
    drawn = ratio**2 * sizes * (share * p * (1 - p) + (1 - share) * q * (1 - q)) / gap**2 / n
    chosen = (ratio - 1) ** 2 * sizes * share * (1 - share) / n
    total = np.maximum((drawn + chosen).sum(axis=0), 1e-150)
    step = (drawn * ratio / gap + chosen * np.abs(ratio - 1)).sum(axis=0) / n / total**1.5
    judged = step < _FINE
    # Equal weights leave open which choices are worst, where these have no bias by the noise alone.
    even, ties = np.ptp(ratio, axis=0) < 1e-9, np.diff(np.sort(ratio, axis=0), axis=0).min(axis=0, initial=1) < 1e-6
    judged &= even | ~ties
    gamma, alike = gamma_of(recipe.dependence), np.abs(noisier).max() <= 1e-9 * (q * (1 - q) / gap**2).max()
    loudest = ratio if alike else ratio**2 * noisier
    asked = np.stack([np.where(even, loudest, side * ratio) for side in (1, -1)] + [loudest]) if gamma > 1 else ratio
    held = np.clip(share * _tilt(asked, sizes, share, gamma), 0, 1)  # (…, level, hypothesis)
    bias = ((weights - sizes) * held).sum(axis=-2)
    # Holders are dealt out to the levels: what all levels share does not vary.
    spread, apart = sizes * held * (1 - held), ratio - 1
    if recipe.population:
        between = (ratio**2 * spread + sizes * (held - np.clip(share, 0, 1)) ** 2).sum(axis=-2)
    else:
        both = (apart * spread).sum(axis=-2) ** 2 / np.maximum(spread.sum(axis=-2), 1e-300)
        between = np.maximum((apart**2 * spread).sum(axis=-2) - both, 0) * n / (n - 1)
    noise = ratio**2 * sizes * (q * (1 - q) / gap**2 + noisier * held)
    deviation = np.sqrt(np.maximum((noise.sum(axis=-2) + between) / n, 1e-300))
    within = ndtr((table.above - bias) / deviation) - ndtr((-table.below - bias) / deviation)
    if gamma > 1:
        deviation, within = deviation.min(axis=0), within.min(axis=0)
    judged &= deviation > _SPREAD
    # Where bits err alike whatever they are, no choice is noisiest; the one that is taken may be worse than the others.
    within = np.where(alike & ~even, np.minimum(within, recipe.confidence), within)
    return np.where(judged, within, recipe.confidence)


def _tilt(direction: Floats, sizes: Floats, share: Floats, gamma: float) -> Floats:
    """f_τ/f: as many people as can be at levels of the largest direction hold the value U times as often, others L."""
    if gamma == 1:
        return np.ones_like(direction)
    holders = np.clip(share, 1e-100, 1)
    upper = np.clip(np.minimum(gamma, (1 - (1 - holders) / gamma) / holders), 1, None)
    lower = np.clip(np.maximum(1 / gamma, (1 - (1 - holders) * gamma) / holders), 0, 1)
    part = np.where(upper > lower, (1 - lower) / np.where(upper > lower, upper - lower, 1), 0)
    order = np.argsort(-direction, axis=-2, kind="stable")
    people = sizes[:, 0][order]
    filled = np.clip((part - np.cumsum(people, axis=-2) + people) / people, 0, 1)
    tilt = np.empty_like(direction)
    np.put_along_axis(tilt, order, lower + (upper - lower) * filled, axis=-2)
    return np.where((share <= 0) | (share >= 1), 1.0, tilt)
