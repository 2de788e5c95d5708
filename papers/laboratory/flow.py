"""The papers' experiments, on all cores, and a page a paper: ours beside what it prints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from prefect import flow

from pldp.errors import Outcome, PldpError, StageFailed
from pldp.flows.orchestration import orchestrated
from pldp.flows.progress import report
from pldp.papers.compare import Tally, by_key, compare, tally
from pldp.papers.laboratory.datasets import fingerprint
from pldp.papers.laboratory.facts import read_facts
from pldp.papers.laboratory.page import write_index, write_paper
from pldp.papers.laboratory.store import Store, open_store, run_id
from pldp.papers.laboratory.work import code_version, work
from pldp.papers.model import Point, Unit
from pldp.papers.registry import paper
from pldp.tasks.stage import stage

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


@dataclass(frozen=True)
class Reproduced:
    pages: tuple[Path, ...]
    tallies: dict[str, Tally]

    @property
    def total(self) -> Tally:
        return sum(self.tallies.values(), start=Tally(0, 0, 0, 0))


def reproduce(names: Sequence[str], data: Path, folder: Path, *, quick: bool, pages_only: bool) -> Reproduced:
    """`pages_only` judges and draws again what was computed before."""
    if pages_only:
        return _conclude(names, folder)
    for name in names:  # before anything runs
        _fingerprints(paper(name).units(quick), data)
    with orchestrated(folder, loading=()):
        return reproduce_flow(list(names), str(data), str(folder), quick)


@flow(name="reproduce", persist_result=False, validate_parameters=False)
def reproduce_flow(names: list[str], data: str, folder: str, quick: bool) -> Reproduced:
    with _workers() as pool:
        for name in names:
            simulate.task.with_options(task_run_name=name)(name, Path(data), Path(folder), quick, pool)
    return _conclude(names, Path(folder))


@stage()
def simulate(name: str, data: Path, folder: Path, quick: bool, pool: ProcessPoolExecutor) -> None:
    """Whatever of a paper is not there yet; each piece is kept as soon as it is finished."""
    units, code = paper(name).units(quick), code_version(name)
    prints = _fingerprints(units, data)
    wanted = {run_id(unit, code, prints[unit.dataset]): unit for unit in units}
    with open_store(folder) as store:
        known = store.known(list(wanted))
        report(name, len(known), len(wanted))
        missing = {identity: unit for identity, unit in wanted.items() if identity not in known}
        running = {pool.submit(work, unit, data): (identity, unit) for identity, unit in missing.items()}
        try:
            for done, future in enumerate(as_completed(running), start=1):
                identity, unit = running[future]
                points, seconds = _result(future, unit)
                store.keep(identity, unit, code, seconds, points)
                report(name, len(known) + done, len(wanted))
        finally:
            for future in running:
                future.cancel()
        store.show(name, list(wanted))


def _fingerprints(units: Sequence[Unit], data: Path) -> dict[str | None, str]:
    return {dataset: fingerprint(dataset, data) for dataset in dict.fromkeys(unit.dataset for unit in units)}


def _result(future: Future[tuple[list[Point], float]], unit: Unit) -> tuple[list[Point], float]:
    try:
        return future.result()
    except PldpError:
        raise
    except Exception as error:
        arguments = ", ".join(f"{name} {value}" for name, value in unit.arguments.items())
        raise StageFailed(
            f"{unit.paper}, {unit.experiment} ({arguments}): {type(error).__name__}: {error}",
            Outcome.KEPT,
        ) from None


def _conclude(names: Sequence[str], folder: Path) -> Reproduced:
    """Judge and draw."""
    pages: list[Path] = []
    tallies: dict[str, Tally] = {}
    with open_store(folder) as store:
        for done, name in enumerate(names, start=1):
            tallies[name] = _judge(store, name, folder, pages)
            report("pages", done, len(names))
        pages.append(write_index(folder, store.tallies()))
    return Reproduced(tuple(pages), tallies)


def _judge(store: Store, name: str, folder: Path, pages: list[Path]) -> Tally:
    module, facts = paper(name), read_facts(name)
    points = store.points(name)
    compared = compare(facts, by_key(points), module.REASONS)
    store.judge(name, facts, compared)
    pages.append(write_paper(folder, name, module, points, compared, store.effort(name)))
    return tally(compared)


@contextmanager
def _workers() -> Iterator[ProcessPoolExecutor]:
    """A process a core: simulations hold the interpreter's lock. Each keeps to one thread, or they would fight."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(max_workers=os.cpu_count() or 1, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
