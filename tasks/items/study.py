"""What an evaluation of frequent items tells: the truth beside the estimates, and this plan beside other methods."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import polars as pl

from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import GROUP_KEEPS, MASK_KEEP, Grouped, mask
from pldp.questions.items.metrics import Privacy, privacy
from pldp.questions.items.plan import Bits, ItemsPlan
from pldp.questions.items.pooling import Weigh, alone, weigher
from pldp.questions.items.predict import LevelNoise
from pldp.questions.items.study import Identity, Method, study
from pldp.questions.items.transactions import Columns
from pldp.tasks.ingest import Ingested
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.items.truth import Truth, true_columns
from pldp.tasks.stage import stage

REPEATS = 20
MINIMA = (0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
"""Of the spec's minimum support."""
APRR, MASKED, GROUPED = "aprr as published", "MASK", "GR-PPFM"

_IDENTITY = {"method": pl.String, "minimum": pl.Float64, "truly_frequent": pl.Int64} | dict.fromkeys(
    ("made_up", "made_up_error", "missed", "missed_error"), pl.Float64
)
_PRIVACY = {"method": pl.String, "probabilities": pl.String, "exact_epsilon": pl.Float64} | dict.fromkeys(
    ("least", "most", "average", "overall"), pl.Float64
)


@stage()
def study_items(
    run: ItemsRun, ingested: Ingested, itemsets: pl.DataFrame, truth: Truth, repeat: int | None, seed: int | None
) -> dict[str, pl.DataFrame]:
    plan = run.plan
    rows = true_columns(run, ingested) if plan.holds == "many" else None
    repeats = REPEATS if repeat is None else repeat
    identity: list[Identity] = []
    if rows is not None and repeats:
        minima = [minimum for part in MINIMA if (minimum := part * plan.minimum_support) <= 1]
        search = replace(plan.search, length=min(plan.asked_length, len(plan.items)))
        identity = study(_methods(plan, rows), minima, search, repeats, run.stream, seed)
    return {
        "itemsets": _beside(plan, itemsets, truth),
        "identity": pl.DataFrame([asdict(row) for row in identity], schema={**_IDENTITY, "repeats": pl.Int64}),
        "privacy": _privacy(plan, truth) if plan.holds == "many" else pl.DataFrame(schema=_PRIVACY),
    }


def _beside(plan: ItemsPlan, itemsets: pl.DataFrame, truth: Truth) -> pl.DataFrame:
    """Estimates with what is true, and what of it the protocol can see."""
    keys = [tuple(sorted(plan.items.index(item) for item in items)) for items in itemsets["items"].to_list()]
    frame = itemsets.with_columns(
        truth=pl.Series([truth.supports[key] for key in keys], dtype=pl.Float64),
        expected=pl.Series([truth.expected[key] for key in keys], dtype=pl.Float64),
        truly_frequent=pl.Series([key in truth.frequent for key in keys], dtype=pl.Boolean),
    )
    z = (pl.col("support") - pl.col("expected")) / pl.col("standard_error")
    return frame.with_columns(z=pl.when(pl.col("standard_error") > 0).then(z))  # an open item has no error


def _methods(plan: ItemsPlan, rows: tuple[Columns, ...]) -> list[Method]:
    """This plan with everybody at their own level; the others with everybody alike."""
    found = []
    ways = [level.way for level in plan.levels]
    if all(isinstance(way, Bits) for way in ways) and len(rows) == len(ways):
        channels = [way.channel for way in ways if isinstance(way, Bits)]
        n = np.array([own.n_rows for own in rows])
        noises = [LevelNoise(plan, level) for level in range(len(ways))]
        weigh = alone if len(ways) == 1 else weigher(plan.combination, noises, n, plan.minimum_support)
        found.append(Method(f"this plan ({plan.protocol})", channels, rows, weigh))
    d, shares = len(plan.items), _level_shares(plan)
    if plan.sensitivity is not None and plan.protocol != "aprr":
        published = _published(plan)
        found.append(Method(APRR, [published] * len(rows), rows, _by_size(rows)))
    found.append(Method(MASKED, [mask(d)] * len(rows), rows, _by_size(rows)))
    found.append(Method(GROUPED, [Grouped.of(d, shares)] * len(rows), rows, _by_size(rows)))
    return found


def _by_size(rows: tuple[Columns, ...]) -> Weigh:
    n = np.array([own.n_rows for own in rows])
    return weigher("sum", [], n, 0.5)


def _published(plan: ItemsPlan) -> ItemChannels:
    weakest = plan.levels[-1]
    return ItemChannels.aprr(plan.sensitivity or (), plan.n_levels or 2, weakest.budget)


def _level_shares(plan: ItemsPlan) -> tuple[Fraction, ...]:
    """GR-PPFM's groups: as large as the items' levels where there are as many, as aprr has them; else equal."""
    groups = len(GROUP_KEEPS)
    if plan.sensitivity is None or plan.n_levels != groups:
        return (Fraction(1, groups),) * groups
    return tuple(Fraction(plan.sensitivity.count(level), len(plan.items)) for level in range(groups))


def _privacy(plan: ItemsPlan, truth: Truth) -> pl.DataFrame:
    """aprr Eq. 6–11 at the items' mean support: with one probability as published, and corrected for two."""
    d = len(plan.items)
    support = sum(truth.supports[(item,)] for item in range(d)) / d
    rows: list[dict[str, object]] = []

    def add(method: str, kind: str, epsilon: float, found: Privacy) -> None:
        spent = epsilon if math.isfinite(epsilon) else None
        rows.append({"method": method, "probabilities": kind, "exact_epsilon": spent, **asdict(found)})

    channels = {f"this plan ({plan.protocol}), level {level.level}": level.way for level in plan.levels}
    named = {name: way.channel for name, way in channels.items() if isinstance(way, Bits)}
    if plan.sensitivity is not None and plan.protocol != "aprr":
        named[APRR] = _published(plan)
    for method, channel in named.items():
        ones, zeros = channel.false_one + channel.gap, 1 - channel.false_one
        even = [1 / d] * d
        add(method, "as published", channel.row_epsilon, privacy(support, ones.tolist(), even))
        add(method, "both", channel.row_epsilon, privacy(support, ones.tolist(), even, zeros.tolist()))
    add(MASKED, "one", mask(d).row_epsilon, privacy(support, [float(MASK_KEEP)], [1.0]))
    shares = [float(share) for share in _level_shares(plan)]
    add(GROUPED, "one a group", math.inf, privacy(support, [float(keep) for keep in GROUP_KEEPS], shares))
    return pl.DataFrame(rows, schema=_PRIVACY)
