"""The walk of a value in docs/architecture.md: its figures are counted in the table, its functions are called."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pldp.questions.question import Question
from pldp.questions.tables import published_table
from pldp.tasks.combine import combine
from pldp.tasks.count import add_up, count
from pldp.tasks.ingest import ingest
from pldp.tasks.publish import publish
from pldp.tasks.tables import frame
from tests.people import histograms_of, opened, world
from tests.tasks.published import PASSED
from tests.tasks.stages import draw_all

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = ("", "pldp", "pldp/questions")
NOT_COUNTED = "describe"
"""Before any value is read."""


def walk(kind: str) -> list[tuple[str, str]]:
    """The column of a kind as (file, function), in the order of the way; "the same" is the histogram's cell."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.split("## The walk of a value")[1].split("\n## ")[0].splitlines()
        if line.startswith("|") and not line.startswith("| ---")
    ]
    head, *rows = rows
    column = head.index(kind)
    steps: list[tuple[str, str]] = []
    for row in rows:
        file = ""
        if row[0] == NOT_COUNTED:
            continue
        for name in re.findall(r"`([^`]+)`", row[1] if row[column] == "the same" else row[column]):
            file, function = name.split(": ") if ": " in name else (file, name)
            steps.append((_path(file), function))
    return steps


def _path(file: str) -> str:
    return next(str(Path(folder) / file) for folder in FOLDERS if (ROOT / folder / file).exists())


def package(file: str) -> str:
    parts = Path(file).parts
    return parts[1] if parts[0] == "pldp" else parts[0]


def test_the_sentence_says_what_the_table_holds() -> None:
    steps = walk("histogram")
    packages = [package(file) for file, _ in steps]
    crossings = sum(a != b for a, b in pairwise(packages))
    assert f"goes through {len(steps)} functions and crosses from one package to another {crossings} times" in TEXT


@pytest.mark.parametrize("kind", ["histogram", "number", "item set", "aggregate"])
def test_every_function_of_the_walk_is_there(kind: str) -> None:
    for file, function in walk(kind):
        if function != "frame":
            assert f"def {function}(" in (ROOT / file).read_text(), (file, function)


@contextmanager
def called() -> Iterator[set[tuple[str, str]]]:
    """Which functions of ours run inside the block, in any thread."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            seen.add((str(Path(code.co_filename).resolve().relative_to(ROOT)), code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_a_release_calls_every_function_of_the_walk(tmp_path: Path) -> None:
    attributes = [{"name": "job", "values": ["farmer", "smith", "nurse"], "other": "smith", "mechanism": "subset"}]
    run, file = opened(world(tmp_path, attributes=attributes), tmp_path / "home")
    question: Question = histograms_of(run)
    with called() as seen:
        ingested = ingest.fn(run, file)
        draw_all(run, range(ingested.partitions))
        tallies = add_up(count.fn(run, None, range(ingested.partitions)))
        estimates = {
            method: combine.fn(run, 0, method, tallies, ingested.partitions, None) for method in question.methods
        }
        rows = question.tables(question.conclude(tallies, estimates))
        tables = {name: frame(published_table(name), columns) for name, columns in rows.items()}
        publish.fn(run, ingested.n_users, tables, (PASSED,))
    missed = [step for step in walk("histogram") if step not in seen]
    assert missed == []
