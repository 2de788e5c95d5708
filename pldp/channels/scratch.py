"""Memory that a thread works in again and again.

The system hands out fresh memory in pages, and a page that is touched for the first time costs more than all that a
kernel then does to the numbers in it. So arrays that do not outlive a call are kept for the next one.

How much a kernel takes at a time follows from two things. What it works on should fit the last-level cache. And one
call of NumPy should take a tenth of a millisecond or more: between calls a thread needs the interpreter's lock, and to
be woken when it is free takes as long as a call on a second-level cache's worth of numbers. With steps an eighth as
long two threads were no faster than one.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Memory(threading.local):
    """By name; every thread sees its own."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[np.uint8]] = {}


_memory = _Memory()


def scratch(name: str, count: int, kind: Any) -> NDArray[Any]:
    """An array of `count` numbers of this kind, with anything in it; valid until this thread asks for the name again.

    Ask for sizes that do not grow with the data: what was once asked for is kept.
    """
    kind = np.dtype(kind)
    size = count * kind.itemsize
    array = _memory.arrays.get(name)
    if array is None or array.size < size:
        array = _memory.arrays[name] = np.empty(size, dtype=np.uint8)
    return array[:size].view(kind)
