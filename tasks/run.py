"""A run: one release or evaluation, as a reference that tasks can ship. It carries names and paths, never data."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from pldp.channels.randomness import Keystream
from pldp.errors import HomeError, SourceError, SpecError
from pldp.questions.histograms.plan import Plan
from pldp.questions.histograms.statement import privacy_statement
from pldp.spec.release import Retention
from pldp.spec.runner import Runner
from pldp.tasks.durable import make_folder
from pldp.tasks.home import Home, commit, open_folder, sweep
from pldp.tasks.inbox import deliveries, open_delivery
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stamps import Stamp, require_unchanged, stamp

_CHUNK = 1 << 20
R = TypeVar("R", bound="AnyRun")


class AnySpec(Protocol):
    """What every kind of spec says."""

    @property
    def name(self) -> str: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def runner(self) -> Runner: ...


class AnyPlan(Protocol):
    """What every kind of plan can tell."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def worst_total(self) -> Fraction: ...
    def model_dump_json(self) -> str: ...


class AnyFile(Protocol):
    """A valid spec of whatever kind, and the plan it resolves to."""

    @property
    def path(self) -> Path: ...
    @property
    def spec(self) -> AnySpec: ...
    @property
    def plan(self) -> AnyPlan: ...
    @property
    def public(self) -> str: ...
    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True)
