"""Tables of what people hold, from every kind of source: the same vault as from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from pldp.errors import SpecError
from pldp.tasks.check import check
from pldp.tasks.ingest import ingest
from pldp.tasks.specfile import load_spec
from tests.baskets import make_rows, make_users, opened, world, write_spec

N = 400


def sizes(spec: Path, home: Path) -> list[tuple[object, ...]]:
    """How many users hold how many items at which level: what the vault's partitions hold, whatever their order."""
    run, file = opened(spec, home)
    assert check(file).problems == []
    assert ingest.fn(run, file).n_users == N
    rows = pl.read_parquet(run.vault.with_name("partitions"))
    return sorted(map(str, rows.rows()))  # type: ignore[arg-type]


def folder_of_files(folder: Path) -> dict[str, Any]:
    (folder / "rows").mkdir()
    (folder / "users").mkdir()
    rows, users = make_rows(N), make_users(N)
    for i in range(3):
        rows.gather_every(3, i).write_parquet(folder / "rows" / f"{i}.parquet")
        users.gather_every(3, i).write_csv(folder / "users" / f"{i}.csv")
    return {"source": {"path": "rows/*.parquet"}, "users": {"path": "users", "level": "level"}}


def two_tables_of_one_file(folder: Path) -> dict[str, Any]:
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        database.from_arrow(make_rows(N).to_arrow()).create("bought")
        database.from_arrow(make_users(N).to_arrow()).create("users")
    file = {"path": "shop.duckdb", "format": "duckdb"}
    return {"source": {**file, "table": "bought"}, "users": {**file, "table": "users", "level": "level"}}


@pytest.mark.parametrize("furnish", [folder_of_files, two_tables_of_one_file])
def test_the_vault_is_that_of_one_file(furnish: Any, tmp_path: Path) -> None:
    whole = sizes(world(tmp_path, N), tmp_path / "home")
    spec = write_spec(tmp_path, "other.yaml", **furnish(tmp_path))
    assert sizes(spec, tmp_path / "home") == whole


def test_items_may_be_listed_in_a_table(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute("CREATE TABLE sold AS SELECT unnest(['bread', 'milk', 'beer', 'wine', 'fish', 'tea']) AS item")
    listed = {"path": "shop.duckdb", "format": "duckdb", "table": "sold"}
    assert sizes(world(tmp_path, N, items=listed), tmp_path / "home")


def test_a_file_of_users_among_those_of_the_source(tmp_path: Path) -> None:
    """A column that holds items would serve as the choice."""
    (tmp_path / "rows").mkdir()
    make_rows(N).write_csv(tmp_path / "rows" / "a.csv")
    users = {"path": "rows/a.csv", "level": "item"}
    with pytest.raises(SpecError, match=r"source\.item.*users\.level|users\.level.*source\.item"):
        load_spec(world(tmp_path, N, source={"path": "rows"}, users=users))
