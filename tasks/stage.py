"""How a stage becomes a Prefect task: never cached, never persisted, and with errors that hold no data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE

from pldp.errors import PldpError, StageFailed

P = ParamSpec("P")
R = TypeVar("R")


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Turn any foreign exception into ours.

    DuckDB, Polars and Arrow quote whole rows in theirs, and Prefect stores messages, tracebacks and a pickle of
    what a task raises. Ours is raised outside the `except` block, so it does not even refer to the first one.
    """

    @functools.wraps(function)
    def shell(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except PldpError as error:
            failure = type(error)(*error.args)
        except OSError as error:
            # The system's words ("No space left on device"), without the path: it may be a temporary name.
            failure = StageFailed(_sentence(function.__name__, error.strerror or type(error).__name__))
        except Exception as error:
            failure = StageFailed(_sentence(function.__name__, type(error).__name__))
        raise failure

    return shell


def _sentence(stage: str, reason: str) -> str:
    return (
        f"Stage {stage} failed ({reason}). Earlier releases are untouched and nothing of this one was published; "
        "run the same command again to resume."
    )


def stage(*, retries: int = 0) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task of the pipeline. Retries only where a repeat is harmless: a second draw is a second disclosure."""

    def decorate(function: Callable[P, R]) -> Task[P, R]:
        return task(retries=retries, retry_delay_seconds=1, cache_policy=NO_CACHE, persist_result=False)(
            guarded(function)
        )

    return decorate
