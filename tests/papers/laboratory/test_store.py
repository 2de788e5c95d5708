"""What is kept: whole pieces, under an identity that holds all they depend on."""

from __future__ import annotations

import ast
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from pldp.errors import HomeError
from pldp.papers.compare import Tally
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.laboratory.store import FILE, open_store, run_id
from pldp.papers.laboratory.work import WORDS, code_version, work
from pldp.papers.model import Compared, Fact, Point, Unit
from pldp.papers.registry import available

UNIT = Unit(paper="mpldp", experiment="errors", arguments={"n": 10, "epsilon": 1.0}, repeats=5, seed=3)
POINT = Point(place="Figure 1", panel="a", series="m", x="1", value=0.25, standard_error=0.5, repeats=5)
FACT = Fact(place="Figure 1", panel="a", series="m", x="1", printed=0.5, half_width=0.1, source="p. 3")


def test_identity_is_all_that_a_result_depends_on() -> None:
    others = [
        run_id(replace(UNIT, **change), "code", "data")
        for change in (
            {"paper": "febsf"},
            {"experiment": "other"},
            {"arguments": {"n": 10, "epsilon": 2.0}},
            {"dataset": "basket"},
            {"repeats": 6},
            {"seed": 4},
        )
    ]
    others += [run_id(UNIT, "other code", "data"), run_id(UNIT, "code", "other data")]
    assert len({run_id(UNIT, "code", "data"), *others}) == len(others) + 1
    assert run_id(UNIT, "code", "data") == run_id(replace(UNIT, arguments={"epsilon": 1.0, "n": 10}), "code", "data")


def test_what_is_kept_comes_back_and_only_what_is_shown(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.keep("a", UNIT, "code", 1.5, [POINT])
        store.keep("b", UNIT, "code", 0.5, [replace(POINT, x="2")])
        assert store.known(["a", "b", "c"]) == {"a", "b"}
        assert store.points("mpldp") == []
        store.show("mpldp", ["a"])
    with open_store(tmp_path) as store:
        assert store.points("mpldp") == [POINT]
        assert store.effort("mpldp") == (1, 1.5, 5)
        assert store.points("mpldp") == [POINT], "the next paper reads on the same connection"
        store.show("mpldp", ["b"])
        assert [point.x for point in store.points("mpldp")] == ["2"]


def test_a_piece_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.keep("a", UNIT, "code", 1.0, [POINT])
        with pytest.raises(Exception, match="onstraint"):
            store.keep("a", UNIT, "code", 1.0, [replace(POINT, x="2")])
        store.show("mpldp", ["a"])
        assert store.points("mpldp") == [POINT]


def test_verdicts_replace_those_before(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        unknown = Compared(fact=FACT, point=None, verdict="unexplained")
        store.judge("mpldp", [FACT], [unknown])
        assert store.tallies() == {"mpldp": Tally(0, 0, 0, 1)}
        found = Compared(fact=FACT, point=POINT, verdict="differs", reason="why", basis="verified")
        store.judge("mpldp", [FACT], [found])
        assert store.tallies() == {"mpldp": Tally(0, 1, 0, 0)}
        store.judge("mpldp", [FACT], [replace(found, basis="inferred")])
        assert store.tallies() == {"mpldp": Tally(0, 0, 1, 0)}
        store.judge("mpldp", [], [])
        assert store.tallies() == {}


def test_results_of_an_earlier_version_are_opened(tmp_path: Path) -> None:
    """Its comparisons have no basis: they claim the less until they are judged again."""
    with open_store(tmp_path) as store:
        found = Compared(fact=FACT, point=POINT, verdict="differs", reason="why", basis="verified")
        store.judge("mpldp", [FACT], [found])
        store.connection.execute("ALTER TABLE comparisons DROP COLUMN basis")
    with open_store(tmp_path) as store:
        assert store.tallies() == {"mpldp": Tally(0, 0, 1, 0)}
        store.judge("mpldp", [FACT], [found])
        assert store.tallies() == {"mpldp": Tally(0, 1, 0, 0)}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match=r"the results cannot be kept there .*--to"), open_store(tmp_path / "file"):
        pass
    (tmp_path / FILE).mkdir()
    with pytest.raises(HomeError, match="--to"), open_store(tmp_path):
        pass


@pytest.mark.parametrize("name", available())
def test_facts_are_whole(name: str) -> None:
    facts = read_facts(name)
    assert facts
    keys = [(fact.place, fact.panel, fact.series, fact.x) for fact in facts]
    assert len(set(keys)) == len(keys)
    assert all(fact.half_width >= 0 and fact.repeats >= 0 and fact.source for fact in facts)


def test_no_facts_are_no_error() -> None:
    assert read_facts("nobody") == ()


def test_code_has_a_version_of_its_own_for_every_paper() -> None:
    versions = [code_version(name) for name in available()]
    assert len(set(versions)) == len(versions)


def test_work_runs_a_unit(tmp_path: Path) -> None:
    points, seconds = work(Unit(paper="mpldp", experiment="algorithm 4"), tmp_path)
    assert len(points) == 30
    assert seconds >= 0


def test_nothing_that_computes_depends_on_words() -> None:
    """Words are left out of the identity, so from their modules only words may be taken."""
    for path in files("pldp.papers").iterdir():
        if path.name.endswith(".py") and not path.name.removesuffix(".py").endswith(WORDS):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith(WORDS):
                    assert {alias.name for alias in node.names} <= {"NOTES", "PICTURES", "REASONS"}, path.name
