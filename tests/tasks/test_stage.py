"""Stages: never cached, never persisted, and with errors that hold no data."""

from __future__ import annotations

import errno
import pickle
from typing import Any

import duckdb
import pytest
from prefect.cache_policies import NO_CACHE

from pldp.errors import PldpError, SourceError, StageFailed
from pldp.tasks import collect, combine, count, estimate, ingest, perturb, publish, truth, validate
from pldp.tasks.stage import Stage, guarded, stage

STAGES: dict[str, Stage[..., Any]] = {
    "ingest": ingest.ingest,
    "perturb": perturb.perturb,
    "collect": collect.collect,
    "count": count.count,
    "estimate": estimate.estimate,
    "combine": combine.combine,
    "validate": validate.validate,
    "publish": publish.publish,
    "true_counts": truth.true_counts,
}


@pytest.mark.parametrize("name", STAGES)
def test_no_stage_is_cached_or_persisted(name: str) -> None:
    task = STAGES[name].task
    assert task.cache_policy == NO_CACHE
    assert task.persist_result is False
    assert task.name == name


@pytest.mark.parametrize("name", ["ingest", "perturb", "collect", "true_counts"])
def test_what_draws_or_reads_raw_values_is_never_retried(name: str) -> None:
    assert STAGES[name].task.retries == 0


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
