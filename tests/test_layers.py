"""The layers: the mathematics knows neither orchestration nor databases nor files; nobody imports upwards."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import get_args

import pytest

from pldp.flows.pipeline import everybody
from pldp.questions.registry import AnyQuestion
from pldp.questions.specs import SPECS
from tests.people import opened, world

ROOT = Path(__file__).parents[1]
LINKS = ("tasks", "flows", "expectations", "sql", "papers")
"""Folders of the repository that pldp/ links to: installed they are pldp.tasks and so on."""
BANNED = {"prefect", "duckdb", "great_expectations", "polars", "pandas", "pyarrow", "yaml", "typer", "rich", "altair"}
FILES = {"pathlib", "shutil", "tempfile", "io", "glob", "csv", "gzip", "sqlite3", "pickle", "subprocess", "socket"}
DOOR, COMMAND = ROOT / "pldp" / "__init__.py", ROOT / "pldp" / "__main__.py"
"""What `import pldp` and the command give: the pipeline, loaded when it is used first."""
CLIENT = sorted((ROOT / "pldp" / "client").rglob("*.py"))
"""What runs on a person's own device."""
PURE = sorted(
    path
    for path in (ROOT / "pldp").rglob("*.py")
    if path.relative_to(ROOT).parts[1] not in LINKS and path not in {DOOR, COMMAND, *CLIENT}
)


def modules(path: Path) -> Iterator[str]:
    """Every module a file imports, wherever in it; of `from a import b` both a and a.b, which may be one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


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


@pytest.mark.parametrize("path", CLIENT, ids=lambda path: path.name)
def test_the_client_needs_nothing_but_the_standard_library(path: Path) -> None:
    """It installs with the package alone, and can be read, copied and audited by itself."""
    foreign = {name for name in modules(path) if name.split(".")[0] not in sys.stdlib_module_names}
    assert {name for name in foreign if not name.startswith("pldp.client")} == set()
    assert "random" not in top(path)


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
        ("expectations", {"tasks", "flows", "papers", "bench", "tests"}),
        ("flows", {"bench", "tests"}),
        ("sql", {*LINKS, "bench", "tests"}),
    ],
)
def test_nobody_imports_upwards(folder: str, above: set[str]) -> None:
    """Tasks run the gates, so what runs them knows no task: the two are no cycle."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        assert top(path).isdisjoint(above), path


def library() -> dict[str, set[str]]:
    """Which modules of the mathematics each of them imports, for types or inside functions too."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in PURE}
    return {name: {module for module in modules(path) if module in names} - {name} for name, path in names.items()}


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """What stands on a cycle."""

    def reached(start: str) -> set[str]:
        seen, waiting = set[str](), [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    return sorted(name for name in graph if name in reached(name))


def test_no_folder_of_the_library_imports_one_that_imports_it() -> None:
    folders: dict[str, set[str]] = {}
    for name, imported in library().items():
        folder = name.split(".")[1] if "." in name else name
        folders.setdefault(folder, set()).update({other.split(".")[1] for other in imported if "." in other} - {folder})
    assert len(folders) > 8
    assert cycles(folders) == []


def test_only_inside_a_kind_do_modules_name_each_other() -> None:
    """Functions of a kind take its question, for whose methods they stand: a cycle of types in one folder."""
    kinds = {f"pldp.questions.{kind}" for kind in ("histograms", "numbers", "items", "aggregates")}
    inside = {name for name in library() if ".".join(name.split(".")[:3]) in kinds}
    assert set(cycles(library())) <= inside
    between = {
        name: {other for other in imported if not (name in inside and other.split(".")[:3] == name.split(".")[:3])}
        for name, imported in library().items()
    }
    assert cycles(between) == []


def test_items_aggregates_and_numbers_know_no_other_kind() -> None:
    """What they share with a table of people stands in pldp/spec; only the table's own kinds name each other."""
    named: dict[str, set[str]] = {kind: set() for kind in ("people", "histograms", "numbers", "items", "aggregates")}
    for name, imported in library().items():
        here = name.split(".")[2:3]
        if name.startswith("pldp.questions.") and here[0] in named:
            there = {other.split(".")[2] for other in imported if other.startswith("pldp.questions.")}
            named[here[0]] |= there & set(named) - set(here)
    assert named.pop("histograms") == {"numbers", "people"}
    assert named.pop("people") == {"histograms", "numbers"}
    assert not any(named.values()), named


