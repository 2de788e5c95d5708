"""The page of a release: built after publishing, by command, and never at the cost of what is published."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from pldp.flows.release import release
from pldp.tasks import html
from tests.flows.conftest import Finished, Pldp
from tests.people import make_people, partial_to_value, world

pytestmark = pytest.mark.usefixtures("server")


def broken(*_: object, **__: object) -> str:
    raise RuntimeError("no charts today")


def test_a_release_builds_its_page_and_says_where(tmp_path: Path, pldp: Pldp) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    said = pldp("release", spec, "--home", home)
    assert said.code == 0
    (page,) = (home / "pages").glob("people-*.html")
    assert str(page) in said.out
    assert page.stem in (home / "pages" / "index.html").read_text()


def test_a_refused_release_has_a_page_of_its_gates(tmp_path: Path) -> None:
    strict = {"budget": {"total": 8}, "combination": {"disagreement": "refuse"}}
    done = release(world(tmp_path, partial_to_value(make_people(20_000)), **strict), tmp_path / "home")
    assert done.status == "refused"
    assert done.page_problem is None
    text = (tmp_path / "home" / "pages" / f"{done.release_id}.html").read_text()
    assert "✗ failed" in text
    assert "<svg" not in text


def test_a_page_that_fails_leaves_the_release_published(
    tmp_path: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said so, with the command that builds it; the same release again builds what is missing."""
    spec, home = world(tmp_path), tmp_path / "home"
    with monkeypatch.context() as patch:
        patch.setattr(html, "draw", broken)
        said = pldp("release", spec, "--home", home)
    assert said.code == 0
    assert "Results are published, but the page is not there." in said.err
    assert "no charts today" not in said.err + said.out
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        ((release_id, status),) = results.execute("SELECT release_id, status FROM releases").fetchall()
    assert status == "published"
    page = home / "pages" / f"{release_id}.html"
    assert f"`pldp page {release_id} --home {home}` builds it again" in said.err
    assert not page.exists()
    assert not (home / "vault" / release_id).exists(), "raw values do not wait for a page"
    again = pldp("release", spec, "--home", home)
    assert again.code == 0
    assert page.exists()
    assert "Warning" not in again.err


def test_another_wording_builds_the_page_anew_and_draws_nothing(tmp_path: Path, pldp: Pldp) -> None:
    spec, home = world(tmp_path, title="Jobs"), tmp_path / "home"
    assert pldp("release", spec, "--home", home).code == 0
    (page,) = (home / "pages").glob("people-*.html")
    assert "<h1>Jobs</h1>" in page.read_text()
    spent = (home / "ledger.jsonl").read_bytes()
    assert pldp("release", world(tmp_path, title="Work"), "--home", home).code == 0
    assert "<h1>Work</h1>" in page.read_text()
    assert (home / "ledger.jsonl").read_bytes() == spent, "the same release: nobody is asked again"
    assert pldp("validate", "people", "--home", home).code == 0


class TestCommand:
    def test_prints_the_path_and_nothing_else(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("page", "people", "--home", finished.home)
        assert said.code == 0
        assert said.out.strip() == str(finished.home / "pages" / f"{finished.done.release_id}.html")
        assert said.err == ""

    def test_an_unknown_release_is_exit_code_2(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("page", "nobody", "--home", finished.home)
        assert said.code == 2
        assert "no release 'nobody' here" in said.err

    def test_a_failure_is_exit_code_3(self, finished: Finished, pldp: Pldp, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(html, "draw", broken)
        said = pldp("page", "people", "--home", finished.home)
        assert said.code == 3
        assert "the page could not be built (RuntimeError). `pldp page people" in said.err
        assert "builds it again. Results are as they were." in said.err
