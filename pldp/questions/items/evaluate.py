"""Item sets beside the truth, and this plan beside other methods, for evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pldp.estimate.dealing import AS_STATED, BY_CHANCE, SIDES, Mask, people_by_value
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.combine import ItemsResult
from pldp.questions.items.comparators import GROUP_KEEPS, MASK_KEEP, Grouped, mask
from pldp.questions.items.metrics import Privacy, privacy
from pldp.questions.items.pooling import BY_SIZE, Weigh, alone, weigher
from pldp.questions.items.repeated import (
    Cells,
    Deal,
    cells_with,
    coverage_rows,
    covered_cells,
    draw_again,
    holders,
    redealt,
)
from pldp.questions.items.rowchannels import Bits
from pldp.questions.items.study import Identity, Method
from pldp.questions.items.study import study as study_methods
from pldp.questions.items.tables import itemset_rows, rule_rows
from pldp.questions.items.transactions import Columns as BitColumns
from pldp.questions.items.truth import Truth, true_columns
from pldp.questions.question import Partitions, Repeats, Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

REPEATS = 20
MINIMA = (0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
"""Of the spec's minimum support."""
APRR, MASKED, GROUPED = "aprr as published", "MASK", "GR-PPFM"
_PRIVACY = ("method", "probabilities", "exact_epsilon", *(field.name for field in fields(Privacy)))


def study(plan: Items, people: Partitions, truth: Truth, result: ItemsResult, repeats: Repeats) -> dict[str, Rows]:
    """Tables: itemsets and rules of the one run, with the truth; identity (method × minimum support), the frequent sets
    that methods miss and make up over repetitions; privacy, aprr's degrees of it by method; itemset_coverage (singles,
    sets, rules × class), how often intervals hold over repetitions."""
    many = plan.holds == "many"
    repeat = REPEATS if repeats.repeat is None else repeats.repeat
    rows = true_columns(plan, people, result.n_users) if repeat else None
    identity: list[Identity] = []
    coverage: Rows = {}
    if rows is not None:
        coverage = stacked([row for part in _coverage(plan, people, rows, truth, repeat, repeats) for row in part])
        repeats.progress()
    if rows is not None and many:
        minima = [minimum for part in MINIMA if (minimum := part * plan.minimum_support) <= 1]
        search = replace(plan.search, length=min(plan.asked_length, len(plan.items)))
        identity = study_methods(_methods(plan, rows), minima, search, repeat, repeats.stream, repeats.seed)
        repeats.progress()
    degrees = _privacy(plan, truth) if many else []
    return {
        "itemsets": _beside(plan, itemset_rows(plan, result), truth),
        "rules": _rules_beside(plan, rule_rows(plan, result.mined), truth),
        "itemset_coverage": coverage,
        "identity": {field.name: [getattr(row, field.name) for row in identity] for field in fields(Identity)},
        "privacy": {name: [row[name] for row in degrees] for name in _PRIVACY},
    }


def _coverage(
    plan: Items, people: Partitions, rows: tuple[BitColumns, ...], truth: Truth, repeat: int, repeats: Repeats
) -> Iterator[list[dict[str, object]]]:
    """Rows of itemset_coverage by how levels were dealt: by chance, or as users chose; and where Γ is given by who
    holds an item, of the sets and rules that it is in."""
    rng, gamma = np.random.default_rng(repeats.seed), repeats.dependence or 1.0

    def covered(choice: str, deal: Deal) -> Cells:
        streams = (partial(repeats.stream, "again", choice, number) for number in range(repeat))
        again = (draw_again(plan, redealt(plan, people, deal), stream).mined for stream in streams)
        return covered_cells(again, rows)

    choice, deal = (AS_STATED, lambda levels: levels) if repeats.keep_levels else (BY_CHANCE, rng.permutation)
    yield coverage_rows(plan, covered(choice, deal), choice, repeat)
    for item in _leaning_items(plan, truth) if repeats.dependence is not None else ():
        leaning = holders(plan, people, item)
        for side, direction in SIDES.items():
            choice = f"{side}, by {plan.items[item]}"

            def by_item(levels: NDArray[np.uint8], held: Mask = leaning, to: int = direction) -> NDArray[np.uint8]:
                return people_by_value(levels, held, gamma, to, rng)

            yield coverage_rows(plan, cells_with(covered(choice, by_item), item), choice, repeat)


