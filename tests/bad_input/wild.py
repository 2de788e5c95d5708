"""Random specs and sources, and what must hold for each. Hypothesis and the long fuzz draw from the same ones.

A check returns what became of the input; anything but a result or an error of ours is an AssertionError.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import time
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from pldp.channels.exact import within
from pldp.errors import PldpError, SourceError, SpecError
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest
from pldp.tasks.query import connect
from pldp.tasks.run import open_run
from pldp.tasks.specfile import load_spec
from tests.people import SPEC, write_spec

MARK = "zqMARKqz"
"""Stands in the data and in no message."""
PATIENCE = 10.0
"""Seconds that no small input takes, even on a busy machine."""

WHOLE: dict[str, Any] = {
    **SPEC,
    "source": {"path": "p.csv", "user_id": "id", "format": "csv", "csv": {"delimiter": ";", "trim": False}},
    "attributes": [
        {"name": "job", "values": ["a", "b", "c"], "missing": "c", "assumed": ["1/2", 0.25, 0.25]},
        {"name": "sex", "column": "s", "values": ["f", "m"]},
        {"name": "both", "kind": "crosstab", "of": ["job", "sex"]},
    ],
    "budget": {"total": 4, "allocation": {"job": "1/2", "sex": 0.25, "both": 0.25}},
    "levels": {
        "dependence": 1,
        "column": {"job": "x", "sex": "y"},
        "choices": {"high": "1/3", "low": 1},
        "missing": "low",
    },
    "combination": {"method": "op", "reference": {"kind": "public", "path": "r.csv"}, "alpha": 0.01},
    "intervals": {"confidence": 0.9},
    "gates": {"minimum_users": 10},
    "retention": {"vault": "keep"},
    "schedule": {"cron": "0 3 * * *", "timezone": "Europe/Rome"},
}
"""Every section of a spec."""

_TEXTS = (
    "", " ", "a", "job", "é", "名", "\U0001f600", "\x1b[31m", "\n", "\t", "\0", "\x7f", "\u2028", "\ud800", "'", '"',
    "[/bold]", r"\[/x]", "../..", "/", "a" * 300, "x" * 20_000, "nan", "inf", "1e9_9_9_9_9", "1e999", "1e-999", "1/0",
    "1/3", "2/6", "1e٩٩٩٩", "0x10", "-1", "--", "{columns}", "$key", "'; DROP TABLE people; --", "* * * * *",
    "0 0 31 2 *", "*/0 * * * *", "Europe/../UTC", "category", "crosstab", "op", "truth",
)  # fmt: skip
_NUMBERS = (
    0, -1, 1, 2, 5, 0.5, -0.5, 1e-9, 1e-300, 5e-324, 1e308, 1e3, 1000.1, float("nan"), float("inf"), float("-inf"),
    10**18, 2**63, 2**64, 10**30, 10**300, 10**4000, -(10**30),
)  # fmt: skip
_SNIPPETS = (
    "&a ", "*a", "<<: *a", "\t", "!!python/name:os.system ", "!!python/object/apply:os.getcwd []", "!!int ", "!!bool ",
    "!!float ", "!!binary ", "!!timestamp ", "!!set ", "!!omap ", "!x ", "%YAML 9.9", "---", "...", "? ", ": ", "- ",
    "[", "]", "{", "}", "'", '"', "|", ">", "#", "@", "`", "%", "\\", '"\\0"', '"\\ud800"', "\ufeff", "\x00", "\x85",
    "name: x\n", "budget: {total: 9}\n", "2024-99-99", "1:30", "007", "0x" + "f" * 4000, "9" * 5000, "yes", "~", "=",
    "<<", "[" * 200, "{a: " * 100, "- " * 500, "\r", "\n\n", "*" * 50, "&x [*x]", "&y {k: *y}",
)  # fmt: skip
_LEFT_IN = re.compile(r" at 0x[0-9a-f]{6,}|function-|Traceback|pydantic|<class|zqMARKqz")


def atom(rng: Random, depth: int = 0) -> Any:
    kind = rng.randrange(7 if depth < 3 else 4)
    if kind == 0:
        return rng.choice(_TEXTS)
    if kind == 1:
        return rng.choice(_NUMBERS)
    if kind == 2:
        return rng.choice((True, False, None, date(2024, 1, 2), datetime(2024, 1, 2, 3, tzinfo=UTC), b"\xff"))
    if kind == 3:
        return "".join(chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) for _ in range(rng.randrange(12)))
    if kind == 4:
        return [atom(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 30)))]
    if kind == 5:
        return {_key(rng): atom(rng, depth + 1) for _ in range(rng.randrange(4))}
    nested: Any = "x"
    for _ in range(rng.choice((5, 40))):
        nested = [nested] if rng.random() < 0.5 else {"k": nested}
    return nested


def _key(rng: Random) -> Any:
    return rng.choice((rng.choice(_TEXTS), "values", "name", "kind", 1, None, True, 2.5))


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every container of a spec with each of its keys."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in _places(node[key])]


def mutated(rng: Random) -> dict[str, Any]:
    """A spec with one to four things wrong with it, or only odd."""
    spec = deepcopy(rng.choice((SPEC, WHOLE)))
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = _places(spec)
        if not places:
            break
        holder, key = rng.choice(places)
        act = rng.randrange(5)
        if act == 0:
            del holder[key]
        elif act == 1 and isinstance(holder, dict):
            value = holder.pop(key)
            holder[str(key)[:-1] + rng.choice(("", "x", "é")) if rng.random() < 0.7 else _key(rng)] = value
        elif act == 2 and isinstance(holder, dict):
            holder[_key(rng)] = atom(rng)
        elif act == 3 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]) if rng.random() < 0.5 else atom(rng))
        else:
            holder[key] = atom(rng)
    return spec


def _dumped(content: Any, **options: Any) -> str:
    """As safe_dump does it, in a fifth of the time where the library is compiled and there is no half a character."""
    try:
        fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        text: str = yaml.dump(content, Dumper=fast, sort_keys=False, **options)
    except UnicodeEncodeError:
        text = yaml.safe_dump(content, sort_keys=False, **options)
    return text


def spec_bytes(rng: Random) -> bytes:
    """A spec file: a mutated spec, or one whose text was tampered with."""
    if rng.random() < 0.6:
        text = _dumped(mutated(rng))
    else:
        text = _dumped(rng.choice((SPEC, WHOLE)), default_flow_style=rng.choice((True, False)))
        for _ in range(rng.randrange(1, 5)):
            at, length = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 5))
            text = text[:at] + rng.choice(_SNIPPETS) + text[at + length :]
    content = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        at = rng.randrange(len(content) + 1)
        content = content[:at] + rng.randbytes(rng.randrange(1, 4)) + content[at:]
    return content


def check_spec(path: Path) -> str:
    """A spec is read, with an identity and a plan, or refused in one paragraph."""
    start = time.monotonic()
    try:
        file = load_spec(path)
        assert len(file.identity) == len(file.plan.sha256) == 64
        assert file.source.is_absolute()
        assert all(within(ratio, bound) for question in file.plan.questions for ratio, bound in question.spends())
        outcome = "read"
    except SpecError as error:
        # A public file that the spec names is at fault itself.
        named, found, _ = str(error).partition(": combination.reference.path ")
        check_message(str(error), Path(named) if found else path, "Nothing was run.")
        outcome = "refused"
    assert time.monotonic() - start < PATIENCE, "took too long"
    return outcome


def check_message(said: str, path: Path, ending: str) -> None:
    """One paragraph that names the file and what happened, printable, without insides of ours or of the data."""
    assert said.endswith(ending), said
    assert str(path) in said
    assert "\n\n" not in said
    assert len(said) < 20_000
    assert said.replace("\n", "").isprintable(), repr(said)
    assert not _LEFT_IN.search(said.replace(str(path), "")), said


_ATTRIBUTES: tuple[list[dict[str, Any]], ...] = (
    [{"name": "job", "values": ["a", "b", "none", "other"], "missing": "none", "other": "other"}],
    [{"name": "job", "values": ["a", "b"]}],
    [
        {"name": "job", "values": ["a", "b"], "missing": "a", "other": "b"},
        {"name": "sex", "column": "job", "values": ["b", "x"], "missing": "x", "other": "x"},
        {"name": "both", "kind": "crosstab", "of": ["job", "sex"]},
    ],
)
_LEVELS: tuple[dict[str, Any], ...] = (
    {"dependence": 1, "column": "level"},
    {"dependence": "unknown", "column": "level", "missing": "mid"},
    {"assigned": {"high": 0.2, "mid": 0.3, "low": 0.5}},
)
_CELLS = (
    "a", "b", "", " ", "high", "low", "1", "é", "名\U0001f600", f"{MARK}", f"{MARK}\n{MARK}", 'say "hi"', '"', "a,b",
    "x;y", "x\ty", "x\r\ny", "'", "NULL", "nan", "a" * 5000, "{columns}", "$key", "\u2028", "-0", "=1+1",
)  # fmt: skip


def csv_source(rng: Random) -> tuple[bytes, dict[str, Any], int | None]:
    """A CSV file, how its spec reads it, and how many rows it has, where that can be told."""
    delimiter = rng.choice((",", ",", ";", "\t", "|", "::"))
    options: dict[str, Any] = {"delimiter": delimiter, "trim": rng.choice((True, False))}
    if rng.random() < 0.2:
        options |= {"header": False, "columns": ["id", "job", "level"]}
    content, n_rows = _rows(rng, delimiter)
    if options.get("header", True):
        content = f"id{delimiter}job{delimiter}level".encode() + b"\n" + content
    if rng.random() < 0.5:
        return content, options, n_rows
    if rng.random() < 0.1:
        options["comment"] = rng.choice("#a")
    if rng.random() < 0.1:
        options["quote"] = rng.choice(("'", "", "§"))
    for _ in range(rng.randrange(1, 6)):
        at, length = rng.randrange(len(content) + 1), rng.choice((0, 0, 1, 20))
        content = content[:at] + _noise(rng) + content[at + length :]
    if rng.random() < 0.1:
        content = content.decode("utf-8", "replace").encode(rng.choice(("utf-16", "latin-1", "utf-32")), "replace")
    return content, options, None


def _noise(rng: Random) -> bytes:
    signs = (
        b'"',
        b",",
        b";",
        b"\r",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"'",
        b"#",
        b"\\",
        b"::",
    )
    return rng.choice((*signs, MARK.encode(), b'"' + MARK.encode(), rng.randbytes(rng.randrange(1, 9))))


def _rows(rng: Random, delimiter: str) -> tuple[bytes, int]:
    """Rows as a writer quotes them, some with too few or many cells, a byte that is no text, or no user."""
    lines = []
    for i in range(rng.randrange(1, 25)):
        cells = [f"u{i}", rng.choice(_CELLS), rng.choice(_CELLS)]
        wrong = rng.randrange(12)
        if wrong == 0:
            cells[0] = rng.choice(("", " "))
        elif wrong == 1:
            del cells[rng.choice((1, 2)) :]
        elif wrong == 2:
            cells += [MARK] * rng.randrange(1, 4)
        quoted = ['"' + cell.replace('"', '""') + '"' if _needs_quotes(cell, delimiter) else cell for cell in cells]
        line = delimiter.join(quoted).encode()
        lines.append(b"\xff\xfe" + line if wrong == 3 else line)
    return b"\n".join(lines) + rng.choice((b"\n", b"")), len(lines)


def _needs_quotes(cell: str, delimiter: str) -> bool:
    return any(sign in cell for sign in ('"', "\n", "\r", delimiter, delimiter[0]))


_COLUMNS: tuple[Callable[[Random, int], Any], ...] = (
    lambda rng, n: pa.array([rng.choice((*_CELLS, None)) for _ in range(n)], pa.string()),
    lambda rng, n: pa.array([rng.choice((*_CELLS, None)) for _ in range(n)], pa.large_string()),
    lambda rng, n: pa.array([f"{MARK}{i}" for i in range(n)]).dictionary_encode(),
    lambda rng, n: pa.array([rng.choice((0, -1, 2**62, i, None)) for i in range(n)], pa.int64()),
    lambda rng, n: pa.array([rng.choice((0.0, -0.0, float("nan"), 1e300, i / 3, None)) for i in range(n)]),
    lambda rng, n: pa.array([rng.choice((True, False, None)) for _ in range(n)], pa.bool_()),
    lambda rng, n: pa.array([rng.choice((date(1, 1, 1), date(9999, 1, 1), None)) for _ in range(n)], pa.date32()),
    lambda rng, n: pa.array([rng.choice((datetime(2024, 1, 1), None)) for _ in range(n)], pa.timestamp("ns")),
    lambda rng, n: pa.array([rng.choice((Decimal("1.50"), None)) for _ in range(n)], pa.decimal128(30, 2)),
    lambda rng, n: pa.array([rng.choice((b"\xff\0", MARK.encode(), None)) for _ in range(n)], pa.binary()),
    lambda rng, n: pa.array([rng.choice(([MARK], [], [None], None)) for _ in range(n)], pa.list_(pa.string())),
    lambda rng, n: pa.array([rng.choice(({"x": MARK}, None)) for _ in range(n)], pa.struct({"x": pa.string()})),
    lambda rng, n: pa.nulls(n),
    lambda rng, n: _broken_text(n),
)


def _broken_text(n: int) -> Any:
    """Bytes that are no UTF-8 in a column that says it is text."""
    offsets = b"".join((i * 9).to_bytes(4, "little") for i in range(n + 1))
    return pa.Array.from_buffers(
        pa.string(), n, [None, pa.py_buffer(offsets), pa.py_buffer((b"\xff" + MARK.encode()) * n)]
    )


def write_parquet(rng: Random, path: Path) -> int | None:
    """A Parquet file of any types, maybe with a name twice, maybe cut or spoilt; its rows, where it is whole."""
    n = rng.randrange(0, 30)
    names = ["id", "job", "level", *(rng.choice(("x", "job", "JOB", "", f"{MARK}")) for _ in range(rng.randrange(3)))]
    columns = [rng.choice(_COLUMNS)(rng, n) for _ in names]
    if rng.random() < 0.7:
        columns[0] = pa.array([f"{MARK}{i}" if rng.random() < 0.95 else None for i in range(n)], pa.string())
    pq.write_table(pa.Table.from_arrays(columns, names=names), path, compression=rng.choice(("snappy", "zstd", "none")))
    if rng.random() < 0.25:
        content = bytearray(path.read_bytes())
        if rng.random() < 0.5:
            del content[rng.randrange(len(content)) :]
        for _ in range(rng.randrange(1, 8) if content else 0):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content)
        return None
    return n


def source_case(rng: Random, folder: Path) -> tuple[Path, int | None]:
    """A spec with its source beside it, and the rows of the source where they can be told."""
    folder.mkdir(parents=True, exist_ok=True)
    source: dict[str, Any]
    if rng.random() < 0.6:
        content, options, n_rows = csv_source(rng)
        source = {"path": "people.csv", "csv": options}
        (folder / "people.csv").write_bytes(content)
        if n_rows is not None and len(options["delimiter"]) == 1:
            assert read_rows(content, options) == n_rows, "the independent reader sees as many"
    else:
        source = {"path": "people.parquet"}
        n_rows = write_parquet(rng, folder / "people.parquet")
    if rng.random() < 0.9:
        source["max_left_out"] = 1
    source |= {"one_row_per_user": True} if rng.random() < 0.1 else {"user_id": "id"}
    spec = write_spec(
        folder,
        source=source,
        attributes=rng.choice(_ATTRIBUTES),
        levels=rng.choice(_LEVELS),
        budget={"total": 4, "allocation": "equal"},
    )
    return spec, n_rows


def read_rows(content: bytes, options: dict[str, Any]) -> int:
    """How many rows Python's own reader sees below the header."""
    text = io.StringIO(content.decode("utf-8", "replace"), newline="")
    rows = [row for row in csv.reader(text, delimiter=options["delimiter"]) if row]
    return len(rows) - (1 if options.get("header", True) else 0)


