"""The home: where vault, reports and results of one operator live, and who may touch them."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pldp.errors import HomeError, Outcome
from pldp.tasks.drafts import commit
from pldp.tasks.durable import make_folder
from pldp.tasks.lines import append, entries

_KEY_BYTES = 32
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Home:
    """Folders of a home. Left of the trust boundary (0700): vault, evaluations. Right of it: everything else."""

    root: Path

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def evaluations(self) -> Path:
        return self.root / "evaluations"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def releases(self) -> Path:
        """One folder a release: spec, plan and privacy statement."""
        return self.root / "releases"

    @property
    def pages(self) -> Path:
        """What analysts look at: one page a release, and the index."""
        return self.root / "pages"

    @property
    def results(self) -> Path:
        """The link analysts open."""
        return self.root / "results.duckdb"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def publications(self) -> Path:
        """One line per publication: the hashes of what was published."""
        return self.root / "publications.jsonl"

    @property
    def failures(self) -> Path:
        """One line a scheduled run that did not publish."""
        return self.root / "failures.jsonl"

    def prepare(self) -> Home:
        """Make the folders; files that this process makes from now on are the operator's alone.

        Analysts reach the results, the pages and the releases' statements, nothing else.
        """
        os.umask(0o077)
        try:
            for folder in (self.root, self.releases, self.pages):
                open_folder(folder)
                require_own(folder)
            for folder in (self.vault, self.evaluations, self.reports):
                make_folder(folder)
                require_own(folder, shut=True)
        except OSError as error:
            raise HomeError(
                f"the home cannot be written ({error.strerror})",
                Outcome.NOTHING_READ,
                file=self.root,
                remedy="Give another with --home.",
            ) from None
        return self

    def key(self) -> bytes:
        """The home's secret, made once. It keys whatever must identify private data without revealing it."""
        path = self.vault / "key"
        if not path.exists():
            made, spends = os.urandom(_KEY_BYTES), self.spends()
            since = self._since(made)
            # Older lines do not name their key: whatever they spent was spent under another one.
            if any("key" not in spend for spend in spends):
                commit(since, str(len(spends)).encode())
            if not commit(path, made):
                since.unlink(missing_ok=True)
        key = path.read_bytes()
        if len(key) != _KEY_BYTES:
            raise HomeError(
                f"must have {_KEY_BYTES} bytes",
                Outcome.NOTHING_RUN,
                file=path,
                value=str(len(key)),
                remedy="Restore it from your backup.",
            )
        return key

    def fingerprint(self) -> str:
        """What names the home's key in the ledger, and tells nothing about it."""
        return _fingerprint(self.key())

    def _since(self, key: bytes) -> Path:
        """How many spends the ledger had when this key was made."""
        return self.vault / f"key-{_fingerprint(key)}.since"

    def refuse_lost_key(self, name: str, slot: str) -> None:
        """A slot that was spent under another key would be spent again: with it the same data are another release."""
        spends = list(enumerate(self.spends()))
        same = [(i, spend) for i, spend in spends if (spend.get("name"), spend.get("slot")) == (name, slot)]
        if not same:
            return
        path = self.vault / "key"
        fingerprint, since = None, len(spends)
        if path.exists():
            fingerprint, made = self.fingerprint(), self._since(self.key())
            since = int(made.read_text()) if made.exists() else 0
        for i, spend in same:
            if spend["key"] != fingerprint if "key" in spend else i < since:
                raise HomeError(
                    f"slot {slot!r} of {name!r} was spent by {spend['release_id']} under a key that is "
                    f"{'gone' if fingerprint is None else 'not the one that is there'}, so it cannot be told "
                    "whether this is the same release",
                    Outcome.NOTHING_DRAWN,
                    file=self.ledger,
                    remedy=(
                        f"Restore {path} from your backup, or give another --slot for a new release, which spends "
                        "again."
                    ),
                )

    @contextmanager
    def locked(self, wait: bool = False) -> Iterator[None]:
        """One release a home at a time: the ledger and the results have one writer.

        What the system refuses that writer (a full disk) ends with its words; a stage says it by itself.
        """
        try:
            with (self.root / "lock").open("a+") as handle:
                self._take(handle, wait)
                yield
        except OSError as error:
            if error.errno is None:  # a time-out of somebody else's
                raise
            raise HomeError(
                f"the home cannot be written ({os.strerror(error.errno)})", Outcome.RESUMABLE, file=self.root
            ) from None

    def _take(self, handle: IO[str], wait: bool) -> None:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if not wait:
                    raise HomeError(
                        "another release is running in this home",
                        Outcome.NOTHING_READ,
                        file=self.root,
                        remedy="Wait for it, use --wait, or give another with --home.",
                    ) from None
                time.sleep(_POLL_SECONDS)

    def spends(self) -> list[dict[str, Any]]:
        """Every budget spent in this home, oldest first."""
        return entries(self.ledger)

    def record_spend(self, entry: dict[str, Any]) -> None:
        """Write the spend down before the first draw; a release spends once per unit, however often it resumes."""
        once = (entry["release_id"], entry.get("unit"))
        if any((spent["release_id"], spent.get("unit")) == once for spent in self.spends()):
            return
        append(self.ledger, entry, mode=0o644)  # what was spent is public


def _fingerprint(key: bytes) -> str:
    return hmac.new(key, b"the key of a ledger's line", hashlib.sha256).hexdigest()[:16]


def open_folder(folder: Path) -> None:
    """A folder analysts may enter, if it is new; an existing one keeps its mode."""
    if make_folder(folder):
        folder.chmod(0o755)


def require_own(folder: Path, *, shut: bool = False) -> None:
    """Whoever owns a folder of the home, or may write to it, can put their own vault or settings in its place.

    `shut` takes everybody else's rights away first.
    """
    for status in (folder.lstat(), folder.stat()):  # whoever made a link can lead it elsewhere
        if status.st_uid not in (os.geteuid(), 0):
            raise HomeError(
                f"belongs to another user (number {status.st_uid}), who could read raw values there and run code "
                "as you",
                Outcome.NOTHING_READ,
                file=folder,
                remedy=(
                    "Give a --home that is yours, or make this one yours (chown -R) if nobody else has put "
                    "anything there."
                ),
            )
    if shut:
        folder.chmod(0o700)
    if folder.stat().st_mode & stat.S_IWOTH:
        raise HomeError(
            "every user of this machine can write there, and so put raw values and settings of their own in place of "
            "yours",
            Outcome.NOTHING_READ,
            file=folder,
            remedy=f"Say `chmod o-w {folder}` if nobody has, or give another with --home.",
        )