def _leaning_items(plan: Items, truth: Truth) -> tuple[int, ...]:
    """The item that most users hold, and the middle one of those that reach the minimum support."""
    ranked = sorted(range(len(plan.items)), key=lambda item: -truth.supports[(item,)])
    often = [item for item in ranked if truth.supports[(item,)] >= plan.minimum_support] or ranked
    chosen = dict.fromkeys((often[0], often[len(often) // 2]))
    return tuple(item for item in chosen if 0 < truth.supports[(item,)] < 1)


def _beside(plan: Items, itemsets: Rows, truth: Truth) -> Rows:
    """Estimates with what is true, whether their intervals hold it, and what of it the protocol can see."""
    keys = [_places(plan, items) for items in itemsets["items"]]
    true = [truth.supports[key] for key in keys]
    numbers = zip(itemsets["support"], true, itemsets["standard_error"], strict=True)
    ends = zip(itemsets["ci_low"], true, itemsets["ci_high"], strict=True)
    return {
        **itemsets,
        "truth": true,
        "expected": [truth.expected[key] for key in keys],
        "truly_frequent": [key in truth.frequent for key in keys],
        "covered": [low <= one <= high for low, one, high in ends],
        # An open item has no error.
        "z": [(support - one) / error if error > 0 else None for support, one, error in numbers],
    }


def _rules_beside(plan: Items, rules: Rows, truth: Truth) -> Rows:
    sides = zip(rules["antecedent"], rules["consequent"], strict=True)
    true = [truth.confidence(_places(plan, left), _places(plan, right)) for left, right in sides]
    ends = zip(rules["ci_low"], true, rules["ci_high"], strict=True)
    return {
        **rules,
        "truth": true,
        "covered": [None if one is None else low <= one <= high for low, one, high in ends],
    }


def _places(plan: Items, items: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(plan.items.index(item) for item in items))


def _methods(plan: Items, rows: tuple[BitColumns, ...]) -> list[Method]:
    """This plan with everybody at their own level; the others with everybody alike."""
    methods = []
    kernels = _kernels(plan)
    if len(kernels) == len(plan.levels) == len(rows):
        n = np.array([of_level.n_rows for of_level in rows])
        channels = [level.channel for level in plan.levels]
        weigh = alone if len(rows) == 1 else weigher(plan.weighing, channels, n, plan.minimum_support)
        methods.append(Method(f"this plan ({plan.protocol})", list(kernels.values()), rows, weigh))
    d, shares = len(plan.items), _group_shares(plan)
    if plan.sensitivity is not None and plan.protocol != "aprr":
        methods.append(Method(APRR, [_published(plan)] * len(rows), rows, _by_size(rows)))
    methods.append(Method(MASKED, [mask(d)] * len(rows), rows, _by_size(rows)))
    methods.append(Method(GROUPED, [Grouped.of(d, shares)] * len(rows), rows, _by_size(rows)))
    return methods


def _kernels(plan: Items) -> dict[str, ItemChannels]:
    """The channels of bits, by level."""
    return {level.level: level.channel.kernel for level in plan.levels if isinstance(level.channel, Bits)}


def _by_size(rows: tuple[BitColumns, ...]) -> Weigh:
    return weigher(BY_SIZE, [], np.array([of_level.n_rows for of_level in rows]), 0.5)


def _published(plan: Items) -> ItemChannels:
    weakest = plan.levels[-1]
    return ItemChannels.aprr(plan.sensitivity or (), plan.n_sensitivities or 2, weakest.budget)


def _group_shares(plan: Items) -> tuple[Fraction, ...]:
    """GR-PPFM's groups: as large as the items' sensitivities where there are as many, as aprr has them; else equal."""
    groups = len(GROUP_KEEPS)
    if plan.sensitivity is None or plan.n_sensitivities != groups:
        return (Fraction(1, groups),) * groups
    return tuple(Fraction(plan.sensitivity.count(group), len(plan.items)) for group in range(groups))


def _privacy(plan: Items, truth: Truth) -> list[dict[str, object]]:
    """aprr Eq. 6–11 at the items' mean support: with one probability as published, and corrected for two."""
    d = len(plan.items)
    support = sum(truth.supports[(item,)] for item in range(d)) / d
    rows: list[dict[str, object]] = []

    def add(method: str, kind: str, epsilon: float, degrees: Privacy) -> None:
        spent = epsilon if math.isfinite(epsilon) else None
        rows.append({"method": method, "probabilities": kind, "exact_epsilon": spent, **asdict(degrees)})

    methods = {f"this plan ({plan.protocol}), level {level}": kernel for level, kernel in _kernels(plan).items()}
    if plan.sensitivity is not None and plan.protocol != "aprr":
        methods[APRR] = _published(plan)
    for method, kernel in methods.items():
        ones, zeros = kernel.false_one + kernel.gap, 1 - kernel.false_one
        even = [1 / d] * d
        add(method, "as published", kernel.row_epsilon, privacy(support, ones.tolist(), even))
        add(method, "both", kernel.row_epsilon, privacy(support, ones.tolist(), even, zeros.tolist()))
    add(MASKED, "one", mask(d).row_epsilon, privacy(support, [float(MASK_KEEP)], [1.0]))
    shares = [float(share) for share in _group_shares(plan)]
    add(GROUPED, "one a group", math.inf, privacy(support, [float(keep) for keep in GROUP_KEEPS], shares))
    return rows