def _check_refusal(error: PldpError, source: Path) -> None:
    """A stage that broke for a reason nobody thought of is a crash too."""
    assert type(error) is SourceError, repr(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    check_message(str(error), source, "Nothing was perturbed.")


def check_ingest(spec: Path, n_rows: int | None, home: Path) -> str:
    """Ingest counts every row once, as a user or in quarantine, or refuses the file and leaves nothing behind."""
    start = time.monotonic()
    file = load_spec(spec)
    run = open_run(Home(home).prepare(), file, "manual")
    try:
        found = ingest.fn(run, file)
        with connect(run.vault, read_only=True) as vault:
            users, quarantined = vault.execute(
                "SELECT (SELECT count(*) FROM people), (SELECT sum(n_rows) FROM quarantine)"
            ).fetchall()[0]
        assert found.n_users == users
        assert n_rows is None or users + quarantined == n_rows, f"{users} users + {quarantined} aside of {n_rows}"
        outcome = "read"
    except PldpError as error:
        _check_refusal(error, file.source)
        left = [path.name for path in run.vault.parent.rglob("*") if path.is_file()]
        assert not left, left
        outcome = "refused"
    finally:
        for folder in (run.folder, run.vault.parent, run.reports):
            shutil.rmtree(folder, ignore_errors=True)
    assert time.monotonic() - start < PATIENCE, "took too long"
    return outcome
