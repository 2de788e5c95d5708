"""How often intervals of items, sets and rules hold what is true of people's rows, through the release's own code.

`rows()` takes some ten minutes at its own number of repetitions; `python -m bench.coverage_items 200` prints as many as
are asked for. People are drawn anew every time, and so are their levels.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.questions.items.question import Items
from pldp.questions.items.repeated import CLASSES, KINDS, Cell, covered_cells, draw_again
from pldp.questions.items.resolve import make_plan
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.items.transactions import Columns as BitColumns
from pldp.questions.question import Columns, offsets

REPEATS = 200
PARTITIONS = 4
_STRICT = 0.3
"""Share of people at the stricter level."""


@dataclass(frozen=True)
class Setting:
    """A survey: items of falling popularity, two pairs that go together, two levels of half and whole budget."""

    name: str
    items: int
    users: int
    epsilon: float
    mean: float
    """Items that people have, about."""
    minimum: float
    length: int = 2
    declared: bool = True
    """Whether the spec declares how long rows are."""
    protocol: str = "auto"
    dependence: str = "1"
    tilt: float = 0.0
    """How much rarer the stricter level is among holders of the first item, in points of its share."""


SETTINGS = (
    Setting("rows of 4", 60, 20_000, 4, 4, 0.05),
    Setting("rows of 8", 60, 20_000, 4, 8, 0.05),
    Setting("rows of 4, lengths not declared", 60, 20_000, 4, 4, 0.05, declared=False),
    Setting("levels by items, sets of 3", 100, 50_000, 6, 8, 0.1, length=3, dependence="unknown", tilt=0.2),
    Setting("bits, ε = 20", 20, 20_000, 20, 4, 0.05, protocol="bounded"),
    Setting("bits, eight items, ε = 10", 8, 2000, 10, 2, 0.06, protocol="bounded"),
    Setting("bits, five items, levels by items", 5, 3000, 9, 2, 0.08, dependence="unknown", tilt=0.25),
    Setting("few people, ε = 14", 12, 350, 14, 3, 0.05, declared=False, protocol="sampling"),
)  # fmt: skip


def table_of(setting: Setting, rng: np.random.Generator, users: int | None = None) -> NDArray[np.bool_]:
    """Users × items."""
    popular = 1 / np.arange(1, setting.items + 1) ** 0.8
    n = setting.users if users is None else users
    table = rng.random((n, setting.items)) < np.minimum(popular / popular.sum() * setting.mean, 0.9)
    table[:, 1] |= table[:, 0] & (rng.random(n) < 0.5)
    table[:, 3] |= table[:, 2] & (rng.random(n) < 0.6)
    return table


def lengths_of(setting: Setting) -> dict[int, str]:
    """As somebody who knows such people would declare them, to a thousandth."""
    sizes = table_of(setting, np.random.default_rng(0), 200_000).sum(axis=1)
    ends = np.cumsum(np.bincount(sizes)) / sizes.size
    thousandths = np.diff(np.floor(1000 * ends + 1e-9).astype(int), prepend=0)
    return {length: f"{part}/1000" for length, part in enumerate(thousandths.tolist()) if part}


def plan_of(setting: Setting) -> Items:
    spec = ItemsSpec.model_validate(
        {
            "kind": "items",
            "name": "coverage",
            "source": {"path": "rows"},
            "items": [f"item {number}" for number in range(setting.items)],
            "budget": {"total": str(setting.epsilon)},
            "itemsets": {"minimum_support": setting.minimum, "length": setting.length},
            "protocol": setting.protocol,
            "levels": {"choices": {"high": "1/2", "low": 1}, "dependence": setting.dependence},
            "users": {"path": "users", "level": "level"},
            "expected": {"users": setting.users, "levels": {"high": "3/10", "low": "7/10"}},
            **({"sampling": {"lengths": lengths_of(setting)}} if setting.declared else {}),
        }
    )
    assert isinstance(spec.items, tuple)
    return make_plan(spec, spec.items, None)


def people_of(setting: Setting, table: NDArray[np.bool_], rng: np.random.Generator) -> list[Columns]:
    """Partitions as a vault has them."""
    strict = np.where(table[:, 0], _STRICT - setting.tilt, _STRICT + setting.tilt / 2)
    levels = (rng.random(len(table)) >= strict).astype(np.uint8)
    out: list[Columns] = []
    for first in range(PARTITIONS):
        rows = table[first::PARTITIONS]
        bounds = np.concatenate([[0], np.cumsum(rows.sum(axis=1))]).astype(np.int64)
        held = np.nonzero(rows)[1].astype(np.uint32)
        out.append({"level": levels[first::PARTITIONS], "items": held, offsets("items"): bounds})
    return out


def measure(setting: Setting, repeats: int) -> Iterator[dict[str, Any]]:
    """One row per kind and class: how many intervals, the share that hold, and their mean length."""
    plan, seed = plan_of(setting), zlib.crc32(setting.name.encode())
    by_class: dict[tuple[str, str], list[Cell]] = {(kind, name): [] for kind in KINDS for name in CLASSES}
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        table = table_of(setting, rng)
        people = people_of(setting, table, rng)

        def stream(*labels: str | int, repeat: int = repeat) -> Keystream:
            return Keystream.seeded(seed, repeat, *labels)

        def everybody(fields: Sequence[str], people: list[Columns] = people) -> Iterator[Columns]:
            return iter(people)

        mined = draw_again(plan, everybody, stream).mined
        for (kind, _), cell in covered_cells(iter([mined]), [BitColumns.of_table(table)]).items():
            top = "top" if cell.support >= 4 * setting.minimum else "middle"
            name = "rare" if cell.support < setting.minimum else top
            by_class[kind, name].append(cell)
    for (kind, name), cells in by_class.items():
        if cells:
            yield {
                "setting": setting.name,
                "class": f"{kind}, {name}",
                "repetitions": repeats,
                "intervals": len(cells),
                "covered": float(np.mean([cell.covered for cell in cells])),
                "length": float(np.mean([cell.length for cell in cells])),
            }


def pieces() -> Iterator[tuple[str, Callable[[], list[dict[str, Any]]]]]:
    yield from ((setting.name, partial(rows, settings=(setting,))) for setting in SETTINGS)


def rows(repeats: int = REPEATS, settings: Sequence[Setting] = SETTINGS) -> list[dict[str, Any]]:
    return [row for setting in settings for row in measure(setting, repeats)]


if __name__ == "__main__":
    for one in SETTINGS:
        print(f"{one.name}: {plan_of(one).row_limits or plan_of(one).protocol}", flush=True)
        for row in measure(one, int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS):
            print(*row.values(), sep=" | ", flush=True)
