"""A run: one release or evaluation, as a reference that tasks can ship. It carries names and paths, never data."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import IO

from pldp.channels.randomness import Keystream
from pldp.errors import HomeError, Outcome, SourceError, SpecError, quoted
from pldp.questions.plan import Plan
from pldp.questions.question import Sheet
from pldp.tasks.drafts import commit, sweep
from pldp.tasks.durable import make_folder
from pldp.tasks.home import Home, open_folder
from pldp.tasks.inbox import deliveries, open_delivery
from pldp.tasks.sources.listing import list_files, names_many
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stamps import Stamp, require_unchanged, stamp

_CHUNK = 1 << 20
ANSWERED = "answered.json"
"""Where clients sent no report on some question: the paths of all sheets with reports."""
FORMAT = 2
"""Of runs: what an older one has drawn is never drawn again by this one."""


@dataclass(frozen=True)
class Run:
    """One release or evaluation. `seed` is for evaluations; a release draws from the kernel and accepts none."""

    root: str
    release_id: str
    evaluation: bool = False
    seed: int | None = None
    inputs: tuple[Stamp, ...] = field(default=(), compare=False)
    """The files whose content is part of its identity, as they were when it was hashed."""

    def require_unchanged(self, path: Path | None = None) -> None:
        """After reading: the inputs, or one of them, are what the run is named after."""
        require_unchanged(
            [seen for seen in self.inputs if path is None or seen.path == str(path)], Outcome.NOTHING_PUBLISHED
        )

    def __post_init__(self) -> None:
        if self.seed is not None and not self.evaluation:
            raise ValueError("a release accepts no seed")

    @property
    def home(self) -> Home:
        return Home(Path(self.root))

    @property
    def folder(self) -> Path:
        """Spec and plan; an evaluation keeps everything on the vault's side."""
        return (self.home.evaluations if self.evaluation else self.home.releases) / self.release_id

    @property
    def vault(self) -> Path:
        return (self.folder / "vault" if self.evaluation else self.home.vault / self.release_id) / "vault.duckdb"

    @property
    def reports(self) -> Path:
        return self.folder / "reports" if self.evaluation else self.home.reports / self.release_id

    def partition_file(self, partition: int) -> Path:
        """Rows of the vault, for a worker to perturb."""
        return self.vault.with_name("partitions") / f"{partition:05d}.parquet"

    def report_file(self, sheet: Sheet, partition: int) -> Path:
        return self.reports / sheet.path / f"{partition:05d}.parquet"

    @property
    def adapted(self) -> Path:
        """What a second phase is asked; public, for it follows from reports."""
        return self.folder / "candidates.json"

    @property
    def plan(self) -> Plan:
        return _read_plan(self.folder / "plan.json")

    @property
    def answered(self) -> Plan:
        """The plan without what nobody answered: what estimates are made of. Where the vault draws, everybody does."""
        path = self.folder / ANSWERED
        return _read_answered(self.folder) if path.exists() else self.plan

    @property
    def spec_sha256(self) -> str:
        return hashlib.sha256((self.folder / "spec.json").read_bytes()).hexdigest()

    def stream(self, *labels: str | int) -> Keystream:
        """A fresh stream for one task run; the kernel's in a release."""
        return Keystream.secure() if self.seed is None else Keystream.seeded(self.seed, *labels)


@lru_cache(maxsize=8)
def _read_plan(path: Path) -> Plan:
    return Plan.model_validate_json(path.read_bytes())


@lru_cache(maxsize=8)
def _read_answered(folder: Path) -> Plan:
    return _read_plan(folder / "plan.json").answered(json.loads((folder / ANSWERED).read_bytes()))


def require_slot(slot: str) -> None:
    """The name of a slot names folders too."""
    if not re.fullmatch(r"[A-Za-z0-9_.:+-]{1,64}", slot) or not slot.strip("."):
        rule = "must be 1 to 64 letters, digits or _.:+-, and not dots alone"
        raise SpecError(rule, Outcome.NOTHING_RUN, field="slot", value=quoted(slot))


