"""Errors hold fields: one renderer writes their sentence, and fields are all that leaves a process."""

from __future__ import annotations

import ast
import copy
import copyreg
import pickle
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest

from pldp.errors import BrokenRule, GateFailed, HomeError, Outcome, PldpError, Problem, SourceError, SpecError, quoted
from pldp.tasks.specfile import load_spec
from tests.people import world

ROOT = Path(__file__).parents[2]
CLASSES = {"SpecError", "SourceError", "NotFound", "RequestError", "GateFailed", "HomeError", "StageFailed"}


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (Problem("must be above 0", file="r.yaml", field="budget.total", value="-1"), "r.yaml: budget.total must be "),
        (Problem("must be above 0", field="budget.total", value="-1"), "budget.total must be above 0 (got -1)."),
        (Problem("input should be 1", field="budget.total"), "budget.total: input should be 1."),
        (Problem("is empty", file="p.csv", row=3, column="age"), "p.csv, readable row 3, column age: is empty."),
        (Problem("a quote opens here", file="p.csv", line=7), "p.csv, line 7: a quote opens here."),
        (Problem("is no file", file="p", remedy="Name one."), "p: is no file. Name one."),
        (Problem("did you mean this?", field="x"), "x: did you mean this?"),
    ],
)
def test_every_field_has_its_place_in_the_sentence(problem: Problem, sentence: str) -> None:
    assert str(problem).startswith(sentence)


def test_what_happened_to_the_data_comes_last() -> None:
    one = SourceError("is empty", Outcome.NOTHING_RUN, file=Path("p.csv"), column="age", remedy="Fill it.")
    assert str(one) == "p.csv, column age: is empty. Fill it. Nothing was run."
    two = SpecError.of([Problem("is required", field="a"), Problem("is required", field="b")], Outcome.NOTHING_RUN)
    assert str(two) == "a is required.\nb is required.\nNothing was run."


def test_each_outcome_is_a_sentence_of_its_own() -> None:
    assert all(outcome.endswith(".") and outcome[0].isupper() for outcome in Outcome)
    assert len(set(Outcome)) == len(Outcome)