def test_what_counts_as_a_cycle() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_only_the_command_line_knows_of_the_papers() -> None:
    """Reproductions run on the pipeline; that one command of it starts them is the only way back."""
    assert [path.name for path in sorted((ROOT / "flows").rglob("*.py")) if "papers" in top(path)] == ["cli.py"]


def test_the_front_door_loads_nothing_until_it_is_used() -> None:
    """Types aside, `import pldp` imports nothing of the pipeline outside `__getattr__`."""
    tree = ast.parse(DOOR.read_text())
    at_once = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {getattr(node, "module", None) for node in at_once} == {"__future__", "typing"}


def uses(path: Path, names: set[str]) -> Iterator[tuple[str, str]]:
    """Which of these names are called or handed on in a file, each with the function around it."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id in names:
                    yield function.name, node.id


def test_right_of_the_trust_boundary_nothing_reads_the_vault() -> None:
    """Only ingest, what names or deletes it, and what the operator is told of it know where the vault is; only drawing
    and evaluations read it."""
    holders, readers, evaluations = set(), set(), set()
    for path in sorted([*(ROOT / "tasks").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "vault" and ast.unparse(node.value) in RUNS:
                holders.add(name)
        readers |= {(name, function) for function, _ in uses(path, {"read_partition"})}
        evaluations |= {name for function, _ in uses(path, {"everybody"}) if function != "everybody"}
    told = {f"tasks/{module}.py" for module in ("ingest", "leftout", "pieces", "run", "shares", "vaults")}
    assert holders == {*told, "flows/cluster.py"}
    # `people` stands inside `everybody`, which refuses anything but an evaluation.
    assert readers == {
        ("tasks/perturb.py", "draw_partition"),
        ("flows/pipeline.py", "everybody"),
        ("flows/pipeline.py", "people"),
    }
    assert evaluations == {"flows/evaluate.py"}


RUNS = ("run", "self.run")


def test_the_truth_is_for_evaluations(tmp_path: Path) -> None:
    """The function that reads everybody's rows refuses a release before it gives anything."""
    spec = world(tmp_path)
    run, _ = opened(spec, tmp_path / "home")
    with pytest.raises(ValueError, match="a release never reads the truth"):
        everybody(run, None)  # type: ignore[arg-type]


def test_great_expectations_is_imported_only_where_gates_run() -> None:
    holders = {
        path.relative_to(ROOT).as_posix()
        for folder in ("pldp", "tasks", "flows", "expectations")
        for path in (ROOT / folder).rglob("*.py")
        if "great_expectations" in top(path)
    }
    assert holders == {"expectations/runner.py"}


KINDS = {get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(AnyQuestion)[0])} | {*SPECS}
KIND_CLASSES = {
    *(model.__name__ for model in get_args(get_args(AnyQuestion)[0])),
    *(kind.model.__name__ for kind in SPECS.values()),
    *("Category", "Binned", "Crosstab", "Number", "Cells"),
    *("NumbersPlan", "ItemsPlan", "AggregatesPlan", "HistogramsResult", "NumbersResult", "ItemsResult"),
}
"""Questions, specs and the attributes of a spec: what a kind answers for by a method of its own."""


