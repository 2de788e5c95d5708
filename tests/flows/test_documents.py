"""Every command, query, program and spec of README.md and docs/ is run, and its answer is what the document shows.

A block that cannot run says so above itself, `<!-- not run: why -->`, and is counted here: an unmarked one fails.
"""

from __future__ import annotations

import doctest
import inspect
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
import yaml

from pldp.flows.cli import app
from pldp.flows.release import release
from pldp.flows.sample import write_sample
from pldp.tasks.specfile import load_spec
from tests.flows.conftest import DATA, PATIENCE, ROOT
from tests.flows.documents import DOCUMENTS, RUN, Block, blocks_of, shape
from tests.flows.test_examples import DOCUMENTS as QUERIED
from tests.items import make_catalogue, make_items, make_users
from tests.people import mode

BLOCKS = [block for path in DOCUMENTS for block in blocks_of(path)]
NOT_RUN = 19
"""How many blocks say that they cannot run. Whoever adds one says why, and changes this number."""
USERS = 3000
MEALS = ("soup", "salad", "pasta", "nothing")
_IMPORTS = "import sys; from pldp.flows.cli import main; main()"


def ids(block: Block) -> str:
    return block.name


def of(language: str, *documents: str) -> list[Block]:
    """What is to be run, but the queries that tests/flows/test_examples.py asks and compares."""
    asked = {path.name for path in QUERIED} if language == "sql" else set()
    return [
        block for block in BLOCKS if block.language == language and not block.not_run and block.document not in asked
    ]


def test_every_block_is_run_or_says_why_not() -> None:
    unknown = [block.name for block in BLOCKS if not block.not_run and block.language not in RUN]
    assert unknown == [], "give it a language that is run, or a reason: <!-- not run: why -->"
    assert len([block for block in BLOCKS if block.not_run]) == NOT_RUN


@pytest.fixture(scope="module")
def world(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data/ as `pldp sample` leaves it, with the sample and the cross-tab released, and small files for other specs."""
    folder = tmp_path_factory.mktemp("documents")
    before = os.umask(0o022)
    spec, _ = write_sample(folder / "data", USERS)
    (folder / "data" / "crosstab.yaml").write_bytes((ROOT / "data" / "crosstab.yaml").read_bytes())
    for one in (spec, folder / "data" / "crosstab.yaml"):
        assert release(one, folder / "data" / "home").status == "published"
    os.umask(before)
    return folder


def furnish(folder: Path, world: Path) -> None:
    """What the documents take as given: the sample's data, lunch's answers, and a command called pldp."""
    (folder / "data").symlink_to(world / "data")
    rng = np.random.default_rng(7)
    answers = {
        "id": [f"u{i}" for i in range(USERS)],
        "meal": rng.choice(MEALS, USERS, p=[0.4, 0.3, 0.2, 0.1]),
        "level": rng.choice(["high", "mid", "low"], USERS),
    }
    pl.DataFrame(answers).write_csv(folder / "answers.csv")
    (lunch,) = [block.text for block in BLOCKS if block.document == "README.md" and block.language == "yaml"]
    (folder / "lunch.yaml").write_text(f'{lunch}schedule: "0 3 * * *"\n')
    travel = yaml.safe_load(lunch) | {"name": "travel", "schedule": {"cron": "30 3 * * *", "timezone": "Europe/Rome"}}
    (folder / "travel.yaml").write_text(yaml.safe_dump(travel))
    (folder / "spec.yaml").write_text(lunch.replace("name: lunch", "name: my-release"))
    faulty = yaml.safe_load(lunch) | {"budget": {"totl": 2}}
    (folder / "release.yaml").write_text(yaml.safe_dump(faulty, sort_keys=False))
    ages = yaml.safe_load(lunch) | {"attributes": [{"name": "age", "values": ["young"], "column": "meal"}]}
    (folder / "ages.yaml").write_text(yaml.safe_dump(ages, sort_keys=False))
    command = folder / "bin" / "pldp"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{_IMPORTS}' \"$@\"\n")
    command.chmod(0o755)


def environment(folder: Path, **more: str) -> dict[str, str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "PLDP_HOME": "data/home", "COLUMNS": "120"} | more


@pytest.mark.parametrize("document", sorted({block.document for block in of("sh")}))
def test_commands(document: str, world: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In the order of the document, in one folder: a later block finds what an earlier one wrote."""
    furnish(tmp_path, world)
    request.addfinalizer(lambda: end_collector(tmp_path))
    for block in [block for block in BLOCKS if block.document == document and not block.not_run]:
        if block.language == "yaml" and (named := re.match(r"# (\S+\.yaml)\n", block.text)):
            (tmp_path / named[1]).write_text(block.text)
        if block.language == "python" and ">>>" not in block.text:
            subprocess.run(
                [sys.executable, "-c", block.text],
                cwd=tmp_path,
                env=environment(tmp_path),
                check=True,
                timeout=PATIENCE,
            )
        if block.language == "sh" and block.mark == "runs until stopped":
            served(block, tmp_path)
        elif block.language == "sh":
            said = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.text],
                cwd=tmp_path,
                env=environment(tmp_path),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            code = int(block.mark.removeprefix("exit code ") or 0)
            assert said.returncode == code, f"{block.name}: {said.stderr}"
            if code:  # our own words, the same every time
                message = said.stderr[said.stderr.index("Error:") :].replace(f"{tmp_path}/", "")
                assert message.split() == (block.answer or "").split(), block.name
            elif block.answer is not None:
                assert shape(said.stdout)[: len(shape(block.answer))] == shape(block.answer), block.name


