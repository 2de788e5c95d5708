"""Looking for needles in everything a run leaves behind: raw, encoded, compressed, pickled, and inside databases."""

from __future__ import annotations

import base64
import binascii
import pickletools
import re
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

_DEPTH = 6
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")
_ZIPPED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")


def find(needles: Iterable[bytes], paths: Iterable[Path]) -> list[tuple[Path, bytes]]:
    """Which files hold which needle, in whatever wrapping."""
    wanted = [form for needle in needles for form in _forms(needle)]
    return [(path, form) for path in paths for form in _in_file(path, wanted)]


def in_bytes(needles: Iterable[bytes], content: bytes) -> bool:
    wanted = [form for needle in needles for form in _forms(needle)]
    return any(form in layer for layer in _layers(content) for form in wanted)


def files_under(folder: Path, *, without: Path | None = None) -> list[Path]:
    """Every file, except those of one folder."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and (without is None or without not in path.parents)
    ]


def _forms(needle: bytes) -> list[bytes]:
    """As it is, and as UTF-16 would spell it."""
    wide = needle.decode("latin-1").encode("utf-16-le")
    return [needle, wide]


def _in_file(path: Path, wanted: list[bytes]) -> set[bytes]:
    found = set()
    for content in _contents(path):
        for layer in _layers(content):
            found |= {form for form in wanted if form in layer}
    return found


def _contents(path: Path) -> Iterator[bytes]:
    """A file's bytes, and what a database or a columnar file would answer when asked."""
    content = path.read_bytes()
    yield content
    # Copies: looking must not change what is looked at, and a write-ahead log belongs to its database.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for side in path.parent.glob(f"{path.name}*"):
            if side.is_file():
                shutil.copyfile(side, copy.with_name(side.name))
        if content.startswith(b"SQLite format 3\x00"):
            yield from _sqlite(copy)
        elif content[8:12] == b"DUCK":
            yield from _duckdb(copy)
        elif content.startswith(b"PAR1") and content.endswith(b"PAR1"):
            yield from (_as_bytes(cell) for column in pq.read_table(copy).columns for cell in column.to_pylist())


def _sqlite(path: Path) -> Iterator[bytes]:
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    tables = [name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608  (the name is the database's own)
            yield from (_as_bytes(cell) for cell in row)
    connection.close()


def _duckdb(path: Path) -> Iterator[bytes]:
    path.chmod(0o600)
    with duckdb.connect(str(path)) as connection:
        tables = connection.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        for schema, table in tables:
            rows = connection.execute(f'SELECT * FROM "{schema}"."{table}"').fetchall()  # noqa: S608  (its own name)
            yield from (_as_bytes(cell) for row in rows for cell in row)


def _as_bytes(cell: object) -> bytes:
    return cell if isinstance(cell, bytes) else str(cell).encode()


def _layers(content: bytes, depth: int = _DEPTH) -> Iterator[bytes]:
    """The content and everything wrapped in it."""
    yield content
    if depth == 0:
        return
    for inner in _unwrapped(content):
        yield from _layers(inner, depth - 1)


def _unwrapped(content: bytes) -> Iterator[bytes]:
    for run in _BASE64.findall(content):
        yield from _base64(run)
    for run in _HEX.findall(content):
        yield bytes.fromhex(run.decode())
    for start in _ZIPPED.finditer(content):
        yield from _inflated(content[start.start() :])
    if content[:1] == b"\x80":
        yield from _pickled(content)


def _base64(run: bytes) -> Iterator[bytes]:
    """Text before a run may belong to its alphabet, so all four ways to cut it are tried."""
    plain = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    for skip in range(4):
        part = plain[skip:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        try:
            yield base64.b64decode(part + b"=" * (-len(part) % 4))
        except binascii.Error:
            continue


def _inflated(content: bytes) -> Iterator[bytes]:
    try:
        inflated = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(content)
    except zlib.error:
        return
    if inflated:
        yield inflated


def _pickled(content: bytes) -> Iterator[bytes]:
    """The texts and bytes of a pickle, read without running it."""
    try:
        for _, argument, _ in pickletools.genops(content):
            if isinstance(argument, str | bytes):
                yield _as_bytes(argument)
    except ValueError:
        return
