"""Stages: never cached, never persisted, and with errors that hold no data."""

from __future__ import annotations

import errno
import pickle
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import duckdb
import pytest
from prefect.cache_policies import NO_CACHE

import pldp.tasks
from pldp.errors import PldpError, SourceError, StageFailed
from pldp.flows.pipeline import everybody
from pldp.tasks import collect, combine, count, ingest, perturb, publish, shares, validate
from pldp.tasks.ingest import Ingested
from pldp.tasks.run import Run
from pldp.tasks.stage import Stage, guarded, stage

STAGES: dict[str, Stage[..., Any]] = {
    "ingest": ingest.ingest,
    "count_share": shares.count_share,
    "deal_share": shares.deal_share,
    "settle_share": shares.settle_share,
    "delete_share": shares.delete_share,
    "perturb": perturb.perturb,
    "perturb_together": perturb.perturb_together,
    "collect": collect.collect,
    "count": count.count,
    "ask": count.ask,
    "combine": combine.combine,
    "validate": validate.validate,
    "publish": publish.publish,
}


@pytest.mark.parametrize("name", STAGES)
def test_no_stage_is_cached_or_persisted(name: str) -> None:
    task = STAGES[name].task
    assert task.cache_policy == NO_CACHE
    assert task.persist_result is False
    assert task.name == name


@pytest.mark.parametrize(
    "name", ["ingest", "count_share", "deal_share", "settle_share", "perturb", "perturb_together", "collect"]
)
def test_what_draws_or_reads_raw_values_is_never_retried(name: str) -> None:
    assert STAGES[name].task.retries == 0


def test_every_stage_is_looked_at() -> None:
    """Those of all modules, however they are called: one that draws twice by accident would not be seen."""
    modules = [import_module(f"pldp.tasks.{one.name}") for one in iter_modules(pldp.tasks.__path__)]
    known = {part.fn for module in modules for part in vars(module).values() if isinstance(part, Stage)}
    assert known == {one.fn for one in STAGES.values()}


def test_a_stage_under_another_name_is_the_same() -> None:
    """Every method has a task of its own; what it may not do stays."""
    for method, name in combine.TASKS.items():
        named = combine.combine.named(name)
        assert named.fn is combine.combine.fn, method
        assert (named.task.name, named.task.retries) == (name, combine.combine.retries)
        assert named.task.cache_policy == NO_CACHE
        assert named.task.persist_result is False


def test_the_truth_is_no_stage_and_no_release_reads_it() -> None:
    """What knows it runs in the flow, where nothing is stored, and only of an evaluation."""
    assert everybody(Run("home", "x", evaluation=True), Ingested(10, 0)) is not None
    with pytest.raises(ValueError, match="a release never reads the truth"):
        everybody(Run("home", "x"), Ingested(10, 0))


@guarded
def broken(error: BaseException) -> None:
    raise error


def test_foreign_errors_lose_their_message_their_cause_and_their_frames_data() -> None:
    with pytest.raises(StageFailed) as caught:
        broken(duckdb.ConversionException("Could not convert string 'SECRET' in line 3"))
    error = caught.value
    assert str(error).startswith("Stage broken failed (ConversionException).")
    assert "run the same command again to resume" in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert b"SECRET" not in pickle.dumps(error)


def test_the_systems_words_are_kept_without_the_path() -> None:
    with pytest.raises(StageFailed, match=r"\(No space left on device\)") as caught:
        broken(OSError(errno.ENOSPC, "No space left on device", "/SECRET/file"))
    assert "SECRET" not in str(caught.value)


def test_our_own_errors_pass_without_their_context() -> None:
    with pytest.raises(SourceError, match="row 3") as caught:
        broken(_with_context())
    assert caught.value.__context__ is None


def _with_context() -> PldpError:
    try:
        try:
            raise ValueError("SECRET")
        except ValueError:
            raise SourceError("row 3") from None
    except SourceError as error:
        return error


def test_an_interruption_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        broken(KeyboardInterrupt())


def test_a_stage_is_the_function_behind_it() -> None:
    @stage(retries=2)
    def add(a: int, b: int) -> int:
        return a + b

    assert add.fn(2, b=3) == 5
    assert add.task.retries == 2
