"""How many cores the work of a stage keeps busy: two in a command, which has the machine; one in a worker of a cluster.

A worker has as many siblings as there are cores. More threads than its one take cores from them, and switching between
threads costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_cores: ContextVar[int] = ContextVar("cores", default=2)


def cores() -> int:
    """How many threads a stage may have at work at a time."""
    return _cores.get()


@contextmanager
def one_core() -> Iterator[None]:
    """In this block, of this thread, work keeps one core busy."""
    token = _cores.set(1)
    try:
        yield
    finally:
        _cores.reset(token)