def end_collector(folder: Path) -> None:
    """The one that a document starts, where a block after it failed."""
    if (folder / "collector.pid").exists():
        with suppress(ProcessLookupError):
            os.kill(int((folder / "collector.pid").read_text()), signal.SIGTERM)


def served(block: Block, folder: Path) -> None:
    """Start what runs until it is stopped, wait until it has said what the document shows first, and stop it."""
    # The tests' own server plans no runs: what is served starts a real one.
    alone = {name: value for name, value in environment(folder).items() if name != "PREFECT_API_URL"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["bash", "-c", f"exec {block.text}"], cwd=folder, env=alone, stdout=log, stderr=log)
        try:
            answer = (block.answer or "").replace("/srv/pldp", str(folder))
            wanted = [line for line in shape(answer) if line.startswith("Serving ")]
            end = time.monotonic() + PATIENCE
            while not set(wanted) <= set(shape((folder / "log").read_text())) and time.monotonic() < end:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.5)
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(PATIENCE)
    assert set(wanted) <= set(shape((folder / "log").read_text())), block.name
    assert code == 0, (folder / "log").read_text()


BASE: dict[str, Any] = {
    "name": "base",
    "source": {"path": "people.csv", "one_row_per_user": True},
    "attributes": [{"name": "age", "values": ["a", "b", "c"]}, {"name": "region", "values": ["n", "s", "w"]}],
    "budget": {"total": 4},
    "levels": {"dependence": 1, "column": "level"},
}


@pytest.mark.parametrize("block", of("yaml"), ids=ids)
def test_specs(block: Block, tmp_path: Path) -> None:
    """A whole spec is one; a part of one is, in the place of the same part of another."""
    part = yaml.safe_load(block.text)
    spec = part if isinstance(part, dict) and "name" in part else BASE | (part if isinstance(part, dict) else {})
    if isinstance(part, list):
        spec = BASE | {"attributes": part}
    if "reports" in spec.get("source", {}) and "levels" not in part:
        spec["levels"] = {"dependence": 1}
    for kind in ("catalogue", "users"):
        (tmp_path / f"{kind}.csv").touch()
    make_catalogue().write_csv(tmp_path / "catalogue.csv")
    (tmp_path / "users.csv").write_text("user,profile,level\n")
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    load_spec(path)


