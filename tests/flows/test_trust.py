"""Which model of privacy holds: local only where users' own clients perturbed, whatever kind a release has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import pldp
from pldp.questions.statement import privacy_statement
from pldp.tasks.specfile import load_spec
from tests.flows.conftest import ROOT, Finished, Pldp
from tests.items import world as films
from tests.people import world as people

OPERATED = "local noise drawn by a trusted operator"
ITEMS: dict[str, Any] = {
    "kind": "items",
    "name": "basket",
    "source": {"path": "basket.csv"},
    "items": ["bread", "beer", "fish"],
    "budget": {"total": 3},
    "expected": {"users": 1000},
}


def items(folder: Path, **sections: Any) -> Path:
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(ITEMS | {"itemsets": {"minimum_support": 0.1}} | sections))
    return path


def numbers(folder: Path) -> Path:
    age = {"name": "age", "kind": "number", "bounds": [0, 100]}
    return people(folder, attributes=[age])


def reports(folder: Path, **sections: Any) -> Path:
    (folder / "sent").mkdir(parents=True)
    return people(folder, source={"reports": "sent"}, levels={"dependence": 1} | sections)


def hidden_reports(folder: Path) -> Path:
    return reports(folder, visibility="hidden", epsilon_p=1, max_leak=50)


def statement_of(spec: Path) -> dict[str, Any]:
    return privacy_statement(load_spec(spec).plan, "some-release", 1000)


@pytest.mark.parametrize("make", [people, numbers, films, items], ids=["histograms", "numbers", "aggregates", "items"])
def test_an_operator_drew_the_noise(make: Any, tmp_path: Path, pldp: Pldp) -> None:
    spec = make(tmp_path)
    statement = statement_of(spec)
    assert statement["model"] == OPERATED
    assert "local differential privacy" not in json.dumps(statement)
    assert "differential privacy by local noise that a trusted operator drew, " in statement["guarantee"]
    assert "not whoever ran the release" in statement["holds_towards"]
    assert any("whoever holds the vault" in sentence for sentence in statement["assumptions"])
    assert f"Model: {OPERATED}" in pldp("plan", spec).out


@pytest.mark.parametrize("make", [reports, hidden_reports])
def test_clients_drew_the_noise(make: Any, tmp_path: Path, pldp: Pldp) -> None:
    spec = make(tmp_path)
    statement = statement_of(spec)
    assert statement["model"] == "local"
    assert statement["guarantee"] == "local differential privacy, personalised by level"
    assert "whoever runs the release included" in statement["holds_towards"]
    assert not any("vault" in sentence for sentence in statement["assumptions"])
    assert any(
        "A page that the collector serves is a client only as far as its" in one for one in statement["assumptions"]
    )
    caveat = "on a page that the collector serves, only as far as its code is trusted"
    assert f"Model: local; {caveat}\n" in pldp("plan", spec).out


def test_a_published_release_says_it_everywhere(finished: Finished, pldp: Pldp) -> None:
    release_id = finished.done.release_id
    assert OPERATED in pldp("show", release_id, "--home", finished.home).out
    for path in (
        finished.home / "releases" / release_id / "privacy.json",
        finished.home / "pages" / f"{release_id}.html",
    ):
        assert OPERATED in path.read_text()
        assert "local differential privacy" not in path.read_text()


def test_what_a_stranger_reads_first() -> None:
    """Neither the README's first words nor the package's say of every release what holds only of clients' reports."""
    first = (ROOT / "README.md").read_text().split("```")[0]
    description = next(line for line in (ROOT / "pyproject.toml").read_text().splitlines() if "description" in line)
    assert "local differential privacy" not in first.replace("is local differential privacy only where", "")
    assert OPERATED in first
    assert "local differential privacy" not in description
    assert pldp.__doc__ is not None
    assert "local differential privacy" not in pldp.__doc__
