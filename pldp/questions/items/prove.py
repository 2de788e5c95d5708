"""Item sets prove their channels and supports: see docs/methods.md, section 17."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.exact import SCALE
from pldp.channels.protocol import Floats
from pldp.channels.randomness import Keystream
from pldp.proof.compared import Compared
from pldp.proof.laws import ROUNDING, off, support_law
from pldp.proof.support import compare_support
from pldp.proof.trial import Trial
from pldp.questions.items.allocation import TICKS
from pldp.questions.items.levels import ZERO_SHARE, level_budgets
from pldp.questions.items.prove_errors import errors, phase_epsilon, value_chances, value_matrix
from pldp.questions.items.reports import ItemsTally, read_candidates
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.transactions import Itemsets
from pldp.questions.madeup import NoReports

if TYPE_CHECKING:
    from pldp.questions.items.plan import ItemLevel
    from pldp.questions.items.question import Items

MADE_UP = 10**12
"""People behind expected counts: sets are counted in whole numbers, whose rounding must not be seen."""


_SELDOM = 30.0
"""Log odds beyond which a bit is flipped in so few steps of 2^-64 that its budget may not be spent."""


def recomputed(plan: Items) -> Iterator[Compared]:
    """The chances of every level's channel beside those computed again from ε by other code."""
    for level in plan.levels:
        yield from _again(level.channel, plan, level)


def _again(channel: Bits | OneValue | Sampled, plan: Items, level: ItemLevel) -> Iterator[Compared]:
    match channel:
        case Bits():
            return _bits_again(channel, plan, level)
        case OneValue():
            return _values_again(channel, plan, level)
        case Sampled():
            return _sampled_again(channel, level)


def _bits_again(channel: Bits, plan: Items, level: ItemLevel) -> Iterator[Compared]:
    zero, one = (np.array(keep, dtype=object) / SCALE for keep in (channel.keep_zero, channel.keep_one))
    if plan.protocol == "aprr" and plan.sensitivity is not None and plan.n_sensitivities is not None:
        budgets = [level_budgets(plan.n_sensitivities, level.budget)[each] for each in plan.sensitivity]
        split = float(ZERO_SHARE)
        keeps = [
            [1.0 if e is None else 1 / (1 + math.exp(-float(e) * part)) for e in budgets] for part in (split, 1 - split)
        ]
        yield Compared(f"items at {level.level}", off(np.array([zero, one], dtype=float), np.array(keeps)))
        return
    # The odds of both bits, which a symmetric channel has alike, spend the row's bound: no less, unless every item is
    # at what its sensitivity is promised, or a bit is flipped as seldom as thresholds can tell.
    odds = [_log_odds(keep) for keep in channel.keep_one]
    promised = plan.promises(level)
    wanted = float(level.budget) if promised is None else min(float(level.budget), float(sum(promised)))
    apart, spent = np.abs((zero - one).astype(float)).max(), sum(odds) / wanted - 1
    steps = sum(1 / max(SCALE - keep, 1) for keep in channel.keep_one) / wanted
    amiss = max(abs(spent) - steps if max(odds) < _SELDOM else spent, 0.0)
    yield Compared.between(f"items at {level.level}", [amiss, float(apart)], 0.0, 4 * len(zero) / TICKS / wanted)


def _log_odds(keep: int) -> float:
    return math.log1p((2 * keep - SCALE) / (SCALE - keep)) if keep < SCALE else math.inf


