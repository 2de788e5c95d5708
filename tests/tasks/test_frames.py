"""Gates see whatever is published: no cell of any table of any kind can change, and no row go, without one failing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pldp.questions.doubts import Doubt
from pldp.questions.gate import Gate
from pldp.questions.table_gates import table_gates
from pldp.questions.tables import PUBLISHED, published_table
from pldp.tables.declaration import Column, Type
from pldp.tasks.frames import Frames, build_frames, computed_rows
from pldp.tasks.ingest import ingest
from pldp.tasks.validate import _plain, gates_of
from tests import baskets, items, people, several
from tests.flows.test_numbers import MIXED, numeric_people
from tests.pldp.questions.memory import passes
from tests.tasks.stages import Concluded, conclude_all, draw_phases

HIDDEN = {**people.SPEC["levels"], "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}

WORLDS: dict[str, Callable[[Path], Path]] = {
    "public": lambda folder: people.world(folder, people.make_people(2000)),
    "hidden": lambda folder: people.world(folder, people.make_people(2000), levels=HIDDEN),
    "numbers": lambda folder: people.world(folder, numeric_people(), **MIXED),
    "bounded": lambda folder: baskets.world(folder, 2000),
    "sampled": lambda folder: baskets.world(folder, 2000, protocol="sampling"),
    "aggregates": lambda folder: items.world(folder, 1000),
    "several": lambda folder: several.world(folder, 1000),
}
TABLES = {
    "public": {"histograms", "estimates", "level_estimates"},
    "hidden": {"histograms", "estimates", "level_shares"},
    "numbers": {"histograms", "estimates", "level_estimates", "means", "quantiles", "bins"},
    "bounded": {"itemsets", "rules"},
    "sampled": {"itemsets", "rules"},
    "aggregates": {"aggregates"},
    "several": {"histograms", "estimates", "level_estimates", "itemsets", "rules", "aggregates"},
}


@pytest.fixture(scope="module", params=WORLDS)
def concluded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Concluded]:
    """A run as a release has it, up to its gates: without the truth."""
    folder = tmp_path_factory.mktemp(request.param)
    run, file = people.opened(WORLDS[request.param](folder), folder / "home", evaluation=True, seed=3)
    ingested = ingest.fn(run, file)
    draw_phases(run, range(ingested.partitions))
    return request.param, replace(conclude_all(run, ingested), truths=None)


def failed(found: Concluded, frames: Frames, doubts: tuple[Doubt, ...] = ()) -> set[str]:
    gates = gates_of(found.run.plan, found.ingested, found.counted, found.results, frames, None, doubts)
    return {gate.name for gate in gates if not passes(gate)}


def changes(column: Column) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Other cells of a column; a number beside what the noise would do to it, and what is no number."""
    match column.type:
        case Type.REAL:
            yield "times 3 plus 1", lambda cell: 1.0 if cell is None else 3 * cell + 1
            yield "nan", lambda cell: float("nan")
            yield "infinite", lambda cell: float("inf")
            yield "null", lambda cell: 1.0 if cell is None else None
        case Type.WHOLE:
            yield "one more", lambda cell: 1 if cell is None else cell + 1
        case Type.FLAG:
            yield "turned", lambda cell: not cell
        case Type.TEXT:
            yield "another", lambda cell: f"{cell} "
        case Type.TEXTS:
            yield "one more", lambda cell: [*cell, "and more"]


def mutants(frames: Frames) -> Iterator[tuple[str, Frames]]:
    """Every published frame with its last cell of one column changed, or without its last row, or with one twice.

    Frames of questions are changed where the questions' own gates see them; the rest beside them.
    """
    for place, tables in enumerate((*frames.questions, frames.beside)):
        for name, rows in tables.items():
            for what, mutant in wrong(name, rows):
                changed = {**tables, name: mutant}
                if place < len(frames.questions):
                    questions = (*frames.questions[:place], changed, *frames.questions[place + 1 :])
                    yield f"{name}: {what}", Frames(questions, frames.beside)
                else:
                    yield f"{name}: {what}", Frames(frames.questions, changed)


def wrong(name: str, rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    yield "last row lost", rows.head(-1)
    yield "last row twice", pl.concat([rows, rows.tail(1)])
    if rows.height > 1:
        yield "rows turned round", rows.reverse()
    for column in published_table(name).content:
        for what, change in changes(column):
            *others, last = rows[column.name].to_list()
            cells = pl.Series(column.name, [*others, change(last)], dtype=rows.schema[column.name])
            yield f"{column.name} {what}", rows.with_columns(cells)


def test_whatever_is_changed_in_a_published_frame_fails_a_gate(concluded: tuple[str, Concluded]) -> None:
    kind, found = concluded
    frames = found.frames
    assert set(frames.published) == {*TABLES[kind], "budgets", "spends"}
    assert all(rows.height > 1 for name, rows in frames.published.items() if name != "spends"), "else no row can go"
    assert failed(found, frames) == set()
    plan = found.run.plan
    computed = computed_rows(plan, found.results, (), plan)

    def of_tables(frames: Frames) -> list[Gate]:
        return [*table_gates(_plain(frames.published), computed)]

    names = {gate.name for gate in gates_of(plan, found.ingested, found.counted, found.results, frames)}
    assert {gate.name for gate in of_tables(frames)} <= names
    # The questions' own gates, which take longer, are asked where those of all tables see nothing.
    unseen = [
        what for what, mutant in mutants(frames) if all(map(passes, of_tables(mutant))) and not failed(found, mutant)
    ]
    assert unseen == []


def test_a_table_more_or_less_fails_a_gate(concluded: tuple[str, Concluded]) -> None:
    _, found = concluded
    beside = {name: rows for name, rows in found.frames.beside.items() if name != "budgets"}
    assert "tables_as_computed" in failed(found, Frames(found.frames.questions, beside))
    doubts = pl.DataFrame(schema=dict.fromkeys(column.name for column in published_table("doubts").content))
    assert "tables_as_computed" in failed(
        found, Frames(found.frames.questions, {**found.frames.beside, "doubts": doubts})
    )


def test_doubts_are_seen_too(concluded: tuple[str, Concluded]) -> None:
    _, found = concluded
    plan, doubts = found.run.plan, (Doubt("job", "low", "repeated reports", 7.0, 3.0, 1e-9),)
    tables = [question.tables(result) for question, result in zip(plan.questions, found.results, strict=True)]
    frames = build_frames(plan, found.results, doubts, tables)
    assert failed(found, frames, doubts) == set()
    rows = frames.beside["doubts"]
    for what, mutant in wrong("doubts", rows):
        assert failed(found, Frames(frames.questions, {**frames.beside, "doubts": mutant}), doubts), what


def test_every_declared_table_is_published_by_some_kind() -> None:
    tables = set().union(*TABLES.values(), {"budgets", "spends", "doubts"})
    assert tables == {table.name for table in PUBLISHED} - {"releases", "validations"}, "which are about the gates"


def test_the_verdicts_of_a_release_name_gate_and_question_once(concluded: tuple[str, Concluded]) -> None:
    kind, found = concluded
    gates = gates_of(found.run.plan, found.ingested, found.counted, found.results, found.frames)
    keys = [(gate.name, gate.question) for gate in gates]
    assert len(set(keys)) == len(keys)
    asked = {question for _, question in keys} - {None}
    assert asked == {question.name for question in found.run.plan.questions}
    assert len(asked) == {"numbers": 2, "several": 3}.get(kind, 1)
