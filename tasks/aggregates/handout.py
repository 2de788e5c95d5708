"""Hand out: what one provider gets of a release, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from pldp.errors import RequestError
from pldp.tasks.export import replacing
from pldp.tasks.home import Home
from pldp.tasks.results import PublishedRelease, read_release

_NOTHING = "Nothing was written."


def hand_out(home: Path, wanted: str, provider: str, folder: Path, *, force: bool = False) -> list[str]:
    """Copy a provider's report files of a published release into a folder; their names.

    A copy is what was drawn once: handing it out again spends nothing.
    """
    found = read_release(home, wanted)
    _refuse_unknown(found, provider)
    files = sorted((Home(home).reports / found.release_id / f"provider={provider}").glob("*.parquet"))
    if not files:
        raise RequestError(
            f"{home}: the reports of release {found.release_id} are not stored here any more. They are never drawn "
            f"again: a further release spends its own budget. {_NOTHING}"
        )
    names = [f"{provider}-{file.name}" for file in files]
    present = [name for name in names if (folder / name).exists()]
    if present and not force:
        raise RequestError(f"{folder}: {present[0]} would be overwritten. Give another folder, or --force. {_NOTHING}")
    with replacing(folder, names, "reports", "The release is as it was.") as draft:
        for file, name in zip(files, names, strict=True):
            shutil.copyfile(file, draft / name)
    return names


def _refuse_unknown(found: PublishedRelease, provider: str) -> None:
    if found.status != "published":
        raise RequestError(
            f"Release {found.release_id} was refused ({found.failed_gates()}): no provider gets its reports. {_NOTHING}"
        )
    known = found.tables["aggregates"]["provider"].unique(maintain_order=True).to_list()
    if not known:
        raise RequestError(
            f"Release {found.release_id} has no providers: only releases of kind aggregates have. {_NOTHING}"
        )
    if provider not in known:
        raise RequestError(
            f"--provider must be one of release {found.release_id}'s: {', '.join(known)} (got {provider!r}). {_NOTHING}"
        )
