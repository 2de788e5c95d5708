"""Keyed tags of user ids: by them rows are dealt to buckets and put in order, and then they are dropped.

A tag is AES in CBC-MAC mode over three blocks, all ids padded to the same length. With a fresh key this is a
pseudo-random function of the id: without the key nobody can reckon who stands where, nor make two ids meet, and of ids
of one block it is even a permutation. The cipher takes a whole batch of ids at a time, a block of each, at the speed of
memory, where a hash in the database took a third of ingest.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from duckdb import CaseExpression as Case
from duckdb import ConstantExpression as Constant
from duckdb import Expression
from duckdb import FunctionExpression as Function
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from pldp.tasks.sources.source import USER

SORT_KEY, TWIN = "sort_key", "twin"
"""Columns in place of the id: the tag's first half, and its other half where users of one key are to be told apart."""

_WORD, _BLOCK, _BLOCKS = 8, 16, 3
_LONGEST = _BLOCK * _BLOCKS - 1
"""Bytes of an id that is taken as it is. Of a longer one the database hands over a keyed hash, which fills all blocks
and ends in a letter or digit, as no padded id does."""
_KEY_BYTES = 16

# By how many bytes of a word the id fills, -1 where it ends before: what is kept of the word, and the mark of its end.
_KEPT = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)] + [0], dtype=np.uint64)
_MARKS = np.array([0x80 << 8 * n for n in range(_WORD)] + [0, 0], dtype=np.uint64)

Tagged = NDArray[np.uint64]
"""A row of two words per id."""


class Tags:
    """Tags under one key, 32 bytes in hexadecimal: half of it for the cipher, half for ids that are too long for it."""

    def __init__(self, key: str) -> None:
        cipher, self._prefix = bytes.fromhex(key[: 2 * _KEY_BYTES]), key[2 * _KEY_BYTES :]
        # Every block is of another id, so that none hides behind another: the chaining is done here.
        self._cipher = Cipher(algorithms.AES(cipher), modes.ECB()).encryptor()  # noqa: S305

    def handed(self, user: Expression) -> Expression:
        """What the database hands over of an id."""
        short = Function("md5", Function("||", Constant(self._prefix), user))
        full = Function("lpad", short, Constant(_LONGEST + 1), Constant("-"))
        return Case(Function("strlen", user) > Constant(_LONGEST), full).otherwise(user)

    def of(self, users: pa.Array) -> Tagged:
        """Tags of ids as they were handed over; anything where there is none."""
        users = users.cast(pa.string())
        n, (_, bounds, content) = len(users), users.buffers()
        if not n:
            return np.empty((0, 2), dtype=np.uint64)
        bounds = np.frombuffer(bounds, dtype=np.int32)[users.offset : users.offset + n + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        text = np.zeros(last - first + _BLOCK * _BLOCKS + _WORD, dtype=np.uint8)
        if last > first:
            text[: last - first] = np.frombuffer(content, dtype=np.uint8)[first:last]
        # The word that begins at every byte, whether or not an id does.
        words = as_strided(text[:_WORD].view(np.uint64), shape=(text.size - _WORD + 1,), strides=(1,), writeable=False)
        sizes, starts = np.diff(bounds), bounds[:-1] - first
        longest = int(sizes.max())
        chained = np.zeros((n, 2), dtype=np.uint64)
        out = np.empty(2 * n + 2, dtype=np.uint64)  # the cipher asks for one block of slack
        for place in range(0, _BLOCK * _BLOCKS, _WORD):
            if place <= longest:
                filled = np.clip(sizes - place, -1, _WORD)
                chained[:, place // _WORD % 2] ^= words[starts + place] & _KEPT[filled] | _MARKS[filled]
            if place % _BLOCK:
                self._cipher.update_into(chained.data.cast("B"), out.data.cast("B"))
                chained[:] = out[: 2 * n].reshape(n, 2)
        return chained

    def schema(self, handed: pa.Schema, *, twins: bool) -> pa.Schema:
        """Columns of batches once tags stand in the place of the id, which comes first."""
        keys = [pa.field(name, pa.uint64()) for name in (SORT_KEY, TWIN)[: 1 + twins]]
        return pa.schema([*keys, *(field for field in handed if field.name != USER)])

    def tagged(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The batch with tags in the place of the id; none where there is no id."""
        users = batch.column(0)
        tags, nobody = self.of(users), users.is_null().to_numpy(zero_copy_only=False) if users.null_count else None
        keys = [pa.array(np.ascontiguousarray(half), mask=nobody) for half in tags.T[: 1 + (TWIN in schema.names)]]
        return pa.record_batch([*keys, *batch.columns[1:]], schema=schema)
