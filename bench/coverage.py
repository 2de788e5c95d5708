"""How often 95 % intervals hold, by class of value, over a grid of surveys: the worst cell is what counts.

`python -m bench coverage` goes through the whole grid, a piece at a time: what is done stands in
bench/results/coverage.jsonl and is not done again (`--fresh` forgets it). `--quick` takes the hard corners only, less
than a minute. `--seconds N` stops after N seconds; the rest is left for another call. Support counts are drawn from
their exact law, one value at a time: of a pure protocol it is the sum of two binomials per level.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import product

import numpy as np

from bench.common import RESULTS
from bench.coverage_report import MOST, REPEATS, Cell, Setting, report
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.subset import Subset
from pldp.estimate.answer import answer
from pldp.estimate.combine import Levels
from pldp.estimate.guarded import Noise, worst_tilt
from pldp.estimate.invert import ANYTHING, Cover, Table, hypothesis_table
from pldp.estimate.path import guarded_weights
from pldp.estimate.simulate import draw_cell, draw_cell_support, whole_counts

FILE = RESULTS / "coverage.jsonl"
_FULL = 100.0  # a Γ beyond says that the last level would hold nobody else
_PARTS = (Fraction(1, 6), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(1))
MIXES: dict[str, tuple[tuple[float, Fraction], ...]] = {
    "five": tuple(zip((0.70, 0.20, 0.05, 0.04, 0.01), _PARTS, strict=True)),
    "thirds": tuple((1 / 3, part) for part in (Fraction(1, 3), Fraction(1, 2), Fraction(1))),
    "one": ((1.0, Fraction(1)),),
}
CHOICES = ("independent", "up", "down", "half", "moved")
"""How people choose: blindly; as far up or down as Γ allows; half of it; 5 % of the holders move to the last level."""


def grid(*, quick: bool) -> Iterator[Setting]:
    sizes = ((7, 33), (200, 1_000, 20_000), (2, 6, 20), ("five",)) if quick else (
        (2, 3, 7, 33, 257), (200, 1_000, 20_000, 1_000_000), (0.5, 2, 6, 20), tuple(MIXES)
    )  # fmt: skip
    for values, users, epsilon, mix in product(*sizes):
        base = (values, users, epsilon, mix)
        yield Setting(*base, "guarded", 1.0, "independent")
        if mix == "one":
            continue
        for gamma in (1.3,) if quick else (1.1, 1.3, 2.0):
            for choice in ("up", "down") if quick else ("independent", "up", "down", "half"):
                yield Setting(*base, "guarded", gamma, choice)
        if not quick:
            if moved_gamma(mix, values) < _FULL:
                yield Setting(*base, "guarded", moved_gamma(mix, values), "moved")
                yield Setting(*base, "sum", ANYTHING, "moved")
            yield from (Setting(*base, method, 1.0, "independent") for method in ("sum", "oc", "oc+"))


def moved_gamma(mix: str, values: int) -> float:
    """The Γ that 5 % of the holders at the last level mean, for the others too if the most frequent value's move."""
    tilt = moved_tilt(np.array([share for share, _ in MIXES[mix]]))
    top = 1 / float((1 / np.arange(1, values + 1)).sum())
    others = np.maximum((1 - top * tilt) / (1 - top), 1e-12)
    return float(max(ratio for one in (tilt, others) for ratio in (one.max(), 1 / one.min()))) * (1 + 1e-9)


def moved_tilt(shares: Floats) -> Floats:
    tilt = np.full(shares.size, 0.95)
    tilt[-1] += 0.05 / shares[-1]
    return tilt


def protocols_of(setting: Setting) -> tuple[PureProtocol, ...]:
    """The protocol of least noise at every level, as a plan would choose it."""
    typical = np.array([1 / setting.values])
    found: list[PureProtocol] = []
    for _, part in MIXES[setting.mix]:
        budget = Fraction(str(setting.epsilon)) * part
        both = (KRR.for_budget(setting.values, budget), Subset.for_budget(setting.values, budget))
        found.append(min(both, key=lambda one: float(one.noise_variance(typical)[0])))
    return tuple(found)