@pytest.mark.parametrize("kind", PldpError.__subclasses__(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda module: module.__name__)
def test_an_error_survives_the_way_from_another_process(kind: type[PldpError], pickler: object) -> None:
    """Prefect stores what a task raises with cloudpickle, Dask sends it with pickle."""
    error = kind("is bad", Outcome.NOTHING_DRAWN, file="f", row=1, column="c", field="x", value="'v'", remedy="Mend.")
    back = pickle.loads(pickler.dumps(error))  # type: ignore[attr-defined]  # noqa: S301 — made here
    assert type(back) is kind
    assert (back.problems, back.outcome, str(back)) == (error.problems, error.outcome, str(error))
    assert back.exit_code == error.exit_code


def test_a_copy_takes_no_cause_along_where_a_library_sends_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As tblib does, which Dask loads: its reducers hand causes and contexts on, and `copy` asks reducers."""
    table: dict[type, Any] = dict(copyreg.dispatch_table)
    monkeypatch.setattr(copyreg, "dispatch_table", table)

    def with_context(error: BaseException) -> Any:
        return _with_context, (type(error), error.args, error.__context__)

    table[HomeError] = with_context
    with pytest.raises(HomeError) as caught:
        _raise_from_data()
    assert caught.value.__context__ is not None, "else this shows nothing"
    copied = copy.copy(caught.value)
    assert (copied.__cause__, copied.__context__, copied.__traceback__) == (None, None, None)


def _with_context(kind: type[HomeError], args: tuple[Any, ...], context: BaseException | None) -> HomeError:
    error = kind(*args)
    error.__context__ = context
    return error


def test_only_fields_travel() -> None:
    """No cause, no context, no note: whatever they hold may be data."""
    with pytest.raises(HomeError) as caught:
        _raise_from_data()
    caught.value.add_note("SECRET")
    copied = copy.copy(caught.value)
    assert b"SECRET" not in pickle.dumps(copied)
    assert (copied.__cause__, copied.__context__, copied.__traceback__) == (None, None, None)
    assert str(copied) == f"home: is full. {Outcome.RESUMABLE}"


def _raise_from_data() -> None:
    try:
        raise ValueError("SECRET")
    except ValueError as cause:
        raise HomeError("is full", Outcome.RESUMABLE, file="home") from cause


def test_a_broken_rule_becomes_an_error_when_its_file_is_known() -> None:
    rule = BrokenRule("must sum to 1", field="expected.levels", value="2")
    assert str(rule) == "expected.levels must sum to 1 (got 2)"
    error = SpecError.broken(rule, Outcome.NOTHING_RUN, file=Path("r.yaml"))
    assert str(error) == "r.yaml: expected.levels must sum to 1 (got 2). Nothing was run."
    assert error.problems[0].field == "expected.levels"
    assert pickle.loads(pickle.dumps(rule)).problem == rule.problem  # noqa: S301 — made here
    foreign = SpecError.broken(ValueError("too small"), Outcome.NOTHING_RUN, file="r.yaml")
    assert str(foreign) == "r.yaml: too small. Nothing was run."


def test_a_rule_within_a_section_names_its_whole_field() -> None:
    inner = Problem("must differ", field="values")
    assert inner.inside("attributes[0]").field == "attributes[0].values"
    assert inner.inside("").field == "values"
    assert Problem("must differ").inside("attributes").field == "attributes"
    assert Problem("must differ", field="[0].x").inside("attributes").field == "attributes[0].x"


def test_programs_get_the_fields() -> None:
    error = GateFailed("fails", Outcome.SPENT, file="f", field="x")
    assert error.as_json() == {
        "error": "GateFailed",
        "problems": [{"rule": "fails", "file": "f", "field": "x"}],
        "outcome": "spent",
        "message": str(error),
    }


def test_quotes_are_short() -> None:
    assert quoted("a") == "'a'"
    assert len(quoted("k" * 5000)) == 81


def raised(path: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES
    ]


SENTENCES: set[str] = set()
"""Files that still raise whole sentences. Never longer."""


def test_every_error_says_what_happened_to_the_data() -> None:
    places = [path for folder in ("pldp", "tasks", "flows", "expectations", "papers") for path in files(folder)]
    calls = {path.relative_to(ROOT).as_posix(): raised(path) for path in places}
    assert sum(map(len, calls.values())) > 80
    bare = {name for name, found in calls.items() if any(len(call.args) < 2 for call in found)}
    assert bare - SENTENCES == set()
    assert SENTENCES - bare == set(), "take them off the list"


def test_no_rule_carries_what_has_a_field_of_its_own() -> None:
    """Outcomes and quoted values stand in fields, not in the rule."""
    for folder in ("tasks", "flows", "papers"):
        for path in files(folder):
            for call in raised(path):
                rule = ast.unparse(call.args[0])
                assert "Nothing was" not in rule, path
                assert "(got " not in rule, path


def files(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if not any(p.is_symlink() for p in path.parents))


def test_fields_are_what_the_guide_asks_for() -> None:
    assert {"file", "line", "row", "column", "field", "rule", "value", "remedy"} == {f.name for f in fields(Problem)}


SPEC_RULES = (
    *(ROOT / "pldp" / "spec").glob("*.py"),
    *(ROOT / "pldp" / "questions").glob("*/spec.py"),
    *(ROOT / "pldp" / "questions").glob("*/sensitivity.py"),
    ROOT / "pldp" / "questions" / "several.py",
)
WRITTEN_OUT = re.compile(r"f?\"[a-z_.]+ (must|is|needs|takes|goes|names|cannot) ")


def test_no_rule_of_a_spec_writes_its_field_into_the_sentence() -> None:
    """A program that reads `problems` finds the field; one renderer puts it before the rule."""
    written = [
        f"{path.name}:{node.lineno}"
        for path in SPEC_RULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func) == "ValueError"
        and node.exc.args
        and WRITTEN_OUT.match(ast.get_source_segment(path.read_text(), node.exc.args[0]) or "")
    ]
    assert len(SPEC_RULES) > 12
    assert written == []


def test_a_rule_within_a_spec_reaches_programs_with_field_and_value(tmp_path: Path) -> None:
    levels = {"column": "level", "choices": {"low": "1/2", "high": 1}, "missing": "middle", "dependence": 1}
    with pytest.raises(SpecError) as caught:
        load_spec(world(tmp_path, levels=levels))
    (problem,) = caught.value.problems
    assert (problem.field, problem.rule, problem.value) == ("levels.missing", "must be one of choices", "'middle'")