@pytest.mark.parametrize("document", ["aggregates.md", "items.md"])
def test_whole_examples_are_released(document: str, world: Path, tmp_path: Path) -> None:
    """The specs of other kinds, as they stand, with a few people."""
    (block, *_) = [block for block in of("yaml") if block.document == document]
    if document == "aggregates.md":
        make_items(USERS).write_parquet(tmp_path / "items.parquet")
        make_users(USERS).write_csv(tmp_path / "users.csv")
        make_catalogue().write_csv(tmp_path / "catalogue.csv")
    else:
        rng = np.random.default_rng(3)
        held = rng.random((USERS, 4)) < [0.6, 0.4, 0.3, 0.1]
        user, item = np.nonzero(held)
        rows = {"user": [f"u{i}" for i in user], "item": np.array(["bread", "milk", "beer", "wine"])[item]}
        pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
        levels = rng.choice(["high", "low"], USERS)
        pl.DataFrame({"user": [f"u{i}" for i in range(USERS)], "level": levels}).write_csv(tmp_path / "users.csv")
    (tmp_path / "spec.yaml").write_text(block.text)
    assert release(tmp_path / "spec.yaml", tmp_path / "home").status == "published"


@pytest.mark.parametrize("block", of("sql"), ids=ids)
def test_statements(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that make an example's file, on the file as it is published; the example then reads it."""
    wanted = re.search(r"read_csv\('([^']+)'", block.text)
    assert wanted, block.name
    published = {"movies.dat": "ml-1m_movies.dat.gz"}.get(wanted[1], wanted[1])
    if not (DATA / published).exists():
        pytest.skip(f"{published} is not beside the repository")
    monkeypatch.chdir(tmp_path)
    (tmp_path / wanted[1]).symlink_to(DATA / published)
    text = block.text if published == wanted[1] else block.text.replace(wanted[1], published)
    if text != block.text:
        (tmp_path / published).symlink_to(DATA / published)
    with duckdb.connect() as connection:
        connection.execute(text)
    made = re.search(r"TO '([^']+)'", block.text)
    assert made
    assert (tmp_path / made[1]).stat().st_size > 1000


@pytest.mark.parametrize("block", of("json"), ids=ids)
def test_the_statement_shown_is_the_one_published(block: Block, world: Path) -> None:
    shown = json.loads(block.text)
    (path,) = (world / "data" / "home" / "releases").glob("age-by-region-*/privacy.json")
    found = json.loads(path.read_text())
    same = (
        "name",
        "kinds",
        "guarantee",
        "model",
        "holds_towards",
        "unit",
        "neighbours",
        "total_budget",
        "worst_total",
        "by_level",
    )
    for key in (*same, "public", "assumptions"):
        assert shown[key] == found[key], key
    assert set(shown) <= set(found)
    (crossed,) = [one for one in found["attributes"] if one["attribute"] == "age_by_region"]
    (part,) = shown["attributes"]
    assert {**part, "levels": crossed["levels"]} == crossed
    (strict,) = part["levels"]
    assert strict == pytest.approx(crossed["levels"][0]), "the last digit is the machine's"


NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven"),
    *(
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ),
)


def test_what_the_readme_counts(world: Path) -> None:
    """How many gates there are, and which commands take --json and --home: as the command line itself says."""
    text = (ROOT / "README.md").read_text()
    with duckdb.connect(str(world / "data" / "home" / "results.duckdb"), read_only=True) as results:
        gates = results.sql("SELECT count(*) FROM latest_validations WHERE name = 'sample'").fetchall()[0][0]
    assert f"{NUMBERS[gates]} gates stand between" in text.lower()
    commands = {found.name or found.callback.__name__: found for found in registered() if found.callback}
    listed = re.findall(r"^\| `pldp (\w+)", text, re.MULTILINE)
    # A group has a line of its own, and options by command.
    named = [name for group in app.registered_groups if (name := group_name(group))]
    assert sorted(listed) == sorted([*commands, *named])
    (sentence,) = re.findall(r"^(.*) take `--json`;\n(.*)$", text, re.MULTILINE)
    options = {name: parameters(found.callback) for name, found in commands.items()}
    assert set(re.findall(r"`([a-z]+)`", sentence[0])) == {name for name, own in options.items() if "as_json" in own}
    without = set(re.findall(r"`([a-z]+)`", sentence[1].split("take")[0]))
    assert without == {name for name, own in options.items() if "home" not in own}


