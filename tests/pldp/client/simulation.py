"""Made-up people through the clients, message by message, and through the pipeline's own kernels; then one estimate."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.client import Accepted, Dice, Memory, Person, check_message, parse_plan
from pldp.client.plan import Plan
from pldp.questions.plan import Plan as ReleasePlan
from pldp.questions.question import Columns, Question, Rows, Sheet, offsets
from tests.pldp.client.plans import aggregates, document, histograms, items, numbers
from tests.pldp.questions import memory

MODULE = Path(__file__).parents[3] / "clients" / "js" / "pldp.js"
Crowd = list[tuple[dict[str, Any], str, dict[str, Any]]]
"""Answers, choice and importance of each person."""
Reports = Mapping[str, Columns]
"""By the path of a sheet."""
OWN = {"income": "a", "rent": "b", "hours": "c"}


@dataclass(frozen=True)
class World:
    """A release, people to answer it, and what the vault would hold of them."""

    made: tuple[ReleasePlan, Any]
    crowd: Crowd
    vault: Columns

    @property
    def question(self) -> Question:
        (question,) = self.made[0].questions
        return question

    @property
    def body(self) -> bytes:
        return document(self.made)


def _choices(names: Sequence[str], n: int, rng: np.random.Generator) -> tuple[list[str], NDArray[np.uint8]]:
    codes = rng.choice(len(names), n).astype(np.uint8)
    return [names[code] for code in codes], codes


def people(made: tuple[ReleasePlan, Any], n: int, seed: int) -> World:
    """Meals, ages and towns, all skewed."""
    rng = np.random.default_rng(seed)
    plan = parse_plan(document(made))
    names = list(next(iter(plan.questions.values())).choices)
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    meals, ages, towns = rng.choice(4, n, p=shares), rng.gamma(3, 12, n), rng.geometric(0.1, n) % 70
    chosen, codes = _choices(names, n, rng)
    meal, town = plan.attributes["meal"].values, plan.attributes["town"].values
    crowd: Crowd = [
        ({"meal": meal[m], "age": float(a), "town": town[t]}, choice, {})
        for m, a, t, choice in zip(meals, ages, towns, chosen, strict=True)
    ]
    bins = np.searchsorted([30, 60], ages, side="right")
    vault = {"value_0": meals, "value_1": bins, "value_2": 3 * meals + bins, "value_3": towns, "level_0": codes}
    return World(made, crowd, vault)


def incomes(made: tuple[ReleasePlan, Any], n: int, seed: int) -> World:
    rng = np.random.default_rng(seed)
    plan = parse_plan(document(made))
    chosen, codes = _choices(["high", "low"], n, rng)
    values = {"income": rng.beta(2, 6, n) * 100, "rent": rng.normal(10, 8, n), "hours": rng.choice([0.0, 38.5, 80], n)}
    weights = rng.choice(3, (n, 3))
    crowd: Crowd = [
        (
            {name: float(column[i]) for name, column in values.items()},
            chosen[i],
            dict(zip(values, weights[i].tolist(), strict=True)),
        )
        for i in range(n)
    ]
    vault: dict[str, Any] = {"level_0": codes}
    for place, (name, column) in enumerate(values.items()):
        attribute = plan.attributes[name]
        vault[f"number_{place}"] = np.array([attribute.encode(float(x)) for x in column], dtype=np.uint32)
        vault[f"weight_{place}"] = weights[:, place].astype(np.float32)
    return World(made, crowd, vault)


def baskets(made: tuple[ReleasePlan, Any], n: int, seed: int, *, one: bool = False) -> World:
    rng = np.random.default_rng(seed)
    names = np.array(["bread", "milk", "beer", "wine", "fish", "rice"])
    table = rng.random((n, 6)) < np.array([0.5, 0.4, 0.25, 0.2, 0.1, 0.05])
    table[:, 1] |= table[:, 0] & (rng.random(n) < 0.5)
    if one:
        table = np.eye(6, dtype=np.bool_)[rng.choice(6, n, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])]
    chosen, codes = _choices(["high", "low"], n, rng)
    held = [names[row].tolist() for row in table]
    crowd: Crowd = [({"items": own[0] if one else own}, choice, {}) for own, choice in zip(held, chosen, strict=True)]
    bounds = np.concatenate([[0], np.cumsum(table.sum(axis=1))]).astype(np.int64)
    vault: dict[str, NDArray[Any]] = {
        "items": np.nonzero(table)[1].astype(np.uint32),
        offsets("items"): bounds,
        "level": codes,
    }
    return World(made, crowd, vault)


def films(made: tuple[ReleasePlan, Any], n: int, seed: int) -> World:
    rng = np.random.default_rng(seed)
    totals = rng.poisson([4.0, 1.5, 0.3], (n, 3))
    chosen, codes = _choices(["open", "shy"], n, rng)
    names = ("action", "drama", "comedy")
    crowd: Crowd = [
        (dict(zip(names, row.tolist(), strict=True)), choice, {}) for row, choice in zip(totals, chosen, strict=True)
    ]
    vault: dict[str, NDArray[Any]] = {f"a_{i}": totals[:, i].astype(np.int64) for i in range(3)}
    return World(made, crowd, {"profile": codes, **vault})


WORLDS: dict[str, Callable[[int, int], World]] = {
    "categories, bins and a cross-tab": lambda n, seed: people(histograms(), n, seed),
    "hidden levels": lambda n, seed: people(
        histograms(hidden=True, mechanism="krr", combination={"method": "auem"}), n, seed
    ),
    "local hashing": lambda n, seed: people(histograms(mechanism="olh"), n, seed),
    "numbers": lambda n, seed: incomes(numbers(), n, seed),
    "numbers with importance": lambda n, seed: incomes(numbers(OWN, weights=True, tau=2), n, seed),
    "item sets by bits": lambda n, seed: baskets(items(length=2), n, seed),
    "items by sampling": lambda n, seed: baskets(items("sampling"), n, seed),
    "single items": lambda n, seed: baskets(items(holds="one"), n, seed, one=True),
    "aggregates": lambda n, seed: films(aggregates(), n, seed),
}


def python_messages(world: World, seed: int | None = None) -> Iterator[bytes]:
    """Everybody's message by the Python client; seeded for tests, the system's randomness otherwise."""
    plan, dice = parse_plan(world.body), Dice()
    if seed is not None:
        stream = Keystream.seeded(seed, "clients")
        dice = Dice(lambda count: stream.copy(count // 8).tobytes())
    for answers, choice, importance in world.crowd:
        yield Person(plan, Memory(), dice).answer(answers, choice, importance=importance)


_PROGRAM = """
import { createInterface } from "node:readline";
const { MemoryStore, Person, parsePlan } = await import(process.argv[1]);
let plan = null;
for await (const line of createInterface({ input: process.stdin })) {
  const sent = JSON.parse(line);
  if (plan === null) plan = await parsePlan(new TextEncoder().encode(sent));
  else console.log(await new Person(plan, new MemoryStore()).answer(sent[0], sent[1], { importance: sent[2] }));
}
"""


def javascript_messages(world: World, node: str) -> list[bytes]:
    lines = [json.dumps(world.body.decode()), *(json.dumps(one) for one in world.crowd)]
    command = [node, "--input-type=module", "--eval", _PROGRAM, MODULE.as_uri()]
    done = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.splitlines()


def collected(plan: Plan, question: Question, messages: Iterable[bytes]) -> Reports:
    """What a collector makes of messages: columns by box."""
    rows: dict[str, list[tuple[int, ...]]] = {sheet.path: [] for sheet in question.sheets()}
    for body in messages:
        accepted = check_message(plan, body)
        assert isinstance(accepted, Accepted), accepted
        for _, box, row in accepted.rows:
            rows[box.path].append(row)
    return {sheet.path: _columns(question.report_types(sheet), rows[sheet.path]) for sheet in question.sheets()}


def _columns(types: Mapping[str, str], rows: Sequence[tuple[int, ...]]) -> Columns:
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in types]
    return {name: np.array(column, dtype=kind) for (name, kind), column in zip(types.items(), columns, strict=True)}


def drawn(world: World, seed: int) -> Reports:
    """The same people through the pipeline's kernels."""
    question, reports = world.question, {}
    for sheet in question.sheets():
        rows = _of_choice(world.vault, sheet)
        beside: Columns = {}
        if sheet.beside is not None:
            beside = question.draw(sheet.beside, rows, Keystream.seeded(seed, *sheet.beside.labels), None)
        reports[sheet.path] = {**beside, **question.draw(sheet, rows, Keystream.seeded(seed, *sheet.labels), None)}
    return reports


