"""Frames that a program hands to the front door: files on the vault's side of the home while a call lasts.

No flow sees a frame: parameters of flows and tasks stay paths and names.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, cast

import polars as pl

from pldp.errors import Outcome, SourceError
from pldp.tasks.drafts import alive
from pldp.tasks.durable import delete_folder, make_folder
from pldp.tasks.home import Home


class ArrowStream(Protocol):
    """What hands out its rows as Arrow does: an Arrow table, a pandas frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


FrameLike = pl.DataFrame | pl.LazyFrame | ArrowStream | Mapping[str, Sequence[object]]
"""A frame, or columns by their names."""


@contextmanager
def frame_file(home: Home, name: str, frame: FrameLike) -> Iterator[Path]:
    """A Parquet file of this name with the rows of a frame, gone when the block ends. A lazy frame is never whole in
    memory; the same rows make the same bytes either way, so that a release finds what it did before."""
    folder = _frames(home) / f"{os.getpid()}-{secrets.token_hex(8)}"
    make_folder(folder)
    try:
        path = folder / Path(name).with_suffix(".parquet").name
        try:
            _lazy(frame).sink_parquet(path)
        except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
            # Its message may quote data; its type may not.
            raise SourceError(
                f"the frame cannot be written ({type(error).__name__})",
                Outcome.NOTHING_RUN,
                remedy="Give a frame with one row per person and plain columns.",
            ) from None
        yield path
    finally:
        delete_folder(folder)


def abandoned_frames(home: Home) -> list[Path]:
    """Folders of programs that were killed before they deleted what they had handed over."""
    try:
        folders = sorted(path for path in _frames(home).iterdir() if path.is_dir() and not path.is_symlink())
    except (FileNotFoundError, PermissionError):
        return []
    return [folder for folder in folders if not _held(folder)]


def _held(folder: Path) -> bool:
    process = folder.name.partition("-")[0]
    return process.isdecimal() and alive(int(process))


def _frames(home: Home) -> Path:
    return home.root / "frames"


def _lazy(frame: FrameLike) -> pl.LazyFrame:
    if isinstance(frame, pl.LazyFrame):
        return frame
    return (frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(cast(pl.DataFrame, frame))).lazy()