def kind_tests(source: str) -> list[int]:
    """Lines where the code asks which kind of question, spec or attribute it has before it."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                found = bool(_names(classes) & KIND_CLASSES)
            case ast.Compare():
                # `"aggregates" in tables` looks for a table, whose name may be that of a kind.
                looks_up = isinstance(node.left, ast.Constant) and isinstance(node.ops[0], ast.In | ast.NotIn)
                found = not looks_up and _compares_kinds([node.left, *node.comparators])
            case ast.MatchClass(cls=cls):
                found = bool(_names(cls) & KIND_CLASSES)
            case ast.MatchValue(value=ast.Constant(value=value)):
                found = value in KINDS
            case _:
                found = False
        if found:
            lines.append(getattr(node, "lineno", 0))
    return sorted(lines)


def _names(node: ast.AST) -> set[str]:
    return {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)
    }


def _compares_kinds(sides: list[ast.expr]) -> bool:
    texts = {
        n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }
    by_name = any(
        (isinstance(side, ast.Name) and side.id == "kind") or (isinstance(side, ast.Attribute) and side.attr == "kind")
        for side in sides
    )
    # `reference.kind == "truth"` is about another kind of thing.
    return bool(texts & KINDS) or (by_name and not texts)


TYPE_TESTS = {
    "flows/sample.py": 2,  # the sample's people are made from the categories of its own spec
    "tasks/recycle.py": 1,
}
"""What is left of asking for the kind, by file. Never longer: a new kind is a folder and a line in the registry."""
LARGE_MODULES: dict[str, int] = {}
"""Lines of the modules above MOST_LINES. Never longer."""
LONG_FUNCTIONS: dict[str, int] = {}
MOST_LINES, MOST_IN_FUNCTION = 250, 60
PRODUCT = sorted(
    (
        *PURE,
        *CLIENT,
        *(path for folder in ("tasks", "flows", "expectations", "sql") for path in (ROOT / folder).rglob("*.py")),
    )
)


def only_shrinks(found: dict[str, int], listed: dict[str, int]) -> None:
    grown = {name: size for name, size in found.items() if size > listed.get(name, 0)}
    assert not grown, f"larger than the list of exceptions allows: {grown}"
    settled = [name for name in listed if name not in found]
    assert not settled, f"no exceptions any more, take them off the list: {settled}"


def test_flows_tasks_and_expectations_know_no_kind() -> None:
    pipeline = [path for folder in ("flows", "tasks", "expectations") for path in sorted((ROOT / folder).rglob("*.py"))]
    counted = {path.relative_to(ROOT).as_posix(): len(kind_tests(path.read_text())) for path in pipeline}
    only_shrinks({name: number for name, number in counted.items() if number}, TYPE_TESTS)


def test_modules_are_short() -> None:
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in PRODUCT}
    only_shrinks({name: number for name, number in lines.items() if number > MOST_LINES}, LARGE_MODULES)


def test_functions_are_short() -> None:
    lengths = {
        f"{path.relative_to(ROOT).as_posix()}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    only_shrinks({name: number for name, number in lengths.items() if number > MOST_IN_FUNCTION}, LONG_FUNCTIONS)


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("isinstance(question, Histograms)", True),
        ("isinstance(spec, (str, questions.ItemsSpec))", True),
        ("isinstance(attribute, Number | Binned)", True),
        ("if question.kind == 'items': pass", True),
        ("if kind in ('items', 'aggregates'): pass", True),
        ("if kind == PEOPLE: pass", True),
        ("match question:\n    case Numbers(): pass", True),
        ("match kind:\n    case 'items': pass", True),
        ("isinstance(value, str)", False),
        ("if reference.kind == 'truth': pass", False),
        ("by_kind[question.kind] = 1", False),
        ("if 'aggregates' in tables: pass", False),
    ],
)
def test_what_counts_as_asking_for_the_kind(source: str, asks: bool) -> None:
    assert bool(kind_tests(source)) == asks


def test_a_list_of_exceptions_can_only_shrink() -> None:
    only_shrinks({"a": 2}, {"a": 3})
    for found, listed in (({"a": 4}, {"a": 3}), ({"b": 1}, {}), ({}, {"a": 3})):
        with pytest.raises(AssertionError, match="exceptions"):
            only_shrinks(found, listed)


def test_this_test_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "impure.py"
    path.write_text("def f():\n    from duckdb import connect\n    import polars.testing\n")
    assert top(path) == {"duckdb", "polars"}


VAGUE = {
    "found",
    "own",
    "told",
    "given",
    "way",
    "ways",
    "wish",
    "Found",
    "Own",
    "Told",
    "Given",
    "Way",
    "Wish",
    "Takers",
}
"""Names that say nothing of what they hold."""


def bindings(source: str) -> Iterator[str]:
    """Every name that is assigned, looped over, matched, taken as an argument or defined as a class or function."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ClassDef(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def unexplained(source: str, inherited: Collection[str] = ()) -> list[str]:
    """Public functions, and public methods of classes that others implement, without a docstring of 12 characters. What
    a class refines of another interface, that one may have explained (`inherited`)."""
    names, roots = [], _roots(source)
    for node in ast.parse(source).body:
        refines = isinstance(node, ast.ClassDef) and any(_names(base) - roots for base in node.bases)
        for member in [node] if not isinstance(node, ast.ClassDef) else node.body if _is_interface(node, roots) else []:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
                said = len(ast.get_docstring(member) or "") >= SHORTEST_DOCSTRING
                if not said and not (refines and member.name in inherited):
                    names.append(member.name)
    return names


