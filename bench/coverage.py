"""How often 95 % intervals hold, by class of value, over a grid of surveys: the worst cell is what counts.

`python -m bench coverage` goes through the whole grid, a piece at a time and all parts in turn, in about half an hour
of one core: what is done stands in bench/results/ and is not done again (`--fresh` forgets it). `--quick` takes the
hard corners of the public histograms only, less than a minute. `--seconds N` stops after N seconds; the rest is left
for another call. `--only NAME…` takes some parts alone: public, release, hidden, em, numbers, items. `--write` writes
docs/coverage.md from what was run so far, and runs nothing. This module has the public histograms: counts are drawn by
their exact law, one value at a time: of a pure protocol it is the sum of two binomials per level. The others stand in
coverage_<part>.py.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from bench import common
from bench.cells import draw_cell, draw_cell_support
from bench.coverage_page import write
from bench.coverage_parts import NAMES, PUBLIC, Clock, Piece, again_file, available, rows_file, run, second_stage
from bench.coverage_report import MOST, REPEATS, Cell, Row, Setting, report, rows_of
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.subset import Subset
from pldp.estimate.answer import answer
from pldp.estimate.combine import Levels
from pldp.estimate.critical import CONFIDENCE as LEVEL
from pldp.estimate.guarded import Noise, tilts, worst_tilt
from pldp.estimate.invert import ANYTHING, Cover, hypothesis_table
from pldp.estimate.path import guarded_weights
from pldp.estimate.simulate import whole_counts

_FULL = 100.0  # a Γ beyond says that the last level would hold nobody else
_MANY, _CLEAR = 200_000, 4.0  # repetitions, and standard errors, that tell what is below 95 %
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
    protocols: list[PureProtocol] = []
    for _, part in MIXES[setting.mix]:
        budget = Fraction(str(setting.epsilon)) * part
        both = (KRR.for_budget(setting.values, budget), Subset.for_budget(setting.values, budget))
        protocols.append(min(both, key=lambda one: float(one.noise_variance(typical)[0])))
    return tuple(protocols)


def classes(setting: Setting) -> dict[str, int]:
    """Holders of a value that nobody has, of one person, of rare, middling, frequent values and of nearly everybody."""
    weights = 1 / np.arange(1, setting.values + 1)
    counts = whole_counts(weights, setting.users)
    holders = {
        "nobody": 0,
        "one person": 1,
        "rare": max(int(counts[-1]) // 4, 3),
        "middle": int(counts[setting.values // 2]),
        "top": int(counts[0]),
    }
    # Where nearly everybody holds a value, 5 % of them moving would leave nobody else at the last level.
    return holders if setting.choice == "moved" else holders | {"most": setting.users * 9 // 10}


def measure(setting: Setting, repeats: int = REPEATS, only: str | None = None) -> list[Cell]:
    """Coverage and length of every class as published, beside the length of `sum`."""
    stream = setting.name if only is None else f"{setting.name}, {only}, {repeats}"
    rng = np.random.default_rng(zlib.crc32(stream.encode()))
    sizes = whole_counts(np.array([share for share, _ in MIXES[setting.mix]]), setting.users)
    protocols = protocols_of(setting)
    cells = []
    for name, holders in classes(setting).items():
        if only not in (None, name):
            continue
        tilt = tilt_of(setting, sizes, protocols, holders / setting.users)
        dealt = draw_cell(holders, sizes, repeats, rng, tilt)
        support = draw_cell_support(dealt, sizes, protocols, rng)
        levels = estimates(support, sizes, protocols)
        truth = dealt.sum(axis=-1, keepdims=True) / setting.users
        # What is published: with the estimate inside.
        cover = Cover(setting.gamma)
        reports = Levels(levels[..., None], sizes, protocols)
        result, other = (answer(method, reports, cover) for method in (setting.method, "sum"))
        held = (result.low <= truth + 1e-12) & (truth - 1e-12 <= result.high)
        length = float(np.mean(result.high - result.low))
        cells.append(
            Cell(
                setting=setting,
                kind=name,
                covered=int(held.sum()),
                repeats=repeats,
                forced=bool(held.mean() > MOST) and forced(setting, sizes, protocols, holders),
                length=length,
                over_sum=(length * setting.users + 1) / (float(np.mean(other.high - other.low)) * setting.users + 1),
            )
        )
    return cells


def forced(setting: Setting, sizes: Counts, protocols: tuple[PureProtocol, ...], holders: int) -> bool:
    """Whether whole people leave no choice: a test that reaches one person less far, to either side, would hold less
    than 95 % at some choice that Γ allows."""
    table = hypothesis_table(setting.method, sizes, protocols, Cover(setting.gamma))
    share = np.array([holders / setting.users])
    weights = table.weights_at(share)
    rng = np.random.default_rng(zlib.crc32(f"forced, {setting.name}, {holders}".encode()))
    low, high = (np.interp(share, table.share, side) - 1 / setting.users for side in (table.below, table.above))
    for tilt in tilts(weights, sizes, Noise.of(protocols), share, setting.gamma):
        dealt_by = None if setting.gamma == 1 else tilt[:, 0]
        for repeats in (REPEATS, _MANY):  # more where that is too near to tell
            dealt = draw_cell(holders, sizes, repeats, rng, dealt_by)
            levels = estimates(draw_cell_support(dealt, sizes, protocols, rng), sizes, protocols)
            away = levels @ weights[:, 0] - dealt.sum(axis=-1) / setting.users
            held = float(np.mean((away >= -low) & (away <= high)))
            if abs(held - LEVEL) > _CLEAR * np.sqrt(LEVEL * (1 - LEVEL) / repeats):
                break
        if held < LEVEL:
            return True
    return False


def estimates(support: Counts, sizes: Counts, protocols: tuple[PureProtocol, ...]) -> Floats:
    """Of one value by level, (repeat, level)."""
    return np.stack([one.estimate(support[:, i], int(sizes[i])) for i, one in enumerate(protocols)], axis=-1)


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


def again(name: str, kind: str, repeats: int) -> Row | None:
    """A cell drawn anew with more repetitions."""
    setting = next((one for one in grid(quick=False) if one.name == name), None)
    return None if setting is None else rows_of(measure(setting, repeats, kind))[0]


def cells_file() -> Path:
    return common.RESULTS / "coverage.jsonl"


def known() -> dict[str, list[Cell]]:
    done: dict[str, list[Cell]] = {}
    for line in cells_file().read_text().splitlines() if cells_file().exists() else ():
        content = json.loads(line)
        cell = Cell(**(content | {"setting": Setting(**content["setting"])}))
        done.setdefault(cell.setting.name, []).append(cell)
    return done


def public_pieces() -> list[Piece]:
    """What is not known yet, by survey, which share their tests."""
    done = known()
    settings = sorted(grid(quick=False), key=lambda one: (zlib.crc32(one.survey.encode()), one.gamma))
    return [partial(keep_cells, setting) for setting in settings if setting.name not in done]


def keep_cells(setting: Setting) -> None:
    cells = measure(setting)
    with cells_file().open("a") as file:
        file.writelines(json.dumps(asdict(cell)) + "\n" for cell in cells)


def main(arguments: Sequence[str] = ()) -> bool:
    if "--quick" in arguments:
        return report([cell for setting in grid(quick=True) for cell in measure(setting)])
    common.RESULTS.mkdir(exist_ok=True)
    if "--fresh" in arguments:
        for file in (cells_file(), rows_file(), again_file()):
            file.unlink(missing_ok=True)
    seconds = float(arguments[arguments.index("--seconds") + 1]) if "--seconds" in arguments else float("inf")
    clock = Clock(0.0 if "--write" in arguments else seconds)
    wanted = arguments[arguments.index("--only") + 1 :] if "--only" in arguments else (PUBLIC, *NAMES)
    modules = available(name for name in NAMES if name in wanted)
    rows = run(modules, clock, public_pieces() if PUBLIC in wanted else ())
    cells = [cell for cells in known().values() for cell in cells] if PUBLIC in wanted else []
    second = second_stage([*rows_of(cells), *rows], modules, again, clock)
    if clock.left:
        print(f"{clock.left} pieces are left: call again to go on")
    if "--write" in arguments:
        write(cells, rows, second, clock.left)
    return report(cells, rows, second) and not clock.left
