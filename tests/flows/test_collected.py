"""`source: {inbox: …}`: what a collector kept is released, for every kind of question, by hand and by a schedule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from pldp.client import read_plan
from pldp.errors import SourceError, SpecError
from pldp.flows.collecting import settled
from pldp.flows.release import release
from pldp.flows.schedule import scheduled_release
from pldp.tasks.home import Home
from pldp.tasks.specfile import load_spec
from tests import baskets, several
from tests.flows.collected import fill, inbox, signed
from tests.flows.conftest import Pldp
from tests.items import make_catalogue
from tests.people import SPEC, write_spec
from tests.pldp.client import plans
from tests.pldp.questions.aggregates.world import SPEC as FILMS

INBOX = {"inbox": "inbox"}


def _people(folder: Path, **sections: Any) -> Path:
    return write_spec(folder, **{"source": INBOX, "levels": {"dependence": 1}, **sections})


def _hidden(folder: Path) -> Path:
    return _people(
        folder, levels={"dependence": 1, "visibility": "hidden", "epsilon_p": 2, "max_leak": 400}, mechanism="krr"
    )


def _numbers(folder: Path) -> Path:
    number = {"name": "income", "kind": "number", "bounds": [0, 100]}
    return _people(folder, attributes=[*SPEC["attributes"], number], budget={"total": 6})


def _alone(folder: Path, spec: dict[str, Any]) -> Path:
    content = {key: value for key, value in {**spec, "source": INBOX}.items() if key != "users"}
    (folder / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder / "spec.yaml"


def _several(folder: Path) -> Path:
    return several.write_spec(folder, *several.SENT, source=INBOX)


KINDS: dict[str, Callable[[Path], Path]] = {
    "histograms": _people,
    "hidden": _hidden,
    "numbers": _numbers,
    "items": lambda folder: _alone(folder, baskets.SPEC),
    "aggregates": lambda folder: _alone(folder, FILMS),
    "several": _several,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_collection_plan(kind: str, tmp_path: Path, pldp: Pldp) -> None:
    make_catalogue().write_csv(tmp_path / "catalogue.csv")
    spec, out = KINDS[kind](tmp_path), tmp_path / "plan.signed"
    fingerprint = pldp("collect", "keys", tmp_path / "key.pem").out.split()[-1]
    said = pldp("collect", "plan", spec, "--key", tmp_path / "key.pem", "--out", out)
    assert said.code == 0, said.err
    plan = read_plan(out.read_bytes(), fingerprint)
    assert plan.document["release_plan"] == load_spec(spec).plan.sha256
    if kind == "several":
        kinds = {one["kind"] for one in plan.document["questions"]}
        assert kinds == {"histogram", "items", "totals"}


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("kind", KINDS)
def test_what_came_in_is_released(kind: str, tmp_path: Path, pldp: Pldp) -> None:
    make_catalogue().write_csv(tmp_path / "catalogue.csv")
    file, plan = signed(tmp_path, load_spec(KINDS[kind](tmp_path)))
    fill(tmp_path / "inbox", plan, 300)
    done = release(file.path, tmp_path / "home", slot="monday")
    assert done.status == "published"
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        assert results.execute("SELECT n_users FROM releases").fetchall() == [(300,)]
    statement = json.loads((tmp_path / "home" / "releases" / done.release_id / "privacy.json").read_text())
    assert statement["model"] == "local"
    shown = pldp("show", done.release_id, "--home", tmp_path / "home").out
    for text in (shown, (tmp_path / "home" / "pages" / f"{done.release_id}.html").read_text()):
        assert "local differential privacy" in text or "Model     local; " in text
        assert "as far as its code is trusted" in " ".join(text.split())
        assert "trusted operator" not in text


@pytest.mark.usefixtures("server")
def test_reports_of_a_slot_go_when_it_is_published_and_the_slot_stays_done(tmp_path: Path) -> None:
    file, plan = inbox(tmp_path)
    box = tmp_path / "inbox"
    fill(box, plan, 50)
    first = release(file.path, tmp_path / "home", slot="monday")
    assert first.status == "published"
    assert [path.name for path in (box / "closed" / "monday").iterdir()] == ["released.json"]
    fill(box, plan, 7)
    again = release(file.path, tmp_path / "home", slot="monday")
    assert (again.release_id, again.resumed) == (first.release_id, True)
    with pytest.raises(SourceError, match=f"was released as {first.release_id}, which this home does not have"):
        release(file.path, tmp_path / "another", slot="monday")
    kept = _people(tmp_path, retention={"inbox": "keep"})
    assert release(kept, tmp_path / "home", slot="tuesday").status == "published"
    manifest = json.loads((box / "closed" / "tuesday" / "received.json").read_text())
    assert manifest == {"people": 7, "rejected": {}}
    assert list((box / "closed" / "tuesday").rglob("*.parquet"))


@pytest.mark.usefixtures("server")
def test_a_slot_that_junk_had_refused_is_released_as_the_document_says(tmp_path: Path) -> None:
    """Reports cannot be collected again; raising the bound alone finds the refusal done."""
    file, plan = inbox(tmp_path)
    fill(tmp_path / "inbox", plan, 50, {"format": 5})
    refused = release(file.path, tmp_path / "home", slot="monday")
    assert refused.status == "refused"
    raised = {"inbox": "inbox", "max_left_out": "1/5"}
    again = release(_people(tmp_path, source=raised), tmp_path / "home", slot="monday")
    assert (again.release_id, again.status) == (refused.release_id, "refused")
    other = release(_people(tmp_path, source=raised, retention={"inbox": "keep"}), tmp_path / "home", slot="monday")
    assert other.status == "published"
    assert list((tmp_path / "inbox" / "closed" / "monday").rglob("*.parquet"))


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("kind", "answers", "left"),
    [
        ("histograms", {"sex": "male"}, {"job"}),
        ("hidden", {"job": "nurse"}, {"sex"}),
        ("numbers", {"income": 30}, {"job", "sex"}),
        ("numbers", {"job": "nurse", "sex": "male"}, {"income"}),
        ("several", {"job": "nurse", "sex": "male"}, None),
    ],
)
def test_a_question_that_nobody_answered_is_withheld(
    kind: str, answers: dict[str, Any], left: set[str] | None, tmp_path: Path, pldp: Pldp
) -> None:
    make_catalogue().write_csv(tmp_path / "catalogue.csv")
    file, plan = signed(tmp_path, load_spec(KINDS[kind](tmp_path)))
    fill(tmp_path / "inbox", plan, 300, **answers)
    done = release(file.path, tmp_path / "home", slot="monday")
    assert (done.status, done.page_problem) == ("published", None)
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        found = results.execute(
            "SELECT attribute, n_users FROM doubts, releases WHERE finding = 'no reports'"
        ).fetchall()
        published = {row[0] for row in results.execute("SELECT attribute FROM histograms").fetchall()}
    assert {users for _, users in found} == {300}
    withheld = {attribute for attribute, _ in found}
    assert withheld == (left or withheld)
    assert published.isdisjoint(withheld)
    assert pldp("show", done.release_id, "--home", tmp_path / "home").code == 0
    assert pldp("validate", done.release_id, "--home", tmp_path / "home").code == 0


@pytest.mark.usefixtures("server")
def test_a_schedule_resumes_a_slot_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It died after it had spent: the slot is closed, and the same reports are released."""
    file, plan = inbox(tmp_path)
    fill(tmp_path / "inbox", plan, 50)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pldp.flows.release.conclude", dies)
        with pytest.raises(BaseException):  # noqa: B017,PT011  # as a signal ends it
            scheduled_release(str(file.path), str(tmp_path / "home"), "2026-11-18T03:00Z")
    (spent,) = Home(tmp_path / "home").spends()
    fill(tmp_path / "inbox", plan, 9)
    state: Any = scheduled_release(str(file.path), str(tmp_path / "home"), "2026-11-18T03:00Z", return_state=True)
    assert state.message == f"{spent['release_id']} published"
    assert len(Home(tmp_path / "home").spends()) == 1


