"""The end of raw values: vaults are deleted and seen to be gone, and those that nobody will come back for are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pldp.errors import HomeError, Outcome, SourceError, SpecError
from pldp.tasks.durable import delete_folder, sync_tree
from pldp.tasks.frame_files import abandoned_frames
from pldp.tasks.home import Home
from pldp.tasks.landing import forget_landing
from pldp.tasks.results import UNFINISHED, list_releases
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile

LEFT, KEPT = "left", "kept"
_WHY = {
    LEFT: "nobody needs them; the next release in this home deletes them",
    KEPT: "the spec keeps them; delete the folder when they are not needed",
    UNFINISHED: "the release has spent and is not finished; run its command again, or give it up and delete the folder",
}


@dataclass(frozen=True)
class Vault:
    """Raw values that lie in a home."""

    folder: Path
    state: str

    @property
    def release_id(self) -> str:
        return self.folder.name

    def __str__(self) -> str:
        return f"Raw values in {self.folder}: {_WHY[self.state]}."


def vaults(home: Home) -> list[Vault]:
    """Every vault of a home, and frames that a killed program left; none for whoever may not look."""
    frames = [Vault(folder, LEFT) for folder in abandoned_frames(home)]
    try:
        folders = sorted(path for path in home.vault.iterdir() if path.is_dir() and not path.is_symlink())
    except (FileNotFoundError, PermissionError):
        return frames
    if not folders:
        return frames
    states = dict(list_releases(home.root).select("release_id", "status").iter_rows())
    return [*(Vault(folder, _state(home, folder.name, states.get(folder.name))) for folder in folders), *frames]


def settle_vault(run: Run) -> None:
    """Once it is drawn from, a vault must not be lost before the draws are."""
    sync_tree(run.vault.parent)


def sweep_vaults(run: Run) -> None:
    """Delete the vaults of other runs that are finished, or from which nothing was ever drawn. Under the home's lock.

    One that was read but never drawn from is filled anew if its release is run again. One that has spent stays, for
    its release draws what is missing from it, and from no other.
    """
    for vault in vaults(run.home):
        if vault.state == LEFT and vault.release_id != run.release_id:
            _delete(vault.folder, "of an earlier run, which left them over", Outcome.NOTHING_RUN)


def forget_vault(run: Run, file: SpecFile, status: str | None = None) -> None:
    """The end of the raw values, unless the spec keeps them; of what was exported in any case."""
    forget_landing(file)
    if file.spec.retention.vault == "delete":
        state = "ended" if status is None else "is published" if status == "published" else f"was {status}"
        kind = "evaluation" if run.evaluation else "release"
        _delete(run.vault.parent, f"of {kind} {run.release_id}, which {state} and needs them no more")


@contextmanager
def leaving_nothing(run: Run, file: SpecFile) -> Iterator[None]:
    """A source or spec that is refused before anything was spent leaves no folders behind."""
    try:
        yield
    except (SourceError, SpecError):
        forget_landing(file)
        spent = {spend["release_id"] for spend in run.home.spends()}
        if not run.evaluation and run.release_id not in spent and not any(run.reports.rglob("*.parquet")):
            for folder in (run.vault.parent, run.reports, run.folder):
                _delete(folder, "of a source that was refused", Outcome.NOTHING_PUBLISHED)
        raise


def _delete(folder: Path, whose: str, outcome: Outcome = Outcome.AS_BEFORE) -> None:
    reason = delete_folder(folder)
    if reason is not None:
        raise HomeError(
            f"raw values {whose}, could not be deleted ({reason})",
            outcome,
            file=folder,
            remedy="Mend the cause and run the same command again, which deletes them, or delete the folder yourself.",
        )


def _state(home: Home, release_id: str, status: str | None) -> str:
    """`status` None: it never spent. Without its line in the ledger, too, reports that exist were drawn from it."""
    if status in (None, UNFINISHED):
        return UNFINISHED if status or any((home.reports / release_id).rglob("*.parquet")) else LEFT
    return KEPT if _keeps(home.releases / release_id / "spec.json") else LEFT


def _keeps(spec: Path) -> bool:
    """What the spec says of the vault; one that cannot be read is taken to keep it."""
    try:
        retention = json.loads(spec.read_text()).get("retention") or {}
    except (OSError, ValueError):
        return True
    return bool(retention.get("vault") == "keep")
