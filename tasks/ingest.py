"""Ingest: sources to vault. Cells become positions in the declared domains; nothing else of them is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pldp.errors import HomeError, Outcome, SourceError
from pldp.questions.plan import Plan
from pldp.questions.received import Received
from pldp.spec.runner import Runner
from pldp.tasks.buckets import bring_together, users_in
from pldp.tasks.durable import delete_or_refuse
from pldp.tasks.holdings import Holdings
from pldp.tasks.leftout import FileRead, account_strangers
from pldp.tasks.partitions import cells_within, rows_in
from pldp.tasks.people import People
from pldp.tasks.pieces import Dealt, Keys, Layout
from pldp.tasks.query import connect, connect_scratch, pattern, statement, text
from pldp.tasks.run import Run
from pldp.tasks.shares import by_table, count_share, deal_share, keep_keys, partitions_of, shares_of
from pldp.tasks.source import described
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import spread, stage

PARTITION_CELLS = 1 << 26
"""Partitions are sized by cells (users × values), so memory depends on neither. A stated memory takes its place."""


@dataclass(frozen=True)
class Ingested:
    """What the rest of the pipeline may know of the vault: participation is public."""

    n_users: int
    partitions: int
    received: Received | None = None
    """What clients sent, where there is no vault."""

    @property
    def counts(self) -> dict[str, int]:
        """As the vault notes that it is complete."""
        return {"n_users": self.n_users, "partitions": self.partitions}


_under_way: ContextVar[Future[Ingested] | None] = ContextVar("under_way", default=None)


@stage()
def ingest(run: Run, file: SpecFile) -> Ingested:
    """Fill the run's vault, or find it full. One that was not filled to its end is filled anew: nothing was drawn.

    Where `begun` has begun with it, this waits for its end.
    """
    under_way = _under_way.get()
    return _ingest(run, file) if under_way is None else under_way.result()


@contextmanager
def begun(run: Run, file: SpecFile) -> Iterator[None]:
    """The ingest of a run begins now, while Prefect is not there yet, and ends within this block; the stage joins it.

    Clients' reports, and work that is shared with a cluster, wait for the stage.
    """
    if file.reports is not None or file.spec.runner.dask is not None:
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        # A new thread has no context, so there the stage's own function joins nothing and does the work.
        token = _under_way.set(pool.submit(ingest.fn, run, file))
        try:
            yield
        finally:
            _under_way.reset(token)


@contextmanager
def ended() -> Iterator[None]:
    """An ingest that has begun ends within this block, whatever comes of it: nobody writes into a deleted folder."""
    try:
        yield
    finally:
        under_way = _under_way.get()
        if under_way is not None:
            wait([under_way])


def _ingest(run: Run, file: SpecFile) -> Ingested:
    ingested = complete(run.vault)
    if ingested is not None:
        return ingested
    refuse_second_draw(run)
    discard(run.vault)
    try:
        return _fill(run, file)
    except BaseException:
        # The corrected source is another release, so nobody would come back for this half.
        discard(run.vault)
        raise


def n_partitions(n_users: int, plan: Plan, runner: Runner) -> int:
    """A multiple of the phases, so that each has as many."""
    wanted = max(1, -(-n_users * plan.cells // cells_within(runner, PARTITION_CELLS)))
    return -(-wanted // plan.phases) * plan.phases


def discard(vault: Path) -> None:
    """Delete a vault's database and all beside it that was read of the source; HomeError where something stays."""
    for left_over in (vault, vault.with_name(vault.name + ".wal")):
        left_over.unlink(missing_ok=True)
    for folder in map(vault.with_name, ("partitions", "pieces", "sorting")):
        delete_or_refuse(
            folder,
            "what was read of the source",
            Outcome.NOTHING_DRAWN,
            "Delete the folder yourself, then run the same command again.",
        )


def refuse_second_draw(run: Run) -> None:
    """Without its vault a half-drawn release cannot tell who was drawn: a fresh key would draw some users twice.

    A seeded evaluation gets the same key again, so it may.
    """
    if run.seed is None and any(run.reports.rglob("*.parquet")):
        raise HomeError(
            f"reports of release {run.release_id} were drawn, but its vault is gone or cannot be opened, so it cannot "
            "be completed",
            Outcome.NOTHING_PUBLISHED,
            file=run.reports,
            remedy="Give another --slot for a new release, which spends again.",
        )