@pytest.mark.parametrize("slot", ["../../evil", "..", ".", "a/b", ""])
def test_a_slot_that_names_another_folder_is_refused(slot: str, tmp_path: Path) -> None:
    file, plan = inbox(tmp_path)
    fill(tmp_path / "inbox", plan, 1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SpecError, match="slot must be 1 to 64 letters"):
        release(file.path, tmp_path / "home", slot=slot)
    assert sorted(tmp_path.rglob("*")) == before
    assert settled(file, "monday") is not None


def test_a_plan_whose_boxes_are_not_the_specs_is_refused(tmp_path: Path) -> None:
    """Whoever may write to the inbox could have reports written to any folder of the operator."""
    file, plan = inbox(tmp_path)
    fill(tmp_path / "inbox", plan, 1)
    content = json.loads(json.dumps(plan.document))
    content["questions"][0]["choices"][0]["boxes"][0]["path"] = "../../../elsewhere"
    (tmp_path / "inbox" / "plan.signed").write_bytes(plans.signed(json.dumps(content).encode()))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SourceError, match="its plan has reports collected where the spec's plan has none"):
        settled(file, "monday")
    assert sorted(tmp_path.rglob("*")) == before


def test_the_inboxs_place_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    spec = load_spec(_people(tmp_path, source={"inbox": str(tmp_path / "far" / "inbox")}))
    assert json.loads(spec.public)["source"]["inbox"] == "inbox"
    assert str(tmp_path) not in spec.public
