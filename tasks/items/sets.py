"""Sets that all partitions are asked about, as a file: calls carry its name, not the sets."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pldp.questions.items.transactions import Itemsets
from pldp.tasks.home import replace
from pldp.tasks.items.run import ItemsRun


@contextmanager
def kept_sets(run: ItemsRun, sets: Itemsets) -> Iterator[int]:
    """Their length, which names the file; it goes with the block, as it follows from the reports."""
    length = sets.shape[1]
    content = io.BytesIO()
    np.save(content, sets, allow_pickle=False)
    path = run.sets_file(length)
    replace(path, content.getvalue())
    try:
        yield length
    finally:
        path.unlink(missing_ok=True)
