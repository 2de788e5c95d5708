"""The order of reports in a file: where a sheet asks for it, one of the file's own that tells nothing."""

from __future__ import annotations

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.questions.question import Columns


def shuffle(columns: Columns, stream: Keystream) -> Columns:
    """The same rows in a uniformly random order, all columns alike; `columns` have one entry (or row) per report."""
    heights = {len(column) for column in columns.values()}
    if len(heights) > 1:
        raise ValueError("only columns of one length can be shuffled: lists have no place in a sheet that is")
    # Ranks of random words are a uniform order; two of a million words are equal once in thirty million files.
    order = np.argsort(stream.copy(heights.pop() if heights else 0))
    return {name: column[order] for name, column in columns.items()}