def _values_again(channel: OneValue, plan: Items, level: ItemLevel) -> Iterator[Compared]:
    """The matrix again from chances. By aprr, and where values are alike, each is drawn anew with the chance that its
    budget gives; else the worst log ratio of a pair over the pair's bound is to be one at the most."""
    matrix, k = value_matrix(channel), len(channel.redraw)
    yield Compared(f"values at {level.level}", float(np.abs(matrix - channel.kernel.matrix).max()))
    promised = np.array([float(each) for each in plan.promises(level) or (level.budget,) * k])
    budgets = [promised.min()] * k if len({*channel.redraw}) == 1 and {*channel.mass} == {1} else []
    if plan.protocol == "aprr" and plan.sensitivity is not None and plan.n_sensitivities is not None:
        budgets = [level_budgets(plan.n_sensitivities, level.budget)[each] for each in plan.sensitivity]
    if budgets:
        redraw = [0.0 if e is None else k / (math.exp(min(float(e), 700.0)) + k - 1) for e in budgets]
        apart = off(np.array(value_chances(channel)), np.array([redraw, np.full(k, 1 / k)]))
        yield Compared(f"redraws at {level.level}", apart)
        return
    over = np.maximum(_worst_pairs(channel, matrix) / np.minimum.outer(promised, promised) - 1, 0.0).max()
    yield Compared.between(f"pairs of values at {level.level}", over, 0.0, ROUNDING / float(promised.min()))


def _worst_pairs(channel: OneValue, matrix: Floats) -> Floats:
    """The largest log ratio of the chances of a report under two values: it is one of both, or any other, which either
    tells by being drawn anew. A report that neither makes shows nothing."""
    redraw, mass = value_chances(channel)
    there = (mass > 0).astype(int)
    third = there.sum() > np.add.outer(there, there)
    with np.errstate(divide="ignore", invalid="ignore"):
        log, anew = np.log(matrix), np.log(redraw)
        kept = log.diagonal()
        others = np.where(third, np.subtract.outer(anew, anew), -np.inf)
        worst = np.fmax(np.fmax(kept[:, None] - log.T, log - kept), others)
    np.fill_diagonal(worst, 0.0)
    return np.asarray(worst)


def _sampled_again(channel: Sampled, level: ItemLevel) -> Iterator[Compared]:
    for phase, what in zip(channel.asked, ("items", "sets"), strict=False):
        epsilon = phase_epsilon(phase, float(level.budget))
        yield compare_support(f"sampled {what} at {level.level}", phase.sampling.protocol, epsilon)


class _Expected(NoReports):
    """Expected counts of sets among reports of bits, if items are held independently."""

    def __init__(self, plan: Items, adapted: bytes | None) -> None:
        self._plan, self.adapted = plan, adapted

    def ask(self, method: str, arrays: Itemsets) -> Any:
        people = zip(self._plan.levels, supports_by_level(self._plan), people_by_level(self._plan), strict=True)
        columns = [n * _bit_chances(level, held)[arrays].prod(axis=1) for level, held, n in people]
        return np.stack(columns, axis=1)


def _bit_chances(level: ItemLevel, held: Floats) -> Floats:
    channel = level.channel
    if not isinstance(channel, Bits):
        raise ValueError("only reports of bits hold sets")
    zero, one = (np.array([each / SCALE for each in keep]) for keep in (channel.keep_zero, channel.keep_one))
    return np.asarray(held * one + (1 - held) * (1 - zero))


def supports(plan: Items) -> Floats:
    """A made-up population's: skewed; of single values they sum to one."""
    parts = 1 / np.arange(1, len(plan.items) + 1)
    return np.asarray(parts / parts.sum() if plan.holds == "one" else 0.8 * parts)


def supports_by_level(plan: Items) -> list[Floats]:
    """The same at every level, except where levels are weighed by their people alone: that needs nothing of choices,
    so that levels whose people differ show the weight of each."""
    leaning = plan.combination == "sum"
    return [np.roll(supports(plan), place * leaning) for place in range(len(plan.levels))]


def people_by_level(plan: Items) -> list[int]:
    """More at every level, so that no weight is another's."""
    return [MADE_UP * (place + 1) for place in range(len(plan.levels))]


