"""The inbox: what strangers put there is read, or refused by name and at once; it never holds a release up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pldp.tasks.inbox
from pldp.channels.randomness import Keystream
from pldp.errors import SourceError
from pldp.tasks.collect import collect
from pldp.tasks.inbox import Reason, deliveries, open_delivery, printable
from pldp.tasks.reports import commit_reports
from pldp.tasks.specfile import SpecFile, load_spec
from tests.people import opened, write_spec
from tests.tasks.test_collect import SECTIONS, aside, clients, send

SOON = 10
"""Seconds: a pipe that nobody writes to would take for ever."""


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError("a file of the inbox holds the release up")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SOON)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def file(tmp_path: Path) -> SpecFile:
    """A spec whose clients have sent."""
    spec = write_spec(tmp_path, **SECTIONS)
    send(tmp_path / "inbox", load_spec(spec).plan)
    return load_spec(spec)


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def of_somebody_else(path: Path) -> None:
    """A link to a good file of reports that is another user's alone."""
    theirs = path.parents[2] / "theirs"
    theirs.write_bytes((path.parent / "day-0.parquet").read_bytes())
    theirs.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(theirs, 65534, 65534)
    path.symlink_to(theirs)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
        of_somebody_else,
        Path.mkdir,
        listen,
    ],
)
def test_only_regular_files_are_opened(make: Callable[[Path], None], tmp_path: Path, file: SpecFile) -> None:
    """When the release is opened, which reads everything for its identity, and when reports are collected."""
    bad = tmp_path / "inbox" / "attribute=job" / "level=low" / "bad.parquet"
    make(bad)
    assert set(aside(file, tmp_path / "home-1")) == {Reason.IRREGULAR}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_set_aside(tmp_path: Path, file: SpecFile) -> None:
    bad = tmp_path / "inbox" / "attribute=job" / "level=low" / "bad.parquet"
    try:
        os.mknod(bad, 0o020666, os.makedev(1, 5))
    except OSError:
        pytest.skip("devices are not allowed here")
    assert set(aside(file, tmp_path / "home-2")) == {Reason.IRREGULAR}


def test_folders_within_folders_without_end_are_not_entered(tmp_path: Path, file: SpecFile) -> None:
    place = tmp_path / "inbox" / "attribute=job" / "level=low"
    descriptor = os.open(place, os.O_RDONLY)
    for _ in range(1500):  # a path of that many cannot be made in one piece
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    try:
        assert set(aside(file, tmp_path / "home-3")) == {Reason.IRREGULAR}
    finally:
        subprocess.run(["/bin/rm", "-rf", place / "d"], check=True)  # pytest's own way recurses


def test_a_folder_that_is_a_link_is_set_aside(tmp_path: Path, file: SpecFile) -> None:
    place = tmp_path / "inbox" / "attribute=job" / "level=low"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert set(aside(file, tmp_path / "home-4")) == {Reason.IRREGULAR}


def test_a_file_that_is_exchanged_after_it_was_looked_at_is_not_read(tmp_path: Path, file: SpecFile) -> None:
    one = deliveries(tmp_path / "inbox")[0]
    one.path.rename(tmp_path / "kept")
    one.path.symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match="symbolic links"), open_delivery(one):
        pass
    one.path.unlink()
    os.mkfifo(one.path)
    with pytest.raises(SourceError, match="was changed while it was read"), open_delivery(one):
        pass
    one.path.unlink()
    one.path.write_bytes((tmp_path / "kept").read_bytes())
    with pytest.raises(SourceError, match="was changed while it was read"), open_delivery(one):
        pass


def test_a_file_that_is_written_to_while_it_is_read_is_refused(tmp_path: Path, file: SpecFile) -> None:
    one = deliveries(tmp_path / "inbox")[0]
    with pytest.raises(SourceError, match="was changed while it was read"), open_delivery(one):
        os.utime(one.path, ns=(0, 0))


def test_a_few_bytes_that_claim_many_rows_are_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that repeat cost nothing in Parquet."""
    _, file = clients(tmp_path)
    bomb = tmp_path / "inbox" / "attribute=sex" / "level=low" / "bomb.parquet"
    rows = pa.array([1], pa.uint8()).take(pa.array(np.zeros(pldp.tasks.inbox.MOST_ROWS + 1, dtype=np.int8)))
    pq.write_table(pa.table({"report": rows}), bomb)
    assert bomb.stat().st_size < 1 << 20
    assert set(aside(file, tmp_path / "home-5")) == {Reason.LARGE}
    monkeypatch.setattr(pldp.tasks.inbox, "MOST_BYTES", bomb.stat().st_size - 1)
    assert aside(file, tmp_path / "home-6") == {Reason.LARGE: (1, bomb.stat().st_size)}


@pytest.mark.parametrize("name", [b"\xff\xfe.parquet", b"\x1b[2J.parquet", b"a\nb.parquet"])
def test_names_of_files_are_told_without_harm(name: bytes, tmp_path: Path, file: SpecFile) -> None:
    place = tmp_path / "inbox" / "attribute=job" / "level=low"
    strange = os.fsencode(place) + b"/" + name
    Path(os.fsdecode(strange)).write_bytes(b"no reports")
    assert aside(file, tmp_path / "home-7") == {Reason.SHAPE: (1, 10)}
    path = deliveries(tmp_path / "inbox")[-1].path
    assert printable(path).isprintable()
    printable(path).encode()


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_file_that_is_there_twice_counts_once(compression: str, tmp_path: Path) -> None:
    """However it is packed, and in another folder too."""
    run, file = clients(tmp_path)
    place = tmp_path / "inbox" / "attribute=job"
    table = pq.read_table(place / "level=low" / "day-1.parquet", partitioning=None)
    for level in ("low", "mid"):
        copy = place / f"level={level}" / "again.parquet"
        pq.write_table(table, copy, compression=compression, row_group_size=77)
        assert aside(file, tmp_path / f"home-{level}") == {Reason.REPEATED: (1, 500)}
        copy.unlink()
    assert collect.fn(run, file).n_users == 4500


def test_files_of_one_report_are_equal_by_chance(tmp_path: Path) -> None:
    """A client who delivers its own report alone: with two values half of all files are equal."""
    spec = write_spec(tmp_path, **SECTIONS)
    for question, sheet in load_spec(spec).plan.sheets:
        assert sheet.code is not None
        for user in range(sheet.code, 40, 3):
            answer = {sheet.fields[0]: np.array([0], dtype=np.uint16)}
            report = question.draw(sheet, answer, Keystream.seeded(2, *sheet.labels, user), None)
            commit_reports(tmp_path / "inbox" / sheet.path / f"{user}.parquet", report)
    run, file = opened(spec, tmp_path / "home")
    assert collect.fn(run, file).n_users == 40
