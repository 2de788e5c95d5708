"""Coverage of whole published histograms with public levels: `em`, `op` and post-processed estimates.

What a release does for its intervals (`estimate_histogram`) is done for all repetitions at once, the test of what is
declared with its fallback included; a test compares both. Post-processed estimates and `op` carry the interval of the
unbiased estimate, `em` the same, so far that it holds its own estimate. `op-exact` carries that of `op`, behind some
80,000 linear programs: it is left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from bench.coverage import MIXES, moved_gamma, moved_tilt
from bench.coverage_report import Row, row
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, PureProtocol
from pldp.estimate.answer import answer
from pldp.estimate.combine import estimate_levels
from pldp.estimate.dependence import agreement
from pldp.estimate.inference import Recipe
from pldp.estimate.likelihood import maximum_likelihood, table_blocks
from pldp.estimate.score import Interval
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts

REPEATS = 400
POSTPROCESSES = ("clip", "norm-sub", "norm-mul", "base-cut", "auto")
_FULL = 100.0


@dataclass(frozen=True)
class Whole:
    """`choice` is independent, or 5 % of the most frequent value's holders moved to the last level."""

    values: int
    users: int
    epsilon: float
    mix: str
    method: str
    postprocess: str = "none"
    choice: str = "independent"

    @property
    def name(self) -> str:
        after = "" if self.postprocess == "none" else f" + {self.postprocess}"
        return (
            f"k {self.values}, n {self.users:,}, ε {self.epsilon:g}, {self.mix}, k-RR, {self.method}{after}, "
            f"Γ {self.gamma:.3g}, {self.choice}"
        )

    @property
    def gamma(self) -> float:
        return moved_gamma(self.mix, self.values) if self.choice == "moved" else 1.0


def grid() -> Iterator[Whole]:
    sizes = ((3, 7, 33), (200, 1_000, 20_000), (2, 6, 20), ("five", "thirds"))
    for base in product(*sizes):
        yield Whole(*base, "em")
    for values, users, epsilon in product((7, 33), (200, 1_000, 20_000), (2, 6)):
        if moved_gamma("thirds", values) < _FULL:
            yield Whole(values, users, epsilon, "thirds", "em", choice="moved")
    for values, users, epsilon in product((7, 33), (200, 1_000), (2, 20)):
        yield from (Whole(values, users, epsilon, "five", "guarded", one) for one in POSTPROCESSES)
        yield Whole(values, users, epsilon, "five", "op")


def counts_of(setting: Whole) -> Counts:
    """Zipf's, but that one value is held by one person and the last by nobody."""
    counts = whole_counts(1 / np.arange(1, setting.values + 1), setting.users)
    counts[0] += int(counts[-2:].sum()) - 1
    counts[-2:] = (1, 0)
    return counts


def dealt(setting: Whole, counts: Counts, sizes: Counts, rng: np.random.Generator) -> Counts:
    """Who chose which level, (repeat, level, value)."""
    if setting.choice == "independent":
        return draw_levels(counts, sizes, REPEATS, rng)
    # Of the first value so many of each level as the choice means; everybody else fills what is left, blindly.
    wanted = counts[0] * (sizes / sizes.sum()) * moved_tilt(sizes / sizes.sum())
    top = np.minimum(whole_counts(wanted, int(counts[0])), sizes)
    others = draw_levels(counts[1:], sizes - top, REPEATS, rng)
    return np.concatenate([np.broadcast_to(top[:, None], (REPEATS, sizes.size, 1)), others], axis=-1)


def recipe_of(setting: Whole) -> Recipe:
    return Recipe(method=setting.method, postprocess=setting.postprocess, dependence=setting.gamma)


def intervals(setting: Whole, support: Counts, sizes: Counts, protocols: tuple[PureProtocol, ...]) -> Interval:
    """As published, (repeat, value): where the levels contradict what is declared, `sum`'s, which assumes nothing."""
    recipe, levels = recipe_of(setting), estimate_levels(support, sizes, protocols)
    estimate = None
    if recipe.method == "em":
        fits = (maximum_likelihood(table_blocks(protocols, one), protocols) for one in support)
        estimate = np.stack([fit.frequency for fit in fits])
    chosen = answer(recipe.linear, levels, recipe.cover, estimate)
    other = answer("sum", levels, replace(recipe, dependence=None).cover)
    agreed = (agreement(levels, recipe.dependence) >= recipe.alpha)[:, None]
    return Interval(np.where(agreed, chosen.low, other.low), np.where(agreed, chosen.high, other.high))


def measure(setting: Whole) -> list[Row]:
    rng = np.random.default_rng(zlib.crc32(setting.name.encode()))
    counts = counts_of(setting)
    sizes = whole_counts(np.array([share for share, _ in MIXES[setting.mix]]), setting.users)
    protocols = tuple(
        KRR.for_budget(setting.values, Fraction(str(setting.epsilon)) * part) for _, part in MIXES[setting.mix]
    )
    support = draw_support(dealt(setting, counts, sizes, rng), protocols, rng)
    ends = intervals(setting, support, sizes, protocols)
    places = {"nobody": -1, "one person": -2, "middle": setting.values // 2, "top": 0}
    if setting.values < 7:
        del places["middle"]
    # Post-processing is what a spec gets that states none (`auto`): its interval must hold as a default's.
    method = setting.method if setting.postprocess == "none" else setting.postprocess
    return [
        row(
            method, setting.name, kind, counts[at] / setting.users, ends.low[:, at], ends.high[:, at],
            default=setting.method == "guarded",
        )
        for kind, at in places.items()
    ]  # fmt: skip


def pieces() -> Iterator[tuple[str, Callable[[], list[Row]]]]:
    return ((setting.name, partial(measure, setting)) for setting in grid())


def rows() -> list[Row]:
    return [one for _, piece in pieces() for one in piece()]