def recovered(plan: Items) -> Iterator[Compared]:
    """Every item, every longer set that mining keeps and every rule; sets are held as often as independent items."""
    by_level, people = supports_by_level(plan), people_by_level(plan)
    adapted = None
    tallies: dict[str, ItemsTally] = {}
    for phase in range(plan.phases):
        if phase:
            adapted = plan.adapt(tallies)
        for path, (own_phase, level) in plan.places.items():
            if own_phase == phase:
                counts = expected_counts(plan, plan.levels[level], phase, by_level[level], adapted) * (level + 1)
                tallies[path] = ItemsTally(people[level], counts)  # type: ignore[arg-type]
    mined = plan.combine(plan.methods[0], tallies, _Expected(plan, adapted))
    tables = plan.tables(plan.conclude(tallies, {plan.methods[0]: mined}))
    position = {name: place for place, name in enumerate(plan.items)}

    def truths(sets: Sequence[Sequence[str]]) -> Floats:
        """All at once: shorter sets are filled up with what everybody holds."""
        longest = max(map(len, sets), default=1)
        places = np.full((len(sets), longest), len(position))
        for row, items in zip(places, sets, strict=True):
            row[: len(items)] = [position[item] for item in items]
        held = [np.append(each, 1.0)[places].prod(axis=1) for each in by_level]
        return np.asarray(np.average(held, weights=people, axis=0))

    rows, rules = tables["itemsets"], tables["rules"]
    slack = max(_slack(level, max(map(len, rows["items"]), default=1)) for level in plan.levels)
    yield Compared.between("supports of item sets", rows["support"], truths(list(rows["items"])), slack)
    yield from errors(plan, rows, by_level, people, adapted, slack)
    yield Compared.between("lengths of item sets", rows["length"], [len(items) for items in rows["items"]])
    yield Compared.between("people of item sets", np.asarray(rows["n_users"]) / sum(people) / plan.phases, 1.0)
    sides = list(zip(rules["antecedent"], rules["consequent"], strict=True)) if rules else []
    below = truths([left for left, _ in sides])
    expected = truths([[*left, *right] for left, right in sides]) / below
    confidence = np.asarray(rules["confidence"] if rules else [], dtype=np.float64)
    yield Compared.between("confidences of rules", confidence * below, expected * below, 2 * slack)
    yield Compared.between("supports of rules", rules["support"] if rules else [], expected * below, slack)
    beside = truths([right for _, right in sides])
    lifts = np.array([np.nan if one is None else one for one in rules["lift"]] if rules else [], dtype=np.float64)
    apart = np.where(np.isnan(lifts), 0.0, lifts * below * beside - expected * below)
    yield Compared.between("lifts of rules", apart, 0.0, 3 * slack)


def _slack(level: ItemLevel, length: int) -> float:
    """What is lost where sets of this length are told from reports: whole counts of bits, which are inverted one by
    one, and doubles."""
    match level.channel:
        case Bits(keep_zero=zero, keep_one=one):
            gap = min((a + b - SCALE) / SCALE for a, b in zip(zero, one, strict=True))
            return float(1 / MADE_UP / gap**length)
        case OneValue(kernel=kernel):
            return float(ROUNDING * np.abs(kernel.inverse).max())
        case Sampled(asked=asked):
            return float(max(ROUNDING * phase.length / phase.sampling.protocol.gap for phase in asked))


def expected_counts(plan: Items, level: ItemLevel, phase: int, held: Floats, adapted: bytes | None) -> Floats:
    """What a level's reports of one phase are expected to count, when made-up people hold items with the chances
    `held`; `adapted` are the candidate sets of the second phase."""
    channel = level.channel
    if isinstance(channel, Bits):
        return MADE_UP * _bit_chances(level, held)
    if isinstance(channel, OneValue):
        return np.asarray(MADE_UP * (held @ value_matrix(channel)))
    asked = channel.asked[phase]
    protocol = asked.sampling.protocol
    law = support_law(protocol, phase_epsilon(asked, float(level.budget)))
    share: Floats = np.zeros(protocol.domain_size)
    values = [held] if not phase else [held[sets].prod(axis=1) for sets in read_candidates(adapted)]
    there = np.concatenate(values) if values else np.zeros(0)
    share[: there.size] = there / asked.length
    return np.asarray(MADE_UP * (law.q + law.gap * share))


def rehearsed(plan: Items, stream: Keystream, cells: int) -> Iterator[Trial]:
    """Trials of the kernels with made-up people, at most `cells` cells drawn; the module loads when they are asked
    for."""
    from pldp.questions.items.rehearse import rehearse

    return rehearse(plan, stream, cells)