def open_run(home: Home, file: SpecFile, slot: str, *, evaluation: bool = False, seed: int | None = None) -> Run:
    """The run of this identity: spec, snapshot of what it reads, and schedule slot. The same identity resumes.

    A hash of private data would let anyone confirm a guess at it, so the snapshot is keyed with the home's secret.
    """
    require_slot(slot)
    if not evaluation:
        _refuse_older(home, file.spec.name, slot)
        home.refuse_lost_key(file.spec.name, slot)
    if file.spec.source.remote and file.landed is None:
        raise ValueError("rows of a server are exported before their run is opened")
    seen = tuple(_stamp(path, reports=path == file.reports) for path in file.inputs)
    snapshots = [_snapshot(home.key(), path, reports=path == file.reports) for path in file.inputs]
    require_unchanged([*file.read, *seen], Outcome.NOTHING_RUN)
    parts = [file.identity, *snapshots, slot, "evaluation" if evaluation else "release", str(seed)]
    run = Run(str(home.root), _identity(home, file.spec.name, parts), evaluation, seed, seen)
    if not evaluation:
        file.refuse_release()
        open_folder(run.folder)
    for folder in (run.folder, run.vault.parent, run.reports):
        make_folder(folder)
    # Whoever died in this run, or before it, left drafts; their names never come back. A release holds the home's lock,
    # so nobody is writing one now; an evaluation does not, and looks after its own.
    for place in (run.folder,) if evaluation else (home.root, home.vault, home.pages, run.folder):
        sweep(place.glob(".*"))
    sweep(run.reports.rglob(".*"))
    opened = {"at": _opening(run, file.spec.name).isoformat(), "slot": slot}
    for name, content in (
        ("spec.json", file.public),
        ("plan.json", file.plan.model_dump_json()),
        ("opened.json", json.dumps(opened)),
    ):
        commit(run.folder / name, content.encode(), mode=0o644)
    return run


def _identity(home: Home, name: str, parts: Sequence[str]) -> str:
    digest = hmac.new(home.key(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()
    return f"{name}-{digest[:12]}"


def _refuse_older(home: Home, name: str, slot: str) -> None:
    """A slot that an older version spent is not spent again, whatever identity this one gives the same release."""
    for spend in home.spends():
        if (spend.get("name"), spend.get("slot")) == (name, slot) and "format" not in spend:
            earlier = spend["release_id"]
            raise HomeError(
                f"slot {slot!r} of {name!r} was spent by {earlier} of an older version, which this one does not resume",
                Outcome.NOTHING_DRAWN,
                file=home.ledger,
                remedy=(
                    f"`pldp show {earlier}` has what it published, if it came to that; give another --slot for a "
                    "new release, which spends again."
                ),
            )


def _opening(run: Run, name: str) -> datetime:
    """Now, but later than every earlier run of the name: the newest is the last opened, whatever the clock says."""
    now = datetime.now(UTC)
    if (run.folder / "opened.json").exists():
        return now
    earlier = [path for path in run.folder.parent.glob("*/opened.json") if path.parent.name[:-13] == name]
    last = max((datetime.fromisoformat(json.loads(path.read_text())["at"]) for path in earlier), default=None)
    return now if last is None else max(now, last + timedelta(microseconds=1))


def _stamp(source: Path, *, reports: bool) -> Stamp:
    try:
        return stamp(source, reports=reports)
    except OSError as error:
        raise _missing(source, error) from None


def _missing(source: Path, error: OSError) -> SourceError:
    return SourceError(
        f"cannot be read ({error.strerror})",
        Outcome.NOTHING_RUN,
        file=source,
        remedy="Correct the path in the spec, or give --source.",
    )


def _snapshot(key: bytes, source: Path, *, reports: bool) -> str:
    """A keyed hash of the content of a file, or of the names and contents of several."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    try:
        if not reports and names_many(source):
            for file in list_files(source, Outcome.NOTHING_RUN):
                name = os.fsencode(file.name)
                mac.update(f"{len(name)}\n{file.size}\n".encode() + name)
                with file.path.open("rb") as handle:
                    _hash(mac, handle)
        elif not source.is_dir():
            mac.update(f".\n{source.stat().st_size}\n".encode())
            with source.open("rb") as handle:
                _hash(mac, handle)
        else:
            for delivery in deliveries(source):
                name = os.fsencode(delivery.path.relative_to(source))
                mac.update(name + f"\n{delivery.size}\n".encode())
                with suppress(PermissionError):  # set aside when reports are collected
                    if delivery.problem is None:
                        with open_delivery(delivery) as handle:
                            _hash(mac, handle)
    except OSError as error:
        raise _missing(source, error) from None
    return mac.hexdigest()


def _hash(mac: hmac.HMAC, handle: IO[bytes]) -> None:
    while chunk := handle.read(_CHUNK):
        mac.update(chunk)
