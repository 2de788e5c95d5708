"""What a spec, a file name or a published table holds cannot steer a terminal, nor is it read as Rich's markup."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from pldp.tasks.terminal import visible
from tests.flows.conftest import PATIENCE, Pldp
from tests.items import make_catalogue
from tests.people import JOBS, make_people
from tests.pldp.questions.aggregates.world import SPEC as AGGREGATES

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b1m\u202eevil\u2066[link=http:x]in[/link][red]:smile:\x08\r\x7f"
"""A title, colours by ESC and by C1, overrides of direction, markup, an emoji's name, and characters that go back."""

STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NURSE, SMITH = f"nurse {HOSTILE}", f"smith {HOSTILE}"
COLUMN = f"job {HOSTILE}"
FOLDER = HOSTILE.replace("/", "|")
"""The same as the name of a folder."""
NOWHERE = "SELECT 'HERE' FROM \"HERE\"".replace("HERE", HOSTILE)
RENAMED = 'SELECT value AS "HERE", frequency FROM latest_histograms'.replace("HERE", HOSTILE)


def write(folder: Path, file: str, content: dict[str, Any]) -> Path:
    path = folder / file
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def people_spec(folder: Path, file: str = "spec.yaml", **sections: Any) -> Path:
    content = {
        "name": "people",
        "source": {"path": "people.parquet", "user_id": "id"},
        "attributes": [{"name": "job", "values": ["farmer", NURSE, SMITH], "column": COLUMN}],
        "budget": {"total": 4},
        "levels": {"dependence": 1, "column": "level"},
    }
    return write(folder, file, content | sections)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hostile name, and people in it."""
    folder = tmp_path_factory.mktemp("terminal") / FOLDER
    folder.mkdir()
    people = make_people(1500)
    jobs = people["job"].replace_strict(dict(zip(JOBS, ["farmer", NURSE, SMITH] * 2, strict=True)))
    people.with_columns(jobs.alias(COLUMN)).write_parquet(folder / "people.parquet")
    return folder


@pytest.fixture
def says(pldp: Pldp) -> Any:
    """Everything that a command writes. No character of it steers a terminal."""

    def run(*arguments: object, code: int = 0) -> str:
        said = pldp(*arguments)
        assert STEERING.findall(said.out + said.err) == [], (said.out + said.err).encode()
        assert said.code == code, said.err
        return said.out + said.err

    return run


def test_visible() -> None:
    assert visible("\x1b[31m\x9b\u202e[red]\n\t\udcff é") == "\\x1b[31m\\x9b\\u202e[red]\n\\x09\\udcff é"


class TestRefused:
    def test_a_bad_spec(self, folder: Path, says: Any) -> None:
        hostile: dict[str, Any] = {
            "name": HOSTILE,
            HOSTILE: 1,
            "levels": {"dependence": 1, "column": {HOSTILE: HOSTILE}},
        }
        spec = people_spec(folder, "bad.yaml", **hostile)
        for arguments in (("plan", spec), ("release", spec, "--home", folder / "home")):
            assert "Nothing was run." in says(*arguments, code=2)

    def test_what_is_not_there(self, folder: Path, says: Any) -> None:
        home = folder / "none"
        says("plan", folder / f"{FOLDER}.yaml", code=2)
        says("show", HOSTILE, "--home", home, code=2)
        says("releases", "--home", home)
        says("query", NOWHERE, "--home", home, code=2)

    @pytest.mark.usefixtures("server")
    def test_a_source_without_its_column(self, folder: Path, says: Any) -> None:
        attributes = [{"name": "job", "values": ["farmer", NURSE, SMITH], "column": f"no {HOSTILE}"}]
        spec = people_spec(folder, "columns.yaml", attributes=attributes)
        assert "owned" in says("release", spec, "--home", folder / "home", code=2)


def test_plans_of_every_kind(folder: Path, says: Any) -> None:
    items = {"kind": "items", "name": "basket", "source": {"path": "b.csv"}, "items": ["farmer", NURSE, SMITH]}
    rest = {"budget": {"total": 3}, "itemsets": {"minimum_support": 0.1}, "expected": {"users": 1000}}
    names = {"drama": f"drama {HOSTILE}", "comedy": f"comedy {HOSTILE}", "war": "war"}
    make_catalogue().with_columns(pl.col("attribute").replace(names)).write_csv(folder / "catalogue.csv")
    films = {**AGGREGATES, "attributes": list(names.values()), "profiles": {"even": 1}, "default": "even"}
    films.pop("users")
    for spec in (
        people_spec(folder),
        write(folder, "items.yaml", items | rest),
        write(folder, "films.yaml", films),
    ):
        says("plan", spec)
        json.loads(says("plan", spec, "--json"))


@pytest.mark.usefixtures("server")
def test_what_is_published(folder: Path, says: Any) -> None:
    home = folder / "home"
    shown = visible(NURSE)
    assert "published" in says("release", people_spec(folder), "--home", home)
    for arguments in (
        ("show", "people"),
        ("validate", "people"),
        ("releases",),
        ("page", "people"),
        ("query", RENAMED),
        ("query", "SELECT *, value AS again FROM latest_histograms"),
        ("export", "people", folder / FOLDER),
    ):
        says(*arguments, "--home", home)
    assert shown in says("group", "people", "job", NURSE, SMITH, "--home", home)
    assert shown in says("query", "SELECT value FROM latest_histograms", "--csv", "--home", home)
    wanted = "SELECT value FROM latest_histograms WHERE value LIKE 'nurse%'"
    (row,) = json.loads(says("query", wanted, "--json", "--home", home))
    assert row["value"] == NURSE, "a program gets it exactly"
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", "pldp.flows.cli", "show", "people", "--home", home],
        capture_output=True,
        timeout=PATIENCE,
        env=os.environ | forced,
        check=True,
    )
    own = re.sub(r"\x1b\[[0-9;]*m", "", (done.stdout + done.stderr).decode())
    assert STEERING.findall(own) == [], "Rich writes bold and dim; nothing else"
    assert b"\x1b[1m" in done.stdout
    assert b"31m" not in done.stdout.replace(b"\\x1b[31m", b"")