def _of_choice(rows: Columns, sheet: Sheet) -> Columns:
    if offsets("items") not in rows:
        return memory.of_choice(rows, sheet)
    chose = rows["level"] == sheet.code
    sizes = np.diff(rows[offsets("items")])
    bounds = np.concatenate([[0], np.cumsum(sizes[chose])])
    return {"items": rows["items"][np.repeat(chose, sizes)], offsets("items"): bounds}


class _Reports(memory.Memory):
    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        sheets = {sheet.path: sheet for sheet in self.question.sheets()}
        parts = [getattr(self.question, method)(sheets[path], one, arrays) for (path, _), one in self.files.items()]
        return np.sum(parts, axis=0)


_SHOWN = {
    "histograms": (("attribute", "value"), "unbiased_frequency", "unbiased_standard_error"),
    "means": (("attribute",), "mean", "standard_error"),
    "itemsets": (("items",), "support", "standard_error"),
    "aggregates": (("provider", "attribute"), "total", "standard_error"),
}
"""Of each table: its key, an unbiased estimate, and the error of that."""


def estimates(question: Question, reports: Reports) -> dict[str, tuple[float, float]]:
    """Every estimate with its standard error, by table and key."""
    files = {(path, 0): columns for path, columns in reports.items()}
    tables: dict[str, Rows] = question.tables(_Reports(question, files).result())
    found: dict[str, tuple[float, float]] = {}
    for name, (keys, estimate, error) in _SHOWN.items():
        if name in tables:
            rows = tables[name]
            for i in range(len(rows[estimate])):
                key = " ".join(str(rows[column][i]) for column in keys)
                found[f"{name} {key}"] = float(rows[estimate][i]), float(rows[error][i])
    return found


def farthest(one: Mapping[str, tuple[float, float]], other: Mapping[str, tuple[float, float]]) -> float:
    """The largest difference of two sets of estimates, in standard errors of the difference."""
    both = one.keys() & other.keys()
    assert both
    return max(
        abs(one[key][0] - other[key][0]) / math.hypot(one[key][1], other[key][1])
        for key in both
        if one[key][1] or other[key][1]
    )
