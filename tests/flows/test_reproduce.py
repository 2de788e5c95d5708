"""`pldp reproduce`, whole: processes, resuming, the last line, the exit code, and the page in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pldp.papers.laboratory import flow as flow
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.model import Fact, Unit
from pldp.papers.mpldp import figures as mpldp
from pldp.papers.registry import NAMES
from tests.flows.browser import CHROMIUM, browser
from tests.flows.conftest import Pldp
from tests.flows.test_page_browser import CONTRAST, WIDER
from tests.papers.world import SHARED

UNITS = [
    Unit(paper="mpldp", experiment="table 2"),
    Unit(paper="mpldp", experiment="errors", arguments={"n": 1000, "epsilon": 6.0}, repeats=8, seed=1),
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, server: str) -> Callable[[float], None]:
    """mpldp with two pieces of work and the facts of Table 2, whose first is multiplied."""

    def arrange(factor: float) -> None:
        facts = [fact for fact in read_facts("mpldp") if fact.place == "Table 2"]
        facts[0] = replace(facts[0], printed=factor * facts[0].printed)
        monkeypatch.setattr(mpldp, "units", lambda quick: UNITS)
        monkeypatch.setattr(flow, "read_facts", lambda name: tuple[Fact, ...](facts))

    return arrange


def test_a_run_resumes_and_tells_what_it_found(
    small: Callable[[float], None], pldp: Pldp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(1.0)
    first = pldp("reproduce", "mpldp", "--quick", "--to", tmp_path)
    assert first.code == 0, first.err
    assert first.out.splitlines()[-1] == (
        "110 numbers: 10 agree, 0 differ with a verified reason, 100 with an inferred one, 0 unexplained"
    )
    assert (tmp_path / "mpldp.html").exists()

    def refuse(*_: object) -> None:
        raise AssertionError("what is finished is not run again")

    monkeypatch.setattr(flow, "work", refuse)
    again = pldp("reproduce", "mpldp", "--quick", "--to", tmp_path)
    assert (again.code, again.out) == (first.code, first.out)

    small(1.3)
    wrong = pldp("reproduce", "mpldp", "--pages-only", "--to", tmp_path)
    assert wrong.code == 1
    assert wrong.out.splitlines()[-1] == (
        "110 numbers: 10 agree, 0 differ with a verified reason, 99 with an inferred one, 1 unexplained"
    )
    _look_at(tmp_path / "mpldp.html", folder=tmp_path)


def _look_at(*pages: Path, folder: Path) -> None:
    if CHROMIUM is None:
        return
    with browser(folder) as tab:
        for page in pages:
            for width in (360, 1280):
                tab.look(width=width, phone=width == 360)
                tab.open(page)
                assert tab.complaints == []
                assert tab.requests == [page.as_uri()], "nothing but the page itself"
                assert tab.evaluate(WIDER) == []
            for dark in (False, True):
                tab.look(width=1280, dark=dark)
                tab.open(page)
                assert tab.evaluate(CONTRAST) == {}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the papers' data (shared/data) are not beside the repository")
def test_all_papers_leave_nothing_unexplained(pldp: Pldp, tmp_path: Path, server: str) -> None:
    """Every experiment of every paper, with few repetitions; what the tables say, and every page in a browser."""
    said = pldp("reproduce", "all", "--quick", "--data", SHARED, "--to", tmp_path)
    assert said.code == 0, said.err
    with duckdb.connect(tmp_path / "reproduce.duckdb", read_only=True) as results:
        left = results.execute("FROM comparisons WHERE verdict NOT IN ('agrees', 'differs')").fetchall()
        compared = results.execute("SELECT paper, count(*) FROM comparisons GROUP BY paper").fetchall()
    assert left == []
    assert dict(compared) == {name: len(read_facts(name)) for name in NAMES}
    assert said.out.splitlines()[-1].startswith(f"{sum(n for _, n in compared)} numbers: ")
    _look_at(*(tmp_path / f"{name}.html" for name in (*NAMES, "index")), folder=tmp_path)


def test_a_piece_that_fails_is_named_and_the_others_are_kept(
    small: Callable[[float], None], pldp: Pldp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(1.0)
    broken = Unit(paper="mpldp", experiment="no such", arguments={"n": 7})
    monkeypatch.setattr(mpldp, "units", lambda quick: [UNITS[0], broken])
    said = pldp("reproduce", "mpldp", "--to", tmp_path)
    assert said.code == 3
    assert "mpldp, no such (n 7): ValueError" in said.err
    assert "run the same command again to resume" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nobody",), "PAPER must be one of mpldp, febsf"),
        (("febsf", "--data", "nowhere"), "the data set adult-"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: tuple[str, ...], told: str, pldp: Pldp, tmp_path: Path, server: str
) -> None:
    said = pldp("reproduce", *arguments, "--to", tmp_path)
    assert said.code == 2
    assert told in " ".join(said.err.replace("│", " ").split())
