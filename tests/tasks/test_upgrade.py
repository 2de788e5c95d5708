"""A home of an older version: what was spent there is not spent again because this version reads a spec otherwise.

Lines of the ledger that name no format are of a version before one pipeline, which gave releases other identities.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from pldp.errors import HomeError
from pldp.flows.release import record_spend
from pldp.tasks.home import Home
from pldp.tasks.run import FORMAT, Run
from tests import baskets, items, people
from tests.flows.test_migration import ARCHIVE
from tests.people import digests

KINDS = {"survey": people, "films": items, "baskets": baskets}
"""A spec of the same name as a release of the earlier version, and of the same kind."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """As the earlier version left it, its key apart."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "home", filter="data")
    return Home(tmp_path / "home").prepare()


def named(spec: Path, name: str) -> Path:
    """The same spec under a name."""
    content = yaml.safe_load(spec.read_text())
    spec.write_text(yaml.safe_dump({**content, "name": name}, sort_keys=False))
    return spec


def with_its_key(home: Home) -> None:
    """The archive has no vault; this is the home as if its key were the one of the ledger."""
    lines = [{**line, "key": home.fingerprint()} for line in home.spends()]
    home.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize(("name", "kind"), KINDS.items(), ids=KINDS)
def test_a_slot_of_the_earlier_version_is_never_drawn_again(
    name: str, kind: ModuleType, key: bool, home: Home, tmp_path: Path
) -> None:
    """Whatever the spec and the source are by now; the error names the earlier release and the remedy."""
    if key:
        with_its_key(home)
    spec = named(kind.world(tmp_path / "world"), name)
    earlier = next(line["release_id"] for line in home.spends() if line["name"] == name)
    before = digests(home.root)
    said = (
        rf"slot 'past' of '{name}' was spent by {earlier} of an older version.*`pldp show {earlier}`.* another --slot"
    )
    with pytest.raises(HomeError, match=said) as refused:
        kind.opened(spec, home.root, "past")
    assert str(refused.value).endswith("Nothing was drawn.")
    assert str(home.ledger) in str(refused.value)
    assert digests(home.root) == before, "a refusal leaves nothing"
    assert not list(home.reports.iterdir())


@pytest.mark.parametrize(("name", "kind"), KINDS.items(), ids=KINDS)
def test_another_slot_name_or_evaluation_goes_on_after_an_upgrade(
    name: str, kind: ModuleType, home: Home, tmp_path: Path
) -> None:
    with_its_key(home)
    spec = named(kind.world(tmp_path / "world"), name)
    run, _ = kind.opened(spec, home.root, "now")
    record_spend(run, "now")
    assert home.spends()[-1]["format"] == FORMAT
    assert kind.opened(spec, home.root, "now")[0] == run, "what this version has spent is resumed"
    kind.opened(spec, home.root, "past", evaluation=True)
    kind.opened(named(spec, "another"), home.root, "past")


def spent(folder: Path, *, older: bool) -> tuple[Path, Run]:
    """A release that has spent and not finished; of an older version, if its line names no format."""
    spec = people.world(folder)
    run, _ = people.opened(spec, folder / "home")
    record_spend(run, "manual")
    if older:
        lines = [{name: value for name, value in line.items() if name != "format"} for line in run.home.spends()]
        run.home.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return spec, run


def test_an_unfinished_release_of_the_earlier_version_is_refused_not_redrawn(tmp_path: Path) -> None:
    """Also where this version would give it the same identity, another one, or nothing is left of it but its line."""
    spec, run = spent(tmp_path, older=True)
    for change in (lambda: None, lambda: people.write_spec(tmp_path, budget={"total": 3}), lambda: _forget(run)):
        change()
        with pytest.raises(HomeError, match=rf"spent by {run.release_id} of an older version"):
            people.opened(spec, run.home.root)
    assert not list(run.home.releases.iterdir())


def _forget(run: Run) -> None:
    shutil.rmtree(run.folder)


def test_a_spend_of_this_version_is_resumed_and_a_changed_spec_is_another_release(tmp_path: Path) -> None:
    spec, run = spent(tmp_path, older=False)
    assert people.opened(spec, run.home.root)[0] == run
    people.write_spec(tmp_path, budget={"total": 3})
    assert people.opened(spec, run.home.root)[0].release_id != run.release_id


def test_what_a_later_version_adds_to_specs_makes_no_other_release(tmp_path: Path) -> None:
    """The identity is what a spec states: a default that is written out, or not known yet, is no other release."""
    spec, run = spent(tmp_path, older=False)
    people.write_spec(tmp_path, combination={"method": None}, retention={"vault": "delete"})
    assert people.opened(spec, run.home.root)[0] == run