def classes(setting: Setting) -> dict[str, int]:
    """Holders of a value that nobody has, of one person, of rare, middling, frequent values and of nearly everybody."""
    weights = 1 / np.arange(1, setting.values + 1)
    counts = whole_counts(weights, setting.users)
    found = {
        "nobody": 0,
        "one person": 1,
        "rare": max(int(counts[-1]) // 4, 3),
        "middle": int(counts[setting.values // 2]),
        "top": int(counts[0]),
    }
    # Where nearly everybody holds a value, 5 % of them moving would leave nobody else at the last level.
    return found if setting.choice == "moved" else found | {"most": setting.users * 9 // 10}


def measure(setting: Setting) -> list[Cell]:
    """Coverage and length of every class as published, beside the length of `sum`."""
    rng = np.random.default_rng(zlib.crc32(setting.name.encode()))
    sizes = whole_counts(np.array([share for share, _ in MIXES[setting.mix]]), setting.users)
    protocols = protocols_of(setting)
    table = hypothesis_table(setting.method, sizes, protocols, Cover(setting.gamma))
    cells = []
    for name, holders in classes(setting).items():
        tilt = tilt_of(setting, sizes, protocols, holders / setting.users)
        dealt = draw_cell(holders, sizes, REPEATS, rng, tilt)
        support = draw_cell_support(dealt, sizes, protocols, rng)
        levels = np.stack([one.estimate(support[:, i], int(sizes[i])) for i, one in enumerate(protocols)], axis=-1)
        truth = dealt.sum(axis=-1, keepdims=True) / setting.users
        # What is published: with the estimate inside.
        cover = Cover(setting.gamma)
        estimates = Levels(levels[..., None], sizes, protocols)
        found, other = (answer(method, estimates, cover) for method in (setting.method, "sum"))
        held = (found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high)
        length = float(np.mean(found.high - found.low))
        cells.append(
            Cell(
                setting=setting,
                kind=name,
                covered=int(held.sum()),
                repeats=REPEATS,
                forced=forced(table, levels, holders / setting.users),
                length=length,
                over_sum=(length * setting.users + 1) / (float(np.mean(other.high - other.low)) * setting.users + 1),
            )
        )
    return cells


def forced(table: Table, levels: Floats, share: float) -> bool:
    """Whether steps leave no choice: what is accepted jumps from below 95 % to above 97 % at one step."""
    at = int(np.abs(table.share - share).argmin())
    away = levels @ table.weights[at] - share
    scaled = np.maximum(away / max(table.above[at], 1e-300), -away / max(table.below[at], 1e-300))
    # Of a normal law these two quantiles are a tenth apart.
    return bool(np.diff(np.quantile(scaled, (0.95, MOST)))[0] < 0.01)


def tilt_of(setting: Setting, sizes: Counts, protocols: tuple[PureProtocol, ...], share: float) -> Floats | None:
    if setting.choice == "independent":
        return None
    shares = sizes / sizes.sum()
    if setting.choice == "moved":
        return moved_tilt(shares)
    gamma = 1 + (setting.gamma - 1) / 2 if setting.choice == "half" else setting.gamma
    at = np.array([np.clip(share, 1 / setting.users, 1 - 1 / setting.users)])
    relative = guarded_weights(sizes, Noise.of(protocols), at, setting.gamma) / shares[:, None]
    return worst_tilt((-1 if setting.choice == "down" else 1) * relative, shares, at, gamma)[:, 0]


def main(arguments: Sequence[str] = ()) -> bool:
    quick = "--quick" in arguments
    allowed = float(arguments[arguments.index("--seconds") + 1]) if "--seconds" in arguments else float("inf")
    done: dict[str, list[Cell]] = {}
    RESULTS.mkdir(exist_ok=True)
    if "--fresh" in arguments:
        FILE.unlink(missing_ok=True)
    if FILE.exists() and not quick:
        for line in FILE.read_text().splitlines():
            row = json.loads(line)
            cell = Cell(**(row | {"setting": Setting(**row["setting"])}))
            done.setdefault(cell.setting.name, []).append(cell)
    start, cells, left = time.perf_counter(), [], 0
    for setting in grid(quick=quick):
        if setting.name in done:
            cells += done[setting.name]
            continue
        if time.perf_counter() - start > allowed:
            left += 1
            continue
        fresh = measure(setting)
        cells += fresh
        if not quick:
            with FILE.open("a") as file:
                file.writelines(json.dumps(asdict(cell)) + "\n" for cell in fresh)
    if left:
        print(f"{left} settings are left: call again to go on")
    return report(cells) and not left
