"""What a flow says while it works. The command line shows it; elsewhere it is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Listener = Callable[[str, int, int], None]


def _silent(stage: str, done: int, total: int) -> None:
    pass


_listener: ContextVar[Listener] = ContextVar("listener", default=_silent)


def report(stage: str, done: int, total: int = 1) -> None:
    """`done` of `total` pieces of a stage are finished."""
    _listener.get()(stage, done, total)


@contextmanager
def shown(console: Console) -> Iterator[None]:
    """A bar a stage, for as long as the block runs."""
    columns = (SpinnerColumn(), TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=False) as bars:
        started: dict[str, int] = {}

        def listen(stage: str, done: int, total: int) -> None:
            if stage not in started:
                started[stage] = int(bars.add_task(stage, total=total))
            bars.update(bars.task_ids[started[stage]], completed=done, total=total)

        token = _listener.set(listen)
        try:
            yield
        finally:
            _listener.reset(token)
