"""The layers: the mathematics knows neither orchestration nor databases nor files; nobody imports upwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKS = ("tasks", "flows", "expectations", "sql", "papers")
"""Folders of the repository that pldp/ links to: installed they are pldp.tasks and so on."""
BANNED = {"prefect", "duckdb", "great_expectations", "polars", "pandas", "pyarrow", "yaml", "typer", "rich", "altair"}
FILES = {"pathlib", "shutil", "tempfile", "io", "glob", "csv", "gzip", "sqlite3", "pickle", "subprocess", "socket"}
PURE = sorted(path for path in (ROOT / "pldp").rglob("*.py") if path.relative_to(ROOT).parts[1] not in LINKS)


def modules(path: Path) -> Iterator[str]:
    """Every module a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def top(path: Path) -> set[str]:
    """The packages a file imports; a folder that pldp/ links to counts as one."""
    return {
        parts[1] if parts[0] == "pldp" and len(parts) > 1 and parts[1] in LINKS else parts[0]
        for parts in (module.split(".") for module in modules(path))
    }


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.name)
def test_the_mathematics_is_pure(path: Path) -> None:
    found = top(path)
    assert found.isdisjoint(BANNED)
    assert found.isdisjoint(FILES)
    assert found.isdisjoint({*LINKS, "bench", "tests"})
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert "open" not in {call.id for call in calls if isinstance(call, ast.Name)}


def test_a_release_draws_its_page_without_another_engine() -> None:
    """Altair and its renderer take seconds to load; reproductions of papers may use them."""
    pipeline = [path for folder in ("flows", "tasks", "expectations") for path in (ROOT / folder).rglob("*.py")]
    assert len(pipeline) > 50
    assert [path.name for path in (*pipeline, *PURE) if top(path) & {"altair", "vl_convert"}] == []


def test_the_kernel_is_asked_for_randomness_in_one_place() -> None:
    """`os` in the mathematics is for the kernel's randomness only."""
    assert [path.name for path in PURE if "os" in top(path)] == ["randomness.py"]


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.name)
def test_no_global_randomness(path: Path) -> None:
    assert "random" not in top(path)
    attributes = {
        ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
    }
    allowed = {"np.random.Generator", "np.random.default_rng", "np.random"}
    assert {name for name in attributes if name.startswith("np.random")} <= allowed


@pytest.mark.parametrize(
    ("folder", "above"),
    [
        ("papers", {"bench", "tests"}),
        ("tasks", {"flows", "papers", "bench", "tests"}),
        ("expectations", {"flows", "papers", "bench", "tests"}),
        ("flows", {"bench", "tests"}),
    ],
)
def test_nobody_imports_upwards(folder: str, above: set[str]) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        assert top(path).isdisjoint(above), path


def test_right_of_the_trust_boundary_nothing_reads_the_vault() -> None:
    """Only ingest, truth, what names or deletes it, and what the operator is told of it know where the vault is."""
    holders, readers = set(), set()
    for path in sorted([*(ROOT / "tasks").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "vault" and ast.unparse(node.value) == "run":
                holders.add(path.name)
            if isinstance(node, ast.Name) and node.id in ("read_partition", "true_rows"):
                readers.add(path.name)
    assert holders == {"ingest.py", "leftout.py", "truth.py", "run.py", "vaults.py"}
    assert readers == {"perturb.py", "perturb_numbers.py", "truth.py"}


def test_great_expectations_is_imported_only_where_gates_run() -> None:
    holders = {
        path.relative_to(ROOT).as_posix()
        for folder in ("pldp", "tasks", "flows", "expectations")
        for path in (ROOT / folder).rglob("*.py")
        if "great_expectations" in top(path)
    }
    names = ("gate", "gates", "gates_aggregates", "gates_items", "hidden_gates", "number_gates", "runner", "shared")
    assert holders == {f"expectations/{name}.py" for name in names}


def test_this_test_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "impure.py"
    path.write_text("def f():\n    from duckdb import connect\n    import polars.testing\n")
    assert top(path) == {"duckdb", "polars"}
