"""What a flow says while it works. The command line shows it; elsewhere it is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

Listener = Callable[[str, int, int], None]
Teller = Callable[[str], None]


def _silent(stage: str, done: int, total: int) -> None:
    pass


def _mute(remark: str) -> None:
    pass


_teller: ContextVar[Teller] = ContextVar("teller", default=_mute)
_listener: ContextVar[Listener] = ContextVar("listener", default=_silent)


def report(stage: str, done: int, total: int = 1) -> None:
    """`done` of `total` pieces of a stage are finished."""
    _listener.get()(stage, done, total)


@contextmanager
def reported(stage: str) -> Iterator[None]:
    """For a stage of one piece: begun with the block, finished with it."""
    report(stage, 0)
    yield
    report(stage, 1)


def tell(remarks: Iterable[str]) -> None:
    """Say something to the operator at the terminal, and to nobody else: it is neither logged nor stored."""
    for remark in remarks:
        _teller.get()(remark)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """For the block, a listener gets what flows report."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


READ, LOAD = "read", "load"
"""What commands do before a flow: read spec and source, and load the libraries that run it."""


@contextmanager
def shown(console: Console) -> Iterator[None]:
    """A bar a stage, for as long as the block runs. Commands begin it before anything that takes long, imports too.

    Where nothing was done but read, the bar goes: the error says it all.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=False) as bars:
        started: dict[str, int] = {}

        def listen(stage: str, done: int, total: int) -> None:
            if stage not in started:
                started[stage] = int(bars.add_task(stage, total=total))
            bars.update(bars.task_ids[started[stage]], completed=done, total=total)

        telling = _teller.set(lambda remark: bars.console.print(Text(f"ingest: {remark}"), soft_wrap=True))
        try:
            with listening(listen):
                yield
        except BaseException:
            if set(started) == {READ}:
                bars.live.transient = True
                bars.live.stop()
                bars.disable = True  # it would end a line of nothing
            raise
        finally:
            _teller.reset(telling)
