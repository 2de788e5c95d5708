"""A home of an older version: what was spent there is not spent again because this version reads a spec otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pldp.errors import HomeError
from pldp.flows.release import record_spend
from pldp.tasks.items.file import ItemsFile
from pldp.tasks.items.run import ItemsRun
from tests.baskets import ITEMS, make_rows, opened, world, write_spec

SENSITIVITY = {"of": 2, "levels": dict.fromkeys(ITEMS, 1)}


def spent_before(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Path, ItemsRun]:
    """A spec, and what a version before 0.3 spent on it: one that had no sensitivity.split and named no key."""
    spec = world(folder, 50, sensitivity=SENSITIVITY)
    present = ItemsFile.public.fget  # type: ignore[attr-defined]  # mypy knows the property's type alone

    def public(file: ItemsFile) -> str:
        content = json.loads(present(file))
        del content["sensitivity"]["split"]
        return json.dumps(content, ensure_ascii=False)

    with patch.context() as older:
        older.setattr(ItemsFile, "public", property(public))
        run, _ = opened(spec, folder / "home")
        record_spend(run, "manual")
    line = json.loads(run.home.ledger.read_text())
    del line["key"]
    run.home.ledger.write_text(json.dumps(line) + "\n")
    return spec, run


def test_a_slot_is_not_spent_again_where_a_new_version_reads_the_spec_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, run = spent_before(tmp_path, monkeypatch)
    with pytest.raises(HomeError, match=rf"spent by {run.release_id} of an older version, on this source.* --slot"):
        opened(spec, run.home.root)
    assert [folder.name for folder in run.home.releases.iterdir()] == [run.release_id], "a refusal leaves nothing"
    # What tells the two apart is gone.
    (run.folder / "spec.json").rename(tmp_path / "away")
    with pytest.raises(HomeError, match=r"spec.json is gone, so it cannot be told"):
        opened(spec, run.home.root)


def test_another_slot_source_or_evaluation_goes_on_after_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, run = spent_before(tmp_path, monkeypatch)
    opened(spec, run.home.root, "other")
    opened(spec, run.home.root, evaluation=True)
    make_rows(50, seed=2).write_parquet(tmp_path / "rows.parquet")
    other, _ = opened(spec, run.home.root)
    record_spend(other, "manual")
    assert opened(spec, run.home.root)[0] == other
    # A spend of this version names its key: a changed spec is another release, as ever.
    write_spec(tmp_path, sensitivity=SENSITIVITY, budget={"total": 3})
    assert opened(spec, run.home.root)[0].release_id not in (run.release_id, other.release_id)
