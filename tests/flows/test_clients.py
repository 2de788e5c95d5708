"""Reports from clients, through the command line: honest ones are published, what honest noise cannot give is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pldp.channels.randomness import Keystream
from pldp.flows.options import out
from pldp.questions.histograms.question import Histograms
from pldp.tasks.reports import commit_reports
from pldp.tasks.specfile import load_spec
from tests.flows.conftest import Pldp
from tests.people import write_spec

SECTIONS: dict[str, Any] = {"source": {"reports": "inbox"}, "levels": {"dependence": 1}, "mechanism": "krr"}
"""k-RR: its estimates sum to one whatever stands in the reports."""

pytestmark = pytest.mark.usefixtures("server")


def planned(spec: Path) -> Histograms:
    (question,) = load_spec(spec).plan.questions
    assert isinstance(question, Histograms)
    return question


def send(inbox: Path, plan: Histograms, users: int = 500, files: int = 3) -> None:
    """Clients at every level, each answering every attribute, in a few deliveries."""
    rng = np.random.default_rng(0)
    for sheet in plan.sheets():
        attribute, _ = plan.places[sheet.path]
        for delivery in range(files):
            values = rng.integers(0, len(plan.attributes[attribute].values), users)
            reports = plan.draw(sheet, {sheet.fields[0]: values}, Keystream.seeded(1, *sheet.labels, delivery), None)
            commit_reports(inbox / sheet.path / f"day-{delivery}.parquet", reports)


def flood(inbox: Path, plan: Histograms, rows: int, names: Sequence[str]) -> None:
    """Two files for attributes at the strictest level, where a report weighs most; no two of one length."""
    for i, attribute in enumerate(plan.attributes):
        level = attribute.levels[0]
        folder = inbox / f"attribute={attribute.name}" / f"level={level.level}"
        for number in (0, 1) if attribute.name in names else ():
            length = rows + (2 * number - 1) * (i + 1)
            said = np.full(length, 1, dtype=np.uint8)  # the report that says this value, over and over
            commit_reports(folder / f"flood-{number}.parquet", {"report": said})


def test_honest_reports_are_published_and_source_names_another_inbox(tmp_path: Path, pldp: Pldp) -> None:
    """`--source` for reports said that the spec needs what it had."""
    spec = write_spec(tmp_path, **SECTIONS)
    send(tmp_path / "elsewhere", planned(spec))
    said = pldp("release", spec, "--home", tmp_path / "home", "--source", tmp_path / "elsewhere", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["status"], found["n_users"]) == ("published", 4500)
    assert "set_aside" in {gate["gate"] for gate in found["validations"]}


def test_an_estimate_that_cannot_be_withholds_its_question_alone(
    tmp_path: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: 9,000 made-up rows among 4,500 honest ones moved a share to far more than everybody."""
    spec = write_spec(tmp_path, **SECTIONS)
    plan = planned(spec)
    send(tmp_path / "inbox", plan)
    flood(tmp_path / "inbox", plan, 4500, ["job"])
    said = pldp("release", spec, "--home", tmp_path / "home", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert {row["attribute"] for row in found["histograms"]} == {"sex"}
    doubt, repeats = found["doubts"]
    assert (doubt["attribute"], doubt["level"], doubt["finding"]) == ("job", "high", "impossible estimate")
    assert doubt["withheld"]
    assert (repeats["finding"], repeats["withheld"]) == ("repeated reports", False)
    assert repeats["observed"] > 9000 > repeats["bound"]
    assert doubt["observed"] > 2 > doubt["bound"] > 1
    monkeypatch.setattr(out, "_width", 200)  # workers of a test run fix it at 80
    shown = pldp("show", found["release_id"], "--home", tmp_path / "home").out
    assert "impossible estimate" in shown


def test_where_every_question_is_doubted_or_the_spec_says_so_the_release_is_refused(tmp_path: Path, pldp: Pldp) -> None:
    spec = write_spec(tmp_path, **SECTIONS)
    plan = planned(spec)
    send(tmp_path / "inbox", plan)
    flood(tmp_path / "inbox", plan, 4500, ["job"])
    (tmp_path / "strict").mkdir()
    strict = write_spec(tmp_path / "strict", **SECTIONS, gates={"poisoning": "refuse"})
    said = pldp("release", strict, "--home", tmp_path / "home", "--source", tmp_path / "inbox", "--json")
    assert (said.code, json.loads(said.out)["status"]) == (1, "refused")
    assert "no_doubt" in said.err
    flood(tmp_path / "inbox", plan, 4800, ["sex"])
    said = pldp("release", spec, "--home", tmp_path / "home", "--json")
    assert said.code == 1
    assert "answers_left" in said.err
    assert json.loads(said.out)["histograms"] == []


def test_partial_answers_are_estimated_from_those_who_answered(tmp_path: Path, pldp: Pldp) -> None:
    spec = write_spec(tmp_path, **SECTIONS)
    send(tmp_path / "inbox", planned(spec))
    for path in (tmp_path / "inbox" / "attribute=job").rglob("day-0.parquet"):
        path.unlink()
    said = pldp("release", spec, "--home", tmp_path / "home", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["n_users"] == 4500
    assert {(row["attribute"], row["n_reports"]) for row in found["histograms"]} == {("sex", 4500), ("job", 3000)}
    assert "which questions a person answered" in found["privacy"]["public"]


def test_more_than_the_stated_share_of_junk_refuses(tmp_path: Path, pldp: Pldp) -> None:
    """A file sent twice is set aside; where that is too much of everything, the gate says so."""
    for most, code in ((0.5, 0), (0.01, 1)):
        home = tmp_path / f"home-{code}"
        home.mkdir()
        spec = write_spec(home, **{**SECTIONS, "source": {"reports": "inbox", "max_left_out": most}})
        send(home / "inbox", planned(spec))
        for first in sorted((home / "inbox").rglob("day-0.parquet")):
            first.with_name("day-7.parquet").write_bytes(first.read_bytes())
        said = pldp("release", spec, "--home", home / "home", "--json")
        assert said.code == code, said.err
        assert "set aside: 3,000 reports, 6 whole files among them: the same reports as another file" in said.err
        gates = {gate["gate"]: gate for gate in json.loads(said.out)["validations"]}
        assert gates["set_aside"]["observed"] == 0.25
        assert gates["set_aside"]["passed"] == (code == 0)


def test_reports_are_planned_and_not_evaluated(tmp_path: Path, pldp: Pldp) -> None:
    """The plan is what clients are handed, before there is any report; an evaluation would need the truth."""
    spec = write_spec(tmp_path, **SECTIONS)
    said = pldp("plan", spec, "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["plan"]["perturbed_by"] == "clients"
    send(tmp_path / "inbox", planned(spec))
    said = pldp("evaluate", spec, "--home", tmp_path / "home")
    assert said.code == 2
    assert f"{spec}: source.reports holds no truth to compare with; an evaluation needs path." in said.err
    assert not (tmp_path / "home").exists()
