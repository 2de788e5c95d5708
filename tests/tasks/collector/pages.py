"""SQLite's files, byte by byte, as somebody reads them who has taken the disk: https://sqlite.org/fileformat2.html."""

from __future__ import annotations

import struct
from pathlib import Path

_LEAF_OF_KEYS = 0x0A


def commits(log: Path) -> list[bytes]:
    """The pages that every transaction of a write-ahead log wrote, one after the other."""
    content = log.read_bytes() if log.exists() else b""
    if len(content) < 32:
        return []
    size, salts = struct.unpack(">I", content[8:12])[0], content[16:24]
    found, pages = [], b""
    for at in range(32, len(content) - size - 23, size + 24):
        if content[at + 8 : at + 16] != salts:
            break
        pages += content[at + 24 : at + 24 + size]
        if struct.unpack(">I", content[at + 4 : at + 8])[0]:
            found.append(pages)
            pages = b""
    return found


def offsets(database: Path, holding: bytes) -> list[list[int]]:
    """Of every page of rows by key that holds this: where rows lie, in the order of keys. SQLite fills from the end."""
    content = database.read_bytes()
    size = struct.unpack(">H", content[16:18])[0]
    found = []
    for page in (content[at : at + size] for at in range(size, len(content), size)):
        if page[0] == _LEAF_OF_KEYS and holding in page:
            cells = struct.unpack(">H", page[3:5])[0]
            found.append(list(struct.unpack(f">{cells}H", page[8 : 8 + 2 * cells])))
    return found