def complete(vault: Path) -> Ingested | None:
    """What the vault and its partitions hold, if ingest reached its end."""
    if not vault.exists():
        return None
    try:
        with connect(vault, read_only=True) as connection:
            row = connection.execute(statement("19_ingest_found")).fetchone()
    except duckdb.Error:  # killed before its last table, or before it was a database at all
        return None
    return None if row is None else Ingested(int(row[0]), int(row[1]))


def _fill(run: Run, file: SpecFile) -> Ingested:
    tables, runner = described(file), file.spec.runner
    # The keys only order rows and assign levels inside the vault; they are forgotten with this call.
    drawn = any(isinstance(table, People) and table.assigned for table in tables)
    keys = Keys(*(run.stream(name).copy(4).tobytes().hex() for name in ("key", "levels")[: 1 + drawn]))
    files = [one for table in tables for one in table.dealt]
    shares = shares_of(files)
    keep_keys(run, keys)
    records = by_table(shares, spread("ingest", [(count_share, run, file, share) for share in shares]))
    n_rows, phases = sum(records.values()), run.plan.phases
    # A table of people has as many users as rows; otherwise they are counted when their rows are dealt.
    alone = len(files) == 1 and isinstance(tables[0], People)
    columns = max(len(one.columns) for one in files)
    layout = Layout.of(n_partitions(n_rows, run.plan, runner) if alone else 1, n_rows, phases, columns)
    read = by_table(shares, spread("ingest", [(deal_share, run, file, share, layout, not alone) for share in shares]))
    dealt = {name: share.dealt for name, share in read.items()}
    with connect(run.vault) as vault:
        vault.execute(statement("12_ingest_quarantine"))
        vault.execute(statement("12_ingest_unstated"))
        for one in files:
            seen = dealt[one.name]
            account = FileRead(
                one.file, one.most_left_out, records[one.name], read[one.name].rejected, read[one.name].reasons
            )
            account.account(vault, seen.rows + seen.nameless, seen.nameless)
        if not any(seen.rows for seen in dealt.values()):
            name = files[0].file.name
            raise SourceError(
                "no readable row with a user",
                Outcome.NOTHING_PERTURBED,
                file=name,
                remedy="Check source and its columns.",
            )
        for table in tables:
            _look(run, table, vault, [dealt[one.name] for one in table.dealt])
        types = {name: seen.records for name, seen in dealt.items()}
        if not alone:
            layout = layout.holding(n_partitions(users_in(run, types, layout), run.plan, runner), phases)
        together = bring_together(run, partitions_of(run, file, types, layout))
        for one in files:
            account_strangers(
                vault, one.file, one.most_left_out, records[one.name], together.strangers.get(one.name, 0)
            )
        for table, of_users in zip(tables, together.seen, strict=True):
            with _again(run, table) as scratch:
                table.refuse_users(scratch, keys, of_users)
        ingested = Ingested(together.n_users, layout.partitions)
        if rows_in(run, ingested.partitions) != ingested.n_users:
            raise ValueError("the partitions do not hold everybody")
        run.require_unchanged()
        partitions = pattern(run.partition_file(0).parent, "*.parquet")
        vault.execute(statement("19_ingest_people", files=text(partitions)))
        vault.execute(statement("19_ingest_done"), ingested.counts)
    return ingested


def _look(run: Run, table: People | Holdings, vault: duckdb.DuckDBPyConnection, dealt: Sequence[Dealt]) -> None:
    """Note what a table's choices count as that are not stated, and refuse one with rows that break a rule."""
    for column, reason, n, becomes in table.unstated_cells(dealt):
        counted = {"column": column, "reason": reason, "n": n, "becomes": becomes}
        vault.execute(statement("12_ingest_unstated_rows"), counted)
    with _again(run, table) as scratch:
        table.refuse_rows(scratch, dealt)


@contextmanager
def _again(run: Run, table: People | Holdings) -> Iterator[duckdb.DuckDBPyConnection]:
    """For a second look at a source, in its own order, to say where something stands."""
    with connect_scratch(run.vault.parent, len(table.dealt[0].columns)) as scratch:
        yield scratch
