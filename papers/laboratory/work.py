"""One piece of a paper's experiments, as a worker process runs it; and what its result depends on."""

from __future__ import annotations

import ast
import hashlib
import time
from functools import cache
from importlib.resources import files
from pathlib import Path

from pldp.papers.laboratory.datasets import load
from pldp.papers.model import Point, Unit
from pldp.papers.registry import module_of, paper

WORDS = (".notes", ".reasons")


def work(unit: Unit, data: Path) -> tuple[list[Point], float]:
    """Its points, and the seconds they took; a data set is read once a process."""
    arrays = load(unit.dataset, data)
    started = time.perf_counter()
    points = paper(unit.paper).run(unit, arrays)
    return points, time.perf_counter() - started


@cache
def code_version(name: str) -> str:
    """Hash of a paper's module and of every module of the mathematics that it imports, directly or not.

    Words about results, in modules named so, are no part of what computes them.
    """
    seen: dict[str, bytes] = {}
    waiting = [module_of(name)]
    while waiting:
        module = waiting.pop()
        source = None if module in seen or module.endswith(WORDS) else _source(module)
        if source is not None:
            seen[module] = source
            waiting += _imports(source)
    digest = hashlib.sha256()
    for module in sorted(seen):
        digest.update(module.encode() + b"\0" + seen[module] + b"\0")
    return digest.hexdigest()[:24]


def _source(module: str) -> bytes | None:
    parts = module.split(".")
    if parts[0] != "pldp":
        return None
    folder = files("pldp").joinpath(*parts[1:-1]) if len(parts) > 1 else files("pldp")
    for path in (folder / f"{parts[-1]}.py", folder / parts[-1] / "__init__.py"):
        if path.is_file():
            return path.read_bytes()
    return None


def _imports(source: bytes) -> list[str]:
    """`from package import name` may mean a module of that name."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
