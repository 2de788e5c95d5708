"""How far fake people can move a mean or a quantile: what a plan says of reports that clients send.

A fake answers the question whenever it likes, so that all m fakes report on it, where of n_τ honest people k/d do. All
send the end of the output window, y = Y_c for a class c of budgets, and the mean in [−1, 1] terms goes from x̄ by

    inverse-variance   w_c · m/(m_c + m) · (Y_c + |x̄|),            m_c honest reports of the class, w_c its weight
    reports            (n_τ + m)/(n + m) · m/(m_τ + m) · (Y_c + |x̄|),    m_τ honest reports of the level
    scaled             m/(n + m) · (d/k · Y_c + |x̄|)

Quantiles come from a likelihood, which has no weights: the one of the counts to be expected is climbed again with the
fakes among them, at either end of the window of the largest and the smallest budget of every level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.capped import UNCAPPED, water_filled
from pldp.questions.fakes import Reach, caps, joining, reach_of
from pldp.questions.numbers.distribution import BY_LEVEL, EM, pools
from pldp.questions.numbers.estimate import FALLBACK
from pldp.questions.numbers.histogram import bin_edges, channel, maximise
from pldp.questions.numbers.plan import MEAN, Question
from pldp.questions.numbers.predict import applied, class_costs, class_shares, predict_mean
from pldp.questions.numbers.quantiles import quantiles

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers


def fake_reaches(plan: Numbers, sizes: Counts) -> Iterator[Reach]:
    """Attribute × combination for means: with the cap, without it, and `reports`; attribute × quantile."""
    z = reach_of(plan.recipe.confidence)
    for asked, question in enumerate(plan.questions):
        if question.kind != MEAN:
            yield from _quantiles(plan, asked, sizes)
            continue
        used = applied(plan)
        weighed = [(used, cap) for cap in caps(plan.recipe.level_weight_cap)] if used == "inverse-variance" else []
        for method, cap in weighed or [(used, UNCAPPED)]:
            yield _mean(plan, asked, method, sizes, cap, z)
        if weighed:
            yield _mean(plan, asked, FALLBACK, sizes, UNCAPPED, z)


def _mean(plan: Numbers, asked: int, method: str, sizes: Counts, cap: float, z: float) -> Reach:
    question = plan.questions[asked]
    moved, level, class_ = mean_move(plan, asked, method, sizes, cap)
    half = z * predict_mean(plan, asked, method, sizes, cap) * question.bounds.half_width
    at = plan.levels[level]
    mechanism = at.classes[class_].mechanisms[asked].mechanism
    width = question.bounds.half_width
    return Reach(question.attribute, "mean", method, at.level, mechanism, moved * width, half, cap)


def mean_move(plan: Numbers, asked: int, method: str, sizes: Counts, cap: float = UNCAPPED) -> tuple[float, int, int]:
    """The furthest that fakes take a mean, in [−1, 1] terms, and the level and class from which they do."""
    question, n_users = plan.questions[asked], int(sizes.sum())
    fakes, places = joining(n_users), class_costs(plan, asked, sizes)
    moves = []
    for number, one in enumerate(places):
        end = float(plan.mechanisms(asked, one.level)[one.class_].furthest)
        away = end + abs(question.mean)
        sampling = plan.levels[one.level].sampled / len(plan.questions)
        people = int(sizes[one.level])
        if method == "inverse-variance":
            n = np.array([each.reports for each in places]) + fakes * (np.arange(len(places)) == number)
            there = n > 0
            cost = np.array([each.cost for each in places])[there]
            weights = water_filled(n[there] / n.sum(), cost[:, None], cap)[:, 0]
            weight = float(weights[int(there[:number].sum())])
            moved = weight * fakes / (one.reports + fakes) * away
        elif method == "reports":
            moved = (people + fakes) / (n_users + fakes) * fakes / (people * sampling + fakes) * away
        else:
            moved = fakes / (n_users + fakes) * (end / sampling + abs(question.mean))
        moves.append((moved, one.level, one.class_))
    return max(moves)


def _quantiles(plan: Numbers, asked: int, sizes: Counts) -> Iterator[Reach]:
    question = plan.questions[asked]
    moved, level, class_ = quantile_moves(plan, asked, sizes)
    at = plan.levels[level]
    mechanism = at.classes[class_].mechanisms[asked].mechanism
    for probability, most in zip(question.probabilities, moved, strict=True):
        name = f"quantile {probability:g}"
        yield Reach(
            question.attribute, name, EM if pools(plan.recipe) else BY_LEVEL, at.level, mechanism, float(most), None
        )


def quantile_moves(plan: Numbers, asked: int, sizes: Counts) -> tuple[Floats, int, int]:
    """How far fakes take every quantile of numbers that are spread evenly, in the attribute's units, and from where."""
    question, fakes = plan.questions[asked], joining(int(sizes.sum()))
    even = np.full(question.bins, 1 / question.bins)
    groups = [_Group(plan, asked, sizes, [i]) for i in range(len(plan.levels)) if sizes[i]]
    if pools(plan.recipe):
        groups = [_Group(plan, asked, sizes, list(range(len(plan.levels))))]
    before = _ends(question, even)
    best: tuple[float, Floats, int, int] = (-1.0, before * 0, 0, 0)
    for group in groups:
        people = float(sizes[group.levels].sum())
        weight = (people + fakes) / (float(sizes.sum()) + fakes)
        for level, class_, shares in group.with_fakes(fakes):
            mixed = weight * shares + (1 - weight) * even
            away = np.abs(_ends(question, mixed) - before)
            if away.max() > best[0]:
                best = (float(away.max()), away, level, class_)
    return best[1:]


def _ends(question: Question, shares: Floats) -> Floats:
    edges, nothing = bin_edges(question.bounds, question.bins), np.zeros((question.bins, question.bins))
    return np.array([one.quantile for one in quantiles(edges, shares, nothing, question.probabilities)])


class _Group:
    """Levels whose reports share a likelihood: channels of their classes, and the counts to be expected."""

    def __init__(self, plan: Numbers, asked: int, sizes: Counts, levels: list[int]) -> None:
        question, self.levels = plan.questions[asked], levels
        even = np.full(question.bins, 1 / question.bins)
        self.places: list[tuple[int, int]] = []
        parts: list[Any] = []
        counts: list[Any] = []
        for i in levels:
            level = plan.levels[i]
            shares = class_shares(plan, level, question)
            for class_, window in enumerate(plan.windows(asked, i)):
                if shares[class_] or class_ in (0, len(shares) - 1):
                    table = channel(window, question.bins)
                    reports = float(sizes[i]) * level.sampled / len(plan.questions) * float(shares[class_])
                    self.places.append((i, class_))
                    parts.append(table)
                    counts.append(reports * (table @ even))
        self.channels, self.counts = np.concatenate(parts), np.concatenate(counts)
        self.starts = np.cumsum([0, *(len(table) for table in parts)])

    def with_fakes(self, fakes: int) -> Iterator[tuple[int, int, Floats]]:
        """Level, class and the shares that are climbed to, for fakes at either end of the window of each."""
        several = []
        for start, stop in zip(self.starts, self.starts[1:], strict=False):
            for end in (start, stop - 1):
                several.append(self.counts.copy())
                several[-1][end] += fakes
        climbed = maximise(self.channels, np.stack(several))
        for number, shares in enumerate(climbed):
            yield (*self.places[number // 2], shares)
