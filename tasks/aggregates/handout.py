"""Hand out: what one provider gets of a release, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from pldp.errors import Outcome, RequestError, quoted
from pldp.tasks.export import replacing
from pldp.tasks.home import Home
from pldp.tasks.results import PublishedRelease, read_release


def hand_out(home: Path, wanted: str, provider: str, folder: Path, *, force: bool = False) -> list[str]:
    """Copy a provider's report files of a published release into a folder; their names.

    A copy is what was drawn once: handing it out again spends nothing.
    """
    release = read_release(home, wanted)
    _refuse_unknown(release, provider)
    files = sorted((Home(home).reports / release.release_id / f"provider={provider}").glob("*.parquet"))
    if not files:
        raise RequestError(
            f"the reports of release {release.release_id} are not stored here any more",
            Outcome.NOTHING_WRITTEN,
            file=home,
            remedy="They are never drawn again: a further release spends its own budget.",
        )
    names = [f"{provider}-{file.name}" for file in files]
    present = [name for name in names if (folder / name).exists()]
    if present and not force:
        raise RequestError(
            f"{present[0]} would be overwritten",
            Outcome.NOTHING_WRITTEN,
            file=folder,
            remedy="Give another folder, or --force.",
        )
    with replacing(folder, names, "reports") as draft:
        for file, name in zip(files, names, strict=True):
            shutil.copyfile(file, draft / name)
    return names


def _refuse_unknown(release: PublishedRelease, provider: str) -> None:
    if release.status != "published":
        raise RequestError(
            f"Release {release.release_id} was refused ({release.failed_gates()}): no provider gets its reports",
            Outcome.NOTHING_WRITTEN,
        )
    known = release.tables["aggregates"]["provider"].unique(maintain_order=True).to_list()
    if not known:
        raise RequestError(
            f"Release {release.release_id} has no providers: only releases of kind aggregates have",
            Outcome.NOTHING_WRITTEN,
        )
    if provider not in known:
        raise RequestError(
            f"must be one of release {release.release_id}'s: {', '.join(known)}",
            Outcome.NOTHING_WRITTEN,
            field="--provider",
            value=quoted(provider),
        )
