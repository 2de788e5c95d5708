"""How a stage becomes a Prefect task: never cached, never persisted, and with errors that hold no data.

Prefect takes a second to import, so it is imported by whoever runs a stage, not by whoever knows one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import duckdb

from pldp.errors import Outcome, PldpError, StageFailed
from pldp.tasks.cores import cores, one_core
from pldp.tasks.query import FULL, says_full

if TYPE_CHECKING:
    from prefect import Task
    from prefect.futures import PrefectFuture

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
            failure = copy(error)  # its fields, without a cause or a traceback
        except Exception as error:
            failure = stage_failed(function.__name__, reason(error))
        raise failure

    return shell


def reason(error: Exception) -> str:
    """Why, without data: the system's words ("No space left on device") without a path, or the class alone."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # Arrow puts more than these into strerror
    return FULL if isinstance(error, duckdb.Error) and says_full(error) else type(error).__name__


def stage_failed(stage: str, reason: str) -> StageFailed:
    """What the command says when a stage breaks: the stage and a reason without data; the same command resumes."""
    return StageFailed(f"Stage {stage} failed ({reason})", Outcome.RESUMABLE)


class Stage(Generic[P, R]):
    """A stage of the pipeline: call or submit it in a flow for a task run, or call its `fn` for the work alone."""

    def __init__(self, function: Callable[P, R], retries: int) -> None:
        self.fn = guarded(function)
        self.retries = retries
        self.name = function.__name__

    @functools.cached_property
    def task(self) -> Task[P, R]:
        """The task that Prefect runs."""
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        options: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "retry_delay_seconds": 1}
        return task(name=self.name, retries=self.retries, **options)(self.fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.task(*args, **kwargs)

    def named(self, name: str) -> Stage[P, R]:
        """The same stage under a name of its own in the orchestration."""
        other: Stage[P, R] = Stage.__new__(Stage)
        other.fn, other.retries, other.name = self.fn, self.retries, name
        return other

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> PrefectFuture[R]:
        """Start a task run beside others, on the flow's task runner."""
        return self.task.submit(*args, **kwargs)


def stage(*, retries: int = 0) -> Callable[[Callable[P, R]], Stage[P, R]]:
    """A task of the pipeline. Retries only where a repeat is harmless: a second draw is a second disclosure."""

    def decorate(function: Callable[P, R]) -> Stage[P, R]:
        return Stage(function, retries)

    return decorate


Calls = Sequence[tuple[Any, ...]]
"""Stages, each with its arguments."""
_sharing: ContextVar[Callable[[str, Calls], list[Any]] | None] = ContextVar("sharing", default=None)


@contextmanager
def sharing(hand_over: Callable[[str, Calls], list[Any]]) -> Iterator[None]:
    """In this block calls that a stage spreads are handed over to others."""
    token = _sharing.set(hand_over)
    try:
        yield
    finally:
        _sharing.reset(token)


def is_shared() -> bool:
    """Whether a stage's work is worth cutting: there is somebody to share it with."""
    return _sharing.get() is not None


def spread(name: str, calls: Calls) -> list[Any]:
    """Calls of stages within one stage, done by others where there are any, else here, on a core each."""
    hand_over = _sharing.get()
    if hand_over is not None:
        return hand_over(name, calls)
    if len(calls) == 1:
        return [stage.fn(*arguments) for stage, *arguments in calls]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(_alone, calls))


def _alone(call: tuple[Any, ...]) -> Any:
    stage, *arguments = call
    with one_core():
        return stage.fn(*arguments)


def call(module: str, name: str, *args: Any) -> Any:
    """Run a stage by its name in a worker: its function alone, on one core, without orchestration. What it writes is
    the operator's."""
    os.umask(0o077)
    with one_core():
        return getattr(import_module(module), name).fn(*args)
