"""febsf as its text tells it: SUE values at ten levels, k-RR level reports, and every estimator it compares.

AUEM is the ratio of its Eq. 5 and nothing done to it afterwards; EMOA iterates Eq. 12 to 15; RCF and APLDP know the
levels; PPDA has as many spare bits as values, or one. Ours beside them: the correct EM and self-calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.combine import estimate_levels
from pldp.estimate.comparators import apldp, apldp_protocols, draw_ppda, pbp, ppda, rcf
from pldp.estimate.hidden import auem, draw_hidden, level_report, level_shares, self_calibrated
from pldp.estimate.likelihood import table_blocks
from pldp.estimate.mixture import correct_em, emoa_paper
from pldp.estimate.simulate import draw_support
from pldp.papers.model import Point

BUDGETS = tuple(Fraction(tenths, 10) for tenths in range(1, 11))
TWO_BUDGETS = BUDGETS[:2]
EPSILON_P = Fraction(3, 10)
_EXPONENT = -0.6
"""Of the power law, from the published code: the text does not give it."""

Errors = tuple[Floats, Floats]
"""Summed squared and summed absolute error of every repetition."""


def shares_of(law: str, budgets: tuple[Fraction, ...] = BUDGETS, times: int = 1) -> Floats:
    """How users spread over the levels; `times` multiplies the power law's exponent."""
    exponent = times * _EXPONENT if law == "power law" else 0.0
    raw = np.array([float(budget) ** exponent for budget in budgets])
    return raw / raw.sum()


def deal(counts: Counts, shares: Floats, repeats: int, rng: np.random.Generator) -> Counts:
    """(repeat, level, value): everybody chooses a level at random."""
    drawn: Counts = rng.multinomial(np.broadcast_to(counts, (repeats, counts.size)), shares)
    return np.ascontiguousarray(drawn.swapaxes(-1, -2))


def errors_of(estimate: Floats, truth: Floats) -> Errors:
    apart = estimate - truth
    return (apart**2).sum(axis=-1), np.abs(apart).sum(axis=-1)


def by_moments(
    counts: Counts, shares: Floats, epsilon_p: Fraction, repeats: int, rng: np.random.Generator
) -> dict[str, Errors]:
    """Every method that needs support counts only."""
    k, n_users, truth = counts.size, int(counts.sum()), counts / counts.sum()
    protocols: tuple[PureProtocol, ...] = tuple(BRR.for_budget(k, budget) for budget in BUDGETS)
    report = level_report(len(BUDGETS), epsilon_p)
    dealt = deal(counts, shares, repeats, rng)
    joint, reported = draw_hidden(dealt, protocols, report, rng)
    estimates = {"AUEM": auem(joint, reported, protocols, report).frequency}
    estimates["AUEM, shares known"] = pbp(joint.sum(axis=-2), n_users, protocols, shares)
    if k > 2:
        estimates["self-calibrated"] = self_calibrated(joint.sum(axis=-2), n_users, protocols).frequency
    for name, spare in (("PPDA", k), ("PPDA, one spare bit", 1)):
        estimates[name] = ppda(*draw_ppda(dealt, protocols, spare, rng), n_users, spare)
    # RCF and APLDP see every level's size, which differs from one repetition to the next.
    adaptive = apldp_protocols(k, BUDGETS)
    for name, kinds, combine in (("RCF", protocols, rcf), ("APLDP", adaptive, apldp)):
        support = draw_support(dealt, kinds, rng)
        sizes = dealt.sum(axis=-1)
        estimates[name] = np.stack([combine(estimate_levels(support[i], sizes[i], kinds)) for i in range(repeats)])
    return {name: errors_of(estimate, truth) for name, estimate in estimates.items()}