def registered() -> list[Any]:
    groups = [group for group in app.registered_groups if not group_name(group)]
    return [*app.registered_commands, *(found for group in groups for found in commands_of(group))]


def group_name(group: Any) -> str:
    """Empty for commands that stand in a module of their own and in no group."""
    name = group.typer_instance.info.name
    return name if isinstance(name, str) else ""


def commands_of(group: Any) -> list[Any]:
    return list(group.typer_instance.registered_commands)


def parameters(callback: Any) -> set[str]:
    return set(inspect.signature(callback).parameters)


def test_the_files_of_a_home_and_their_modes(world: Path) -> None:
    """docs/privacy.md lists what anybody may read; everything else is the operator's alone."""
    home = world / "data" / "home"
    text = (ROOT / "docs" / "privacy.md").read_text()
    table = text[text.index("## Files of a home") :].split("\n\n")[1]
    told = {
        name: stated
        for names, stated in re.findall(r"^\| (`.+?) \| (0\d{3})", table, re.MULTILINE)
        for name in names.split(", ")
    }
    for name in ("reports", "vault", "evaluations", "prefect"):
        assert told[f"`{name}/`"] == "0700"
        # The orchestrator's folder is made by commands, not by flows that are called from Python.
        assert mode(home / name) == 0o700 if (home / name).exists() else name == "prefect"
    (row,) = [line for line in table.splitlines() if line.startswith("| `releases/<id>/`")]
    public = set(re.findall(r"(\w+\.json)`", table))
    for folder in (home / "releases").iterdir():
        assert mode(folder) == 0o755
        for path in folder.iterdir():
            assert path.name in public, "not in the document"
            assert mode(path) == 0o644
    assert "counted.json" in row
    spec = json.loads(next((home / "releases").glob("sample-*/spec.json")).read_text())
    assert spec["source"]["path"] == "sample.parquet", "a file's name, and not where it lies"
    assert mode(home / "ledger.jsonl") == 0o644
    assert mode((home / "results.duckdb").resolve()) == 0o444


SHOWN = [block for block in BLOCKS if block.document == "tables.md" and block.answer is not None]


def boxed(text: str) -> list[list[str]]:
    """The cells of a table as DuckDB draws it, its types left out."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    kinds = {"varchar", "double", "boolean", "int64", "timestamp"}
    return [row for row in rows if not set(row) <= kinds]


def agrees(shown: dict[str, str], found: dict[str, Any]) -> bool:
    """Two draws of noise, over other people of the same kind: within six errors of each other."""
    if not {"frequency", "standard_error"} <= set(shown):
        return True
    share, error = float(shown["frequency"]), float(shown["standard_error"])
    between = share * (1 - share) / min(USERS, int(found.get("n_reports", USERS)))
    spread = math.sqrt(error**2 + found["standard_error"] ** 2 + between)
    return abs(share - found["frequency"]) < 6 * spread


def compare(query: str, answer: str, world: Path) -> None:
    header, *rows = boxed(answer)
    with duckdb.connect(str(world / "data" / "home" / "results.duckdb"), read_only=True) as results:
        found = results.execute(query)
        assert [column[0] for column in found.description or []] == header
        given = [dict(zip(header, row, strict=True)) for row in found.fetchall()]
    # Of fewer people fewer values are reliable.
    assert 0 < len(given) <= len(rows)
    for row in given:
        for shown in (dict(zip(header, cells, strict=True)) for cells in rows):
            assert shown[header[0]] != row[header[0]] or agrees(shown, row), row


@pytest.mark.parametrize("block", SHOWN, ids=ids)
def test_answers_of_queries(block: Block, world: Path) -> None:
    """The columns that a document shows, and numbers that noise allows."""
    compare(block.text, block.answer or "", world)


def test_the_session_of_the_readme(world: Path) -> None:
    programs = [block.text for block in BLOCKS if block.document == "README.md" and block.language == "python"]
    (session,) = [text for text in programs if ">>>" in text]
    *_, last = doctest.DocTestParser().get_examples(session)
    (query,) = re.findall(r'"""(.*?)"""', last.source, re.DOTALL)
    compare(query, last.want, world)
