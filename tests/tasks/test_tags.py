"""Tags of user ids: a message authentication code of each, whatever its length, and nothing without the key."""

from __future__ import annotations

import hashlib

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import spearmanr

from pldp.tasks.positions import column
from pldp.tasks.sources.source import USER
from pldp.tasks.tags import SORT_KEY, TWIN, Tags
from tests.pldp.world import z_bound

KEY = bytes(range(32)).hex()
IDS = ["", "u", "user 12", "12345678", "u" * 15, "v" * 16, "w" * 17, "é" * 11, "x" * 31, "y" * 32, "z" * 46, "z" * 47]


def slow(user: str, key: str = KEY) -> list[int]:
    """The same by the library's own chaining, one id at a time."""
    text = user.encode()
    if len(text) > 47:
        text = b"-" * 16 + hashlib.md5((key[32:] + user).encode(), usedforsecurity=False).hexdigest().encode()
    else:
        text = text + b"\x80" + bytes(47 - len(text))
    chained = Cipher(algorithms.AES(bytes.fromhex(key[:32])), modes.CBC(bytes(16))).encryptor()
    last = chained.update(text)[-16:]
    return [int.from_bytes(last[:8], "little"), int.from_bytes(last[8:], "little")]


def tags_of(users: list[str | None], key: str = KEY) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """As ingest has them: what the database hands over, tagged."""
    tags = Tags(key)
    with duckdb.connect() as connection:
        table = pa.table({USER: pa.array(users, pa.string())})
        handed = connection.from_arrow(table).select(tags.handed(column(USER)).alias(USER)).to_arrow_table()
    return tags.of(handed.column(0).combine_chunks())


@pytest.mark.parametrize("users", [IDS, IDS[:4], [*IDS, "a" * 48, "a" * 500, "ö" * 24], ["only"]], ids=len)
def test_tags_are_the_cipher_chained_over_every_id(users: list[str]) -> None:
    assert tags_of(list(users)).tolist() == [slow(user) for user in users]


def test_a_part_of_a_column_and_rows_of_nobody_are_tagged_as_they_stand() -> None:
    users = pa.array(["left out", *IDS[:5], None, *IDS[5:], "too"])
    tagged = Tags(KEY).of(users.slice(1, len(IDS) + 1)).tolist()
    assert tagged[:5] + tagged[6:] == [slow(user) for user in IDS]
    assert Tags(KEY).of(users.slice(0, 0)).shape == (0, 2)


def test_no_id_can_look_like_another() -> None:
    """Padding marks where an id ends; a long one's hash fills all blocks, so that no id is taken for it."""
    long = "a" * 48
    hashed = "-" * 16 + hashlib.md5((KEY[32:] + long).encode(), usedforsecurity=False).hexdigest()
    users = [*IDS, "u\x00", "u\x80", "v" * 16 + "\x80", long, hashed, hashed[16:], hashed[:47]]
    assert len({tuple(tag) for tag in tags_of(list(users)).tolist()}) == len(users)


def test_batches_have_the_tag_in_the_place_of_the_id() -> None:
    batch = pa.record_batch({USER: pa.array(["u", None]), "value_0": pa.array([1, 2], pa.uint16())})
    for twins, names in ((False, [SORT_KEY]), (True, [SORT_KEY, TWIN])):
        schema = Tags(KEY).schema(batch.schema, twins=twins)
        tagged = Tags(KEY).tagged(batch, schema).to_pydict()
        assert list(tagged) == [*names, "value_0"]
        assert [tagged[name] for name in names] == [[half, None] for half in slow("u")[: len(names)]]
        assert tagged["value_0"] == [1, 2]


def test_order_depends_on_the_key_alone() -> None:
    """Neither on the order of ids nor on their order under another key: rank correlations of 20,000, α = 1e-6."""
    users = [f"user {i:05d}" for i in range(20_000)]
    first, second = (tags_of(list(users), bytes([i] * 32).hex())[:, 0] for i in (1, 2))
    numbers = np.arange(len(users))
    found = [spearmanr(one, other).statistic for one, other in ((first, numbers), (second, numbers), (first, second))]
    assert np.abs(found).max() * np.sqrt(len(users)) < z_bound(3)
    assert spearmanr(first, tags_of(list(users), bytes([1] * 32).hex())[:, 0]).statistic > 0.99, "this test can fail"
