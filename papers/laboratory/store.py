"""Where results are kept: a DuckDB file, a finished piece of work at a time, so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl

from pldp.errors import HomeError, Outcome
from pldp.papers.compare import Tally
from pldp.papers.model import Compared, Fact, Point, Unit
from pldp.tasks.query import connect, statement, text

_COLUMN = re.compile(r'^\s+"?(\w+)"?\s+[A-Z][^-]*--\s*(.+?)\s*$', re.MULTILINE)
_TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")

FILE = "reproduce.duckdb"
_TABLES = ("90_reproduce_runs", "91_reproduce_points", "92_reproduce_facts", "93_reproduce_comparisons")


def run_id(unit: Unit, code: str, data: str) -> str:
    """Identity of a piece of work: all that its result depends on."""
    content = json.dumps({**asdict(unit), "code": code, "data": data}, sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Store:
    connection: duckdb.DuckDBPyConnection

    def known(self, run_ids: Sequence[str]) -> set[str]:
        rows = self.connection.execute(statement("94_reproduce_known"), {"run_ids": list(run_ids)}).fetchall()
        return {row[0] for row in rows}

    def keep(self, identity: str, unit: Unit, code: str, seconds: float, points: Sequence[Point]) -> None:
        """A finished piece, whole or not at all."""
        row = {
            "run_id": identity,
            "paper": unit.paper,
            "experiment": unit.experiment,
            "arguments": json.dumps(dict(unit.arguments), sort_keys=True),
            "dataset": unit.dataset,
            "repeats": unit.repeats,
            "seed": unit.seed,
            "code_version": code,
            "seconds": seconds,
            "finished_at": datetime.now(UTC).replace(tzinfo=None),
            "shown": False,
        }
        with self._whole():
            self._insert("runs", pl.DataFrame([row], schema_overrides={"dataset": pl.String}))
            if points:
                self._insert("points", pl.DataFrame([{"run_id": identity, **asdict(point)} for point in points]))

    def show(self, paper: str, run_ids: Sequence[str]) -> None:
        """From now on the paper's page is made of these."""
        self.connection.execute(statement("94_reproduce_hide"), {"paper": paper, "run_ids": list(run_ids)})

    def points(self, paper: str) -> list[Point]:
        rows = self.connection.sql(statement("95_reproduce_shown"), params={"paper": paper}).pl()
        return [Point(**row) for row in rows.iter_rows(named=True)]

    def judge(self, paper: str, facts: Sequence[Fact], compared: Sequence[Compared]) -> None:
        """Replace what was printed and found of a paper."""
        verdicts = [
            {
                "paper": paper,
                "place": each.fact.place,
                "panel": each.fact.panel,
                "series": each.fact.series,
                "x": each.fact.x,
                "printed": each.fact.printed,
                "value": None if each.point is None else each.point.value,
                "standard_error": None if each.point is None else each.point.standard_error,
                "verdict": each.verdict,
                "reason": each.reason,
                "basis": each.basis,
            }
            for each in compared
        ]
        with self._whole():
            for forget in ("95_reproduce_forget_facts", "95_reproduce_forget_comparisons"):
                self.connection.execute(statement(forget), {"paper": paper})
            if facts:
                self._insert("facts", pl.DataFrame([{"paper": paper, **asdict(fact)} for fact in facts]))
                wanted = {"value": pl.Float64, "standard_error": pl.Float64, "basis": pl.String}
                self._insert("comparisons", pl.DataFrame(verdicts, schema_overrides=wanted, infer_schema_length=None))

    def effort(self, paper: str) -> tuple[int, float, int]:
        """Pieces of work behind a page, their seconds, and their most repetitions."""
        # All of a result is fetched: one half read blocks the connection.
        ((pieces, seconds, repeats),) = self.connection.execute(
            statement("96_reproduce_effort"), {"paper": paper}
        ).fetchall()
        return int(pieces), float(seconds), int(repeats)

    def tallies(self) -> dict[str, Tally]:
        rows = self.connection.execute(statement("96_reproduce_tallies")).fetchall()
        return {paper: Tally(*counts) for paper, _, *counts in rows}

    def _insert(self, table: str, rows: pl.DataFrame) -> None:
        self.connection.register("rows", rows.to_arrow())
        self.connection.execute(statement("70_publish_rows", table=table))
        self.connection.unregister("rows")

    @contextmanager
    def _whole(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")


@contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """One process at a time."""
    path = folder / FILE
    with ExitStack() as stack:
        reason = ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            connection = stack.enter_context(connect(path))
        except OSError as error:
            reason = error.strerror or type(error).__name__
        except duckdb.IOException as error:
            reason = "another process has it open" if "lock" in str(error) else type(error).__name__
        if reason:
            raise HomeError(
                f"the results cannot be kept there ({reason})",
                Outcome.NOTHING_RUN,
                file=path,
                remedy="Give another folder with --to.",
            )
        for name in _TABLES:
            create = statement(name)
            connection.execute(create)
            if name == _TABLES[-1]:
                connection.execute(statement("51_publish_later_column", table="comparisons", column="basis VARCHAR"))
            for comment in comments(create):
                connection.execute(comment)
        yield Store(connection)


def comments(table_statement: str) -> Iterator[str]:
    """COMMENT statements from the remarks behind the columns of a CREATE TABLE, so that they stand once."""
    table = _TABLE.search(table_statement)
    if table is None:
        raise ValueError("not a CREATE TABLE statement")
    for column, remark in _COLUMN.findall(table_statement):
        yield f'COMMENT ON COLUMN {table[1]}."{column}" IS {text(remark)}'
