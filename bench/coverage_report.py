"""What the coverage bench concludes: the worst cell of every class, and whether any lies outside of 94–97 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import binom

from bench.common import Measure, publish
from pldp.estimate.invert import ANYTHING

REPEATS = 2000
FALSE_ALARM = 0.01
LEAST, MOST = 0.94, 0.97
LONGEST = 1.02


@dataclass(frozen=True)
class Setting:
    values: int
    users: int
    epsilon: float
    mix: str
    method: str
    gamma: float
    choice: str

    @property
    def name(self) -> str:
        declared = "unknown" if self.gamma >= ANYTHING else f"Γ {self.gamma:g}"
        return (
            f"k {self.values}, n {self.users:,}, ε {self.epsilon:g}, {self.mix}, {self.method}, {declared}, "
            f"{self.choice}"
        )

    @property
    def default(self) -> bool:
        return self.method == "guarded" or self.gamma >= ANYTHING

    @property
    def tight(self) -> bool:
        """Whether coverage should not be far above 95 % either."""
        return self.method == "guarded" and (self.gamma == 1 or self.choice in ("up", "down"))


@dataclass(frozen=True)
class Cell:
    """One class of values in one setting; `over_sum` is the mean length over that of `sum`, in people held."""

    setting: Setting
    kind: str
    covered: int
    repeats: int
    forced: bool
    length: float
    over_sum: float

    @property
    def rate(self) -> float:
        return self.covered / self.repeats


def report(cells: Sequence[Cell]) -> bool:
    """Print and write the table; whether every default lies within 94–97 %, or not significantly outside."""
    tests = max(sum(cell.setting.default for cell in cells), 1)
    low = float(binom.ppf(FALSE_ALARM / tests, REPEATS, LEAST)) / REPEATS
    high = (float(binom.isf(FALSE_ALARM / tests, REPEATS, MOST)) + 1) / REPEATS
    measures = []
    for kind in dict.fromkeys(cell.kind for cell in cells):
        mine = [cell for cell in cells if cell.kind == kind]
        ours = [cell for cell in mine if cell.setting.default]
        least = min(ours, key=lambda cell: cell.covered)
        measures.append(Measure(f"{kind}: least, {least.setting.name}", least.rate, "", low))
        tight = sorted((cell for cell in edges(ours) if not cell.forced), key=lambda cell: cell.covered)
        measures += [Measure(f"{kind}: most, {cell.setting.name}", cell.rate, "", high, "≤") for cell in tight[-1:]]
        others = [cell for cell in mine if not cell.setting.default]
        for method in dict.fromkeys(cell.setting.method for cell in others):
            worst = min((cell for cell in others if cell.setting.method == method), key=lambda cell: cell.covered)
            measures.append(Measure(f"{kind}: least of {method}, {worst.setting.name}", worst.rate))
    longest = max((cell for cell in cells if cell.setting.method == "guarded"), key=lambda cell: cell.over_sum)
    name = f"length over that of sum, {longest.setting.name}, {longest.kind}"
    measures.append(Measure(name, longest.over_sum, "", LONGEST, "≤"))
    note = (
        f"{len(cells)} cells of {REPEATS} repetitions: a standard error of 0.5 %. Limits: 94 % and 97 %, moved so far "
        f"that all {tests} comparisons together fail with a probability of 1 % if every cell is right. Cells whose law "
        "is in steps so large that less would be below 95 % have no upper limit."
    )
    return publish("coverage", "Coverage of 95 % intervals", measures, note)


def edges(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that should not be above 97 %: Γ = 1, and of both edges that Γ allows the one that is covered less."""
    found: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        at = cell.setting
        key = (at.values, at.users, at.epsilon, at.mix, at.gamma, cell.kind)
        if at.tight and (key not in found or cell.covered < found[key].covered):
            found[key] = cell
    return list(found.values())
