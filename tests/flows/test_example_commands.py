"""Every example spec × every command: on the data as they are published where they lie beside, few of many people."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pytest
import typer
import yaml

from pldp.flows.cli import app
from pldp.flows.sample import write_sample
from tests.flows.conftest import DATA, ROOT, Pldp

pytestmark = pytest.mark.usefixtures("server")

SAMPLE_USERS, MSNBC_USERS, RATERS = 20_000, 20_000, 400


def statement(document: str, making: str) -> str:
    """The SQL of a document that makes an example's file."""
    blocks = (ROOT / "docs" / document).read_text().split("```sql\n")[1:]
    return next(block for block in (text.split("```", 1)[0] for text in blocks) if f"TO '{making}'" in block)


def published(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside the repository")
    return DATA / name


def made(folder: Path, document: str, making: str, reads: str, source: Path) -> Path:
    with duckdb.connect() as connection:
        text = statement(document, making).replace(f"'{reads}'", f"'{source}'")
        connection.execute(text.replace(f"'{making}'", f"'{folder / making}'"))
    return folder / making


def sample(folder: Path) -> Path:
    return write_sample(folder, SAMPLE_USERS)[1]


def adult(folder: Path) -> Path:
    return published("adult.data.gz")


def census(folder: Path) -> Path:
    return published("acs2017_county_data.csv.gz")


def basket(folder: Path) -> Path:
    return made(folder, "items.md", "basket.csv", "basket.txt.gz", published("basket.txt.gz"))


def msnbc(folder: Path) -> Path:
    with gzip.open(published("msnbc990928.seq.gz"), "rt") as whole:
        few = folder / "few.seq.gz"
        few.write_bytes(gzip.compress("".join(itertools.islice(whole, MSNBC_USERS)).encode()))
    return made(folder, "items.md", "msnbc.parquet", "msnbc990928.seq.gz", few)


def movielens(folder: Path) -> Path:
    (folder / "movies.dat").write_bytes(gzip.decompress(published("ml-1m_movies.dat.gz").read_bytes()))
    made(folder, "aggregates.md", "movies.csv", "movies.dat", folder / "movies.dat")
    ratings = pl.read_parquet(published("ml-1m_ratings.parquet")).filter(pl.col("user_id").cast(pl.Int64) <= RATERS)
    ratings.write_parquet(folder / "ratings.parquet")
    return folder / "ratings.parquet"


def movielens_people(folder: Path) -> None:
    """Its tables lie beside the spec. Everybody takes part; those who rated nothing that is read hold the empty set."""
    movielens(folder).rename(folder / "ml-1m_ratings.parquet")
    (folder / "ml-1m_users.dat.gz").write_bytes(published("ml-1m_users.dat.gz").read_bytes())


SOURCES: dict[str, Callable[[Path], Path | None]] = {
    "adult": adult,
    "adult-hidden": adult,
    "basket": basket,
    "census": census,
    "crosstab": sample,
    "methods": sample,
    "movielens": movielens,
    "movielens-people": movielens_people,
    "msnbc-items": msnbc,
    "sample": sample,
}
SHOWN_BY_LEVEL = frozenset({"adult", "crosstab", "methods", "movielens-people", "sample"})


@dataclass(frozen=True)
class Example:
    """An example spec with its source, and a home in which it was released."""

    name: str
    spec: Path
    source: Path | None
    """What takes the place of the one table that the spec names."""
    home: Path

    @property
    def release(self) -> str:
        return str(yaml.safe_load(self.spec.read_text())["name"])


@pytest.fixture(scope="module", params=sorted(SOURCES))
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    folder = tmp_path_factory.mktemp(request.param)
    source = SOURCES[request.param](folder)
    for path in (ROOT / "data").glob("*.*"):
        if path.suffix in {".yaml", ".csv"}:
            (folder / path.name).write_bytes(path.read_bytes())
    return Example(request.param, folder / f"{request.param}.yaml", source, folder / "home")


@dataclass(frozen=True)
class Command:
    words: Callable[[Example, Path], tuple[object, ...]]
    says: str
    """In what it prints, where it applies."""
    serves: frozenset[str] = frozenset(SOURCES)
    refused: str = ""
    """Why it does not apply to the others, as a pattern."""


def of_release(name: str, *more: object) -> Callable[[Example, Path], tuple[object, ...]]:
    return lambda example, folder: (name, example.release, *more, "--home", example.home)


def of_source(name: str, *more: object) -> Callable[[Example, Path], tuple[object, ...]]:
    def words(example: Example, folder: Path) -> tuple[object, ...]:
        return name, example.spec, *(() if example.source is None else ("--source", example.source)), *more

    return words


def group(example: Example, folder: Path) -> tuple[object, ...]:
    """The first two values of the first attribute."""
    with duckdb.connect(str(example.home / "results.duckdb"), read_only=True) as results:
        rows = results.execute("SELECT attribute, value FROM latest_histograms ORDER BY ALL").fetchall()
    asked = [value for attribute, value in rows if attribute == rows[0][0]][:2] if rows else ["a", "b"]
    return "group", example.release, rows[0][0] if rows else "none", *asked, "--home", example.home


COMMANDS = {
    "plan": Command(lambda example, folder: ("plan", example.spec), "ε"),
    "check": Command(of_source("check"), "a release would read this"),
    "release": Command(
        lambda example, folder: of_source("release", "--home", example.home)(example, folder), "already"
    ),
    "evaluate": Command(
        lambda example, folder: (
            *of_source("evaluate", "--repeat", 2, "--seed", 2)(example, folder),
            *("--home", folder / "home"),
        ),
        "never published",
    ),
    "serve": Command(
        lambda example, folder: ("serve", example.spec, "--home", folder / "home"),
        "",
        frozenset(),
        "schedule",
    ),
    "validate": Command(of_release("validate"), "✓"),
    "show": Command(of_release("show"), "ε"),
    "releases": Command(lambda example, folder: ("releases", "--home", example.home), "published"),
    "query": Command(
        lambda example, folder: ("query", "SELECT gate, passed FROM validations", "--home", example.home),
        "passed",
    ),
    "group": Command(group, "±", SHOWN_BY_LEVEL, "its levels are hidden or its kind is another"),
    "export": Command(
        lambda example, folder: ("export", example.release, folder / "out", "--home", example.home), "out"
    ),
    "page": Command(of_release("page"), ".html"),
    # No example collects scores; tests/flows/test_items.py does.
    "levels": Command(of_release("levels", "--of", 3), "", frozenset(), "no means|must all have the same bounds"),
    "recycle": Command(
        lambda example, folder: ("recycle", example.release, "0.1", folder / "out", "--home", example.home),
        "keeps ε = 0.1 or less",
        SHOWN_BY_LEVEL,
        "cannot be recycled",
    ),
    "reports": Command(
        lambda example, folder: (
            *("reports", example.release, folder / "out", "--provider", "archive", "--home", example.home),
        ),
        "out",
        frozenset({"movielens", "movielens-people"}),
        "has no providers",
    ),
}
ELSEWHERE = {"sample", "reproduce", "collect"}
"""Commands that take no spec of a release, or have people's side for themselves; each has tests of its own."""


def test_every_example_and_every_command_is_gone_through() -> None:
    assert set(SOURCES) == {path.stem for path in (ROOT / "data").glob("*.yaml")}
    found = typer.main.get_command(app)
    assert set(COMMANDS) | ELSEWHERE == set(found.commands)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def released() -> set[str]:
    return set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name: str, example: Example, released: set[str], pldp: Pldp, tmp_path: Path) -> None:
    command = COMMANDS[name]
    if example.name not in released:
        said = pldp(*of_source("release", "--home", example.home)(example, tmp_path))
        assert said.code == 0, said.err
        released.add(example.name)
    said = pldp(*command.words(example, tmp_path))
    if example.name in command.serves:
        assert said.code == 0, said.out + said.err
        assert command.says in said.out + said.err
    else:
        assert said.code == 2, said.out + said.err
        assert "Error:" in said.err
        assert command.refused
        assert re.search(command.refused, said.err), said.err
