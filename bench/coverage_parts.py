"""The parts of the coverage bench beside the public histograms, and what of them was run before.

A part is a module bench/coverage_<name>.py with `rows()`, which measures everything and hands over mappings like `Row`.
Where it has `pieces()` too, names and calls, it is run a piece at a time, and what is done is not done again; where it
has `again(setting, class, repetitions)`, its lowest cells are drawn anew with more repetitions.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from bench import common
from bench.coverage_report import AGAIN, LOWEST, Row, lowest

NAMES = ("release", "hidden", "em", "numbers", "items")
PUBLIC = "public"
Again = Callable[[str, str, int], Row | None]
Piece = Callable[[], None]
"""Measures something and keeps it."""


@dataclass
class Clock:
    """So many seconds from now; whoever asks after that is told that something is left."""

    allowed: float
    left: int = 0
    start: float = field(default_factory=time.perf_counter)

    def over(self) -> bool:
        late = time.perf_counter() - self.start > self.allowed
        self.left += late
        return late


def rows_file() -> Path:
    return common.RESULTS / "coverage_rows.jsonl"


def again_file() -> Path:
    return common.RESULTS / "coverage_again.jsonl"


def available(names: Iterable[str] = NAMES) -> dict[str, Any]:
    """The modules that are there."""
    return {name: import_module(f"bench.coverage_{name}") for name in names if find_spec(f"bench.coverage_{name}")}


def known() -> dict[tuple[str, str], list[Row]]:
    """What was measured before, by part and piece."""
    if not rows_file().exists():
        return {}
    lines = [json.loads(line) for line in rows_file().read_text().splitlines()]
    return {(line["part"], line["piece"]): line["rows"] for line in lines}


def shuffled(pieces: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """In an order that is always the same and follows nothing: a part of them is a sample of the grid."""
    return sorted(pieces, key=lambda piece: zlib.crc32(piece[0].encode()))


def counted(part: str, one: Mapping[str, Any]) -> Row:
    """A row as it is kept. A part may tell `covered` as a share; where it pools several intervals of a repetition,
    these hang together, so that they count as one."""
    covered = one["covered"]
    whole = round(covered * one["repetitions"]) if isinstance(covered, float) else covered
    return cast(Row, {**one, "covered": whole, "part": part})


def run(modules: dict[str, Any], clock: Clock, others: Sequence[Piece] = ()) -> list[Row]:
    """Every piece that is not known yet, while there is time, and `others` among them; the rows of all that are."""
    done = known()
    parts = {part: pieces_of(module) for part, module in modules.items()}
    left = [
        [partial(keep, part, piece, call) for piece, call in pieces if (part, piece) not in done]
        for part, pieces in parts.items()
    ]
    for one in spread([*left, others]):
        if not clock.over():
            one()
    done = known()
    return [one for part, pieces in parts.items() for piece, _ in pieces for one in done.get((part, piece), [])]


def pieces_of(module: Any) -> list[tuple[str, Any]]:
    return shuffled(module.pieces()) if hasattr(module, "pieces") else [("all", module.rows)]


def keep(part: str, piece: str, call: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
    """Measure a piece and write down its rows."""
    rows = [counted(part, one) for one in call()]
    with rows_file().open("a") as file:
        file.write(json.dumps({"part": part, "piece": piece, "rows": rows}) + "\n")


def spread(parts: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Of all parts in turn, so that each is about as far as any other whenever time is up."""
    places = [((i + 0.5) / len(part), number, one) for number, part in enumerate(parts) for i, one in enumerate(part)]
    return [one for _, _, one in sorted(places, key=lambda place: place[:2])]


def second_stage(rows: Sequence[Row], modules: dict[str, Any], public: Again, clock: Clock) -> list[Row]:
    """The lowest cells of defaults, of those parts that can, drawn anew."""
    calls: dict[str, Again] = {PUBLIC: public}
    calls |= {part: module.again for part, module in modules.items() if hasattr(module, "again")}
    before = again_file().read_text().splitlines() if again_file().exists() else []
    done: dict[str, Row] = {}
    for line in before:
        one = json.loads(line)
        done[f"{one['setting']} / {one['class']}"] = one
    remeasured: list[Row] = []
    start = clock.left
    for one in lowest([one for one in rows if one.get("part", "") in calls]):
        if LOWEST in (len(remeasured), clock.left - start):
            break
        key = f"{one['setting']} / {one['class']}"
        if key not in done:
            if clock.over():
                continue
            fresh = calls[one["part"]](one["setting"], one["class"], AGAIN)
            if fresh is None:
                continue
            done[key] = {**fresh, "part": one["part"]}
            with again_file().open("a") as file:
                file.write(json.dumps(done[key]) + "\n")
        remeasured.append(done[key])
    return remeasured
