"""Reports from clients, through the command line: honest ones are published, what honest noise cannot give is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pldp.channels.randomness import Keystream
from pldp.questions.histograms.question import Histograms
from pldp.tasks.reports import commit_reports
from pldp.tasks.specfile import load_spec
from tests.flows.conftest import Pldp
from tests.people import write_spec

SECTIONS: dict[str, Any] = {"source": {"reports": "inbox"}, "levels": {}, "mechanism": "krr"}
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


def flood(inbox: Path, plan: Histograms, rows: int) -> None:
    """Two files for every attribute at the strictest level, where a report weighs most; no two of one length."""
    for i, attribute in enumerate(plan.attributes):
        level = attribute.levels[0]
        folder = inbox / f"attribute={attribute.name}" / f"level={level.level}"
        for number in (0, 1):
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
    assert "estimates_possible" in {gate["gate"] for gate in found["validations"]}


def test_files_of_repeated_rows_cannot_move_a_share_beyond_all(tmp_path: Path, pldp: Pldp) -> None:
    """The attack: 9,000 made-up rows among 4,500 honest ones moved a share to far more than everybody."""
    spec = write_spec(tmp_path, **SECTIONS)
    plan = planned(spec)
    send(tmp_path / "inbox", plan)
    flood(tmp_path / "inbox", plan, 4500)
    said = pldp("release", spec, "--home", tmp_path / "home", "--json")
    assert said.code == 1, said.out
    assert "estimates_possible" in said.err
    found = json.loads(said.out)
    assert found["status"] == "refused"
    assert found["histograms"] == []
    gates = {gate["gate"]: gate for gate in found["validations"]}
    assert gates["level_sums"]["passed"]  # which cannot see it
    assert not gates["estimates_possible"]["passed"]
    assert gates["estimates_possible"]["observed"] > 2 > gates["estimates_possible"]["bound"] > 1
    shown = pldp("show", found["release_id"], "--home", tmp_path / "home").out
    assert "estimates_possible" in shown


def test_a_file_sent_twice_is_refused_before_anything_is_spent(tmp_path: Path, pldp: Pldp) -> None:
    spec = write_spec(tmp_path, **SECTIONS)
    send(tmp_path / "inbox", planned(spec))
    for first in sorted((tmp_path / "inbox").rglob("day-0.parquet")):
        first.with_name("day-7.parquet").write_bytes(first.read_bytes())
    said = pldp("release", spec, "--home", tmp_path / "home")
    assert said.code == 2
    assert "day-7.parquet: holds the same 500 reports as" in said.err
    assert "day-0.parquet" in said.err
    assert not (tmp_path / "home" / "ledger.jsonl").exists()


def test_reports_are_planned_and_not_evaluated(tmp_path: Path, pldp: Pldp) -> None:
    """The plan is what clients are handed, before there is any report; an evaluation would need the truth."""
    spec = write_spec(tmp_path, **SECTIONS)
    said = pldp("plan", spec, "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["plan"]["perturbed_by"] == "clients"
    send(tmp_path / "inbox", planned(spec))
    said = pldp("evaluate", spec, "--home", tmp_path / "home")
    assert said.code == 2
    assert f"{spec}: source.reports holds no truth to compare with; an evaluation needs source.path." in said.err
    assert not (tmp_path / "home").exists()