class AnyRun:
    """A run of whatever kind. `seed` is for evaluations; a release draws from the kernel and accepts none."""

    root: str
    release_id: str
    evaluation: bool = False
    seed: int | None = None
    inputs: tuple[Stamp, ...] = field(default=(), compare=False)
    """The files whose content is part of its identity, as they were when it was hashed."""

    def require_unchanged(self, path: Path | None = None) -> None:
        """After reading: the inputs, or one of them, are what the run is named after."""
        require_unchanged(
            [seen for seen in self.inputs if path is None or seen.path == str(path)], "Nothing was published."
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

    @property
    def plan(self) -> AnyPlan:
        raise NotImplementedError

    def statement(self, n_users: int) -> dict[str, Any]:
        """The privacy statement."""
        raise NotImplementedError

    @property
    def spec_sha256(self) -> str:
        return hashlib.sha256((self.folder / "spec.json").read_bytes()).hexdigest()

    def stream(self, *labels: str | int) -> Keystream:
        """A fresh stream for one task run; the kernel's in a release."""
        return Keystream.secure() if self.seed is None else Keystream.seeded(self.seed, *labels)


class Run(AnyRun):
    """A run that ends in histograms."""

    @property
    def plan(self) -> Plan:
        return _read_plan(self.folder / "plan.json")

    def statement(self, n_users: int) -> dict[str, Any]:
        return privacy_statement(self.plan, self.release_id, n_users)

    def report_file(self, attribute: str, level: str | None, partition: int) -> Path:
        """Reports of one attribute and level; of all levels where they are hidden (None)."""
        folder = self.reports / f"attribute={attribute}"
        return (folder if level is None else folder / f"level={level}") / f"{partition:05d}.parquet"

    def numbers_file(self, level: str, partition: int) -> Path:
        """Reports on all numbers of one level: who samples what is drawn once, with the answers."""
        return self.reports / "numbers" / f"level={level}" / f"{partition:05d}.parquet"

    def level_file(self, attribute: str | None, partition: int) -> Path:
        """Hidden levels: the reports about the level itself, of one attribute or of all (None)."""
        return self.reports / ("levels" if attribute is None else f"levels={attribute}") / f"{partition:05d}.parquet"


@lru_cache(maxsize=8)
def _read_plan(path: Path) -> Plan:
    return Plan.model_validate_json(path.read_bytes())


def open_run(home: Home, file: SpecFile, slot: str, *, evaluation: bool = False, seed: int | None = None) -> Run:
    """The run of this identity: spec, snapshot of the source, and schedule slot. The same identity resumes.

    A hash of private data would let anyone confirm a guess at it, so the snapshot is keyed with the home's secret.
    """
    reference = file.spec.combination.reference
    if not evaluation and reference is not None and reference.kind == "truth":
        raise SpecError(
            f"{file.path}: combination.reference.kind must be public or previous in a release (got 'truth'): "
            "the true histogram is private. Use `pldp evaluate`. Nothing was run."
        )
    if not evaluation and file.plan.recipe.method == "emoa-paper":
        raise SpecError(
            f"{file.path}: combination.method must not be emoa-paper in a release: it is wrong, and here to be "
            "compared with. Use em, or `pldp evaluate`. Nothing was run."
        )
    inputs = [file.source]
    if reference is not None and reference.path is not None:
        inputs.append(file.resolve(reference.path))
    return open_kind(Run, home, file, inputs, slot, evaluation=evaluation, seed=seed)


def open_kind(
    kind: type[R],
    home: Home,
    file: AnyFile,
    inputs: Sequence[Path],
    slot: str,
    *,
    evaluation: bool,
    seed: int | None,
    read: Sequence[Stamp] = (),
) -> R:
    """Open a run of this kind; what its `inputs` hold is part of its identity. The plan has `read` some before."""
    if not re.fullmatch(r"[A-Za-z0-9_.:+-]{1,64}", slot):
        raise SpecError(f"slot must be 1 to 64 letters, digits or _.:+- (got {slot!r}). Nothing was run.")
    if not evaluation:
        home.refuse_lost_key(file.spec.name, slot)
    seen = tuple(_stamp(path) for path in inputs)
    snapshots = [_snapshot(home.key(), path) for path in inputs]
    require_unchanged([*read, *seen], "Nothing was run.")
    rest = [*snapshots, slot, "evaluation" if evaluation else "release", str(seed)]
    run = kind(str(home.root), _identity(home, file.spec.name, [file.sha256, *rest]), evaluation, seed, seen)
    if not evaluation:
        _refuse_read_anew(run, file.spec.name, slot, rest)
    if not evaluation:
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


def _refuse_read_anew(run: AnyRun, name: str, slot: str, rest: Sequence[str]) -> None:
    """A slot that an older version spent on this source is not spent again because this one reads the spec otherwise.

    A key that a version adds to the spec makes another release of the same file. Lines of the ledger before 0.3 name no
    key; with the spec as it was stored then, this source and this slot give their id.
    """
    spends = [spend for spend in run.home.spends() if (spend.get("name"), spend.get("slot")) == (name, slot)]
    if any(spend["release_id"] == run.release_id for spend in spends):
        return
    for earlier in (spend["release_id"] for spend in spends if "key" not in spend):
        stored = run.home.releases / earlier / "spec.json"
        if not stored.exists():
            known = f"and {stored} is gone, so it cannot be told whether this is the same release"
        elif _identity(run.home, name, [hashlib.sha256(stored.read_bytes()).hexdigest(), *rest]) == earlier:
            known = "on this source, and this version reads the spec otherwise, or it was changed"
        else:
            continue
        raise HomeError(
            f"{run.home.ledger}: slot {slot!r} of {name!r} was spent by {earlier} of an older version, {known}. "
            f"`pldp show {earlier}` has what it published; give another --slot for a new release, which spends again. "
            "Nothing was drawn."
        )


def _opening(run: AnyRun, name: str) -> datetime:
    """Now, but later than every earlier run of the name: the newest is the last opened, whatever the clock says."""
    now = datetime.now(UTC)
    if (run.folder / "opened.json").exists():
        return now
    earlier = [path for path in run.folder.parent.glob("*/opened.json") if path.parent.name[:-13] == name]
    last = max((datetime.fromisoformat(json.loads(path.read_text())["at"]) for path in earlier), default=None)
    return now if last is None else max(now, last + timedelta(microseconds=1))


def _stamp(source: Path) -> Stamp:
    try:
        return stamp(source)
    except OSError as error:
        raise _missing(source, error) from None


def _missing(source: Path, error: OSError) -> SourceError:
    return SourceError(
        f"{source}: cannot be read ({error.strerror}). Correct the path in the spec, or give --source. Nothing was run."
    )


def _snapshot(key: bytes, source: Path) -> str:
    mac = hmac.new(key, digestmod=hashlib.sha256)
    try:
        if not source.is_dir():
            mac.update(f".\n{source.stat().st_size}\n".encode())
            with source.open("rb") as handle:
                _hash(mac, handle)
        else:
            for delivery in deliveries(source):
                name = os.fsencode(delivery.path.relative_to(source))
                mac.update(name + f"\n{delivery.size}\n".encode())
                with open_delivery(delivery) as handle:
                    _hash(mac, handle)
    except OSError as error:
        raise _missing(source, error) from None
    return mac.hexdigest()


def _hash(mac: hmac.HMAC, handle: IO[bytes]) -> None:
    while chunk := handle.read(_CHUNK):
        mac.update(chunk)