def by_reports(
    counts: Counts,
    shares: Floats,
    repeats: int,
    rng: np.random.Generator,
    *,
    budgets: tuple[Fraction, ...] = BUDGETS,
    epsilon_p: Fraction = EPSILON_P,
    steps: int = 100,
) -> dict[str, Errors]:
    """Both EMs, which need whole reports: equal ones are grouped."""
    k, truth = counts.size, counts / counts.sum()
    protocols: tuple[PureProtocol, ...] = tuple(BRR.for_budget(k, budget) for budget in budgets)
    report = level_report(len(budgets), epsilon_p)
    correct, published = np.zeros((repeats, k)), np.zeros((repeats, k))
    for i in range(repeats):
        table = draw_table(counts, shares, protocols, report, rng)
        blocks = table_blocks(protocols, table)
        correct[i] = correct_em(blocks, protocols, report).frequency
        reported = table.sum(axis=-1)
        start = auem(_support(table, k), reported, protocols, report).frequency
        published[i], _ = emoa_paper(blocks, protocols, start, level_shares(reported, report).frequency, steps=steps)
    return {"correct EM": errors_of(correct, truth), "EMOA": errors_of(published, truth)}


def two_by_text(
    counts: Counts, law: str, epsilon_p: Fraction, repeats: int, fits: int, rng: np.random.Generator
) -> dict[str, Errors]:
    """Figures 5 and 6: two budgets; PBP's public shares are drawn at random."""
    k, n_users, truth = counts.size, int(counts.sum()), counts / counts.sum()
    shares = shares_of(law, TWO_BUDGETS)
    protocols: tuple[PureProtocol, ...] = tuple(BRR.for_budget(k, budget) for budget in TWO_BUDGETS)
    report = level_report(len(TWO_BUDGETS), epsilon_p)
    joint, reported = draw_hidden(deal(counts, shares, repeats, rng), protocols, report, rng)
    guesses = rng.random(repeats)
    public = [
        pbp(joint[i].sum(axis=0), n_users, protocols, np.array([guess, 1 - guess])) for i, guess in enumerate(guesses)
    ]
    return {
        "AUEM": errors_of(auem(joint, reported, protocols, report).frequency, truth),
        "PBP": errors_of(np.stack(public), truth),
        **by_reports(counts, shares, fits, rng, budgets=TWO_BUDGETS, epsilon_p=epsilon_p),
    }


def draw_table(
    counts: Counts,
    shares: Floats,
    protocols: tuple[PureProtocol, ...],
    report: PureProtocol,
    rng: np.random.Generator,
) -> Counts:
    """How many users sent each pair of level report and support set, (level report, set), user by user."""
    k, t = counts.size, len(protocols)
    values = np.repeat(np.arange(k), counts)
    levels = rng.choice(t, size=values.size, p=shares)
    p, q = np.array([protocol.p for protocol in protocols]), np.array([protocol.q for protocol in protocols])
    chance = np.repeat(q[levels][:, None], k, axis=1)
    chance[np.arange(values.size), values] = p[levels]
    codes = (rng.random((values.size, k)) < chance) @ (1 << np.arange(k))
    other = (levels + rng.integers(1, t, size=values.size)) % t
    reported = np.where(rng.random(values.size) < report.p, levels, other)
    cells = np.bincount(reported * (1 << k) + codes, minlength=t << k)
    return cells.reshape(t, 1 << k)


def _support(table: Counts, k: int) -> Counts:
    bits = (np.arange(1 << k)[:, None] >> np.arange(k)) & 1
    return table @ bits


def points(errors: Mapping[str, Errors], places: tuple[str, str], panel: str, x: str) -> list[Point]:
    """Mean errors: squared in the first place, absolute in the second."""
    made = []
    for series, both in errors.items():
        for place, values in zip(places, both, strict=True):
            made.append(
                Point(
                    place=place,
                    panel=panel,
                    series=series,
                    x=x,
                    value=float(values.mean()),
                    standard_error=float(values.std(ddof=1) / math.sqrt(values.size)),
                    repeats=values.size,
                )
            )
    return made