def explained() -> set[str]:
    """The methods that any interface explains."""
    members = [
        member
        for source in (path.read_text() for path in PRODUCT)
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and _is_interface(node, _roots(source))
        for member in node.body
    ]
    return {member.name for member in members if isinstance(member, ast.FunctionDef) and ast.get_docstring(member)}


def _roots(source: str) -> set[str]:
    """The names in a module of what has no method and makes a class an interface."""
    return {"ABC"} | ({"Protocol"} if re.search(r"from typing import .*\bProtocol\b", source) else set())


def _is_interface(node: ast.ClassDef, roots: set[str]) -> bool:
    """A protocol, an abstract class, or one with an abstract method; what begins with _ is nobody else's."""
    abstract = any("abstractmethod" in _names(decorator) for part in node.body for decorator in _decorators(part))
    bases = {name for base in node.bases for name in _names(base)}
    return not node.name.startswith("_") and (abstract or bool(bases & roots))


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


SHORTEST_DOCSTRING = 12


def test_public_functions_say_what_goes_in_and_out() -> None:
    """Whoever implements a method need not say it again: the interface does."""
    inherited = explained()
    silent = {path.relative_to(ROOT).as_posix(): unexplained(path.read_text(), inherited) for path in PRODUCT}
    assert not {path: names for path, names in silent.items() if names}


def test_what_counts_as_unexplained() -> None:
    bare, said = "def f(): pass", 'def g():\n    """What goes in and out."""'
    methods = "    def h(self): ...\n    def _i(self): ...\n"
    assert unexplained(f"{bare}\n{said}\ndef _private(): pass\ndef short():\n    'Short.'") == ["f", "short"]
    typing = "from typing import Protocol\n"
    assert unexplained(f"{typing}class A(Protocol):\n{methods}class _B(ABC):\n{methods}class C:\n{methods}") == ["h"]
    refined = "class D(Base):\n    @property\n    @abstractmethod\n    def x(self): ...\n    def y(self): ..."
    assert unexplained(refined, {"y"}) == ["x"]


def test_names_say_what_they_hold() -> None:
    everything = [*PRODUCT, *(path for folder in ("papers", "bench") for path in sorted((ROOT / folder).rglob("*.py")))]
    everything = [path for path in everything if ".venvs" not in path.parts]  # peers' libraries are not ours
    vague = {path.relative_to(ROOT).as_posix(): VAGUE.intersection(bindings(path.read_text())) for path in everything}
    assert not {path: names for path, names in vague.items() if names}, "name what it holds"


def test_what_counts_as_a_binding() -> None:
    source = "class Found: pass\ndef way(told):\n    for own in told:\n        found = own\n    return found"
    assert sorted(bindings(source)) == ["Found", "found", "own", "told", "way"]
