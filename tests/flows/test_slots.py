"""The rules of slots: which are skipped, and that one never spends twice."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelled, Completed, Running, Scheduled

from pldp.errors import HomeError, SourceError, SpecError
from pldp.flows import deployments, schedule, server
from pldp.flows.deployments import close_abandoned, first_slots, run_schedules, skip_missed
from pldp.flows.schedule import scheduled_release
from pldp.flows.serve import served
from pldp.tasks.failures import COMMAND, read_failures
from pldp.tasks.home import Home
from pldp.tasks.run import FORMAT
from pldp.tasks.specfile import load_spec
from tests.flows.conftest import Pldp
from tests.people import make_people, world

NOW = datetime.now(UTC)
SLOT = "2026-01-02T03:00Z"


class Client:
    """Answers with runs, and remembers the states that were set."""

    def __init__(self, *runs: FlowRun) -> None:
        self.found = list(runs)
        self.states: dict[UUID, str] = {}

    async def read_flow_runs(self, *, flow_run_filter: Any, limit: int, offset: int) -> list[FlowRun]:
        wanted = flow_run_filter.state.type.any_
        return [run for run in self.found if run.state and run.state.type in wanted][offset : offset + limit]

    async def set_flow_run_state(self, run_id: UUID, state: Any, force: bool) -> None:
        self.states[run_id] = state.name


def planned(late: timedelta, *, auto: bool = True, count: int = 0, state: Any = None) -> FlowRun:
    due = datetime.now(UTC) - late
    return FlowRun(
        flow_id=uuid4(),
        expected_start_time=due,
        auto_scheduled=auto,
        run_count=count,
        state=state or Scheduled(scheduled_time=due),
        parameters={"spec_path": "spec.yaml", "home": "home"},
    )


def test_slots_missed_for_days_are_skipped_and_nothing_else_is() -> None:
    missed = [planned(timedelta(hours=hours)) for hours in range(1, 500)]  # more than a page
    kept = [
        planned(timedelta(minutes=9)),  # a restart
        planned(-timedelta(minutes=5)),  # to come
        planned(timedelta(days=1), auto=False),  # an operator asked for it
        planned(timedelta(days=1), count=1),  # a retry
    ]
    client = Client(*missed, *kept)
    assert asyncio.run(skip_missed(client, [uuid4()])) == len(missed)  # type: ignore[arg-type]
    assert client.states == dict.fromkeys((run.id for run in missed), "Skipped")


def test_what_a_killed_serve_left_is_told_unless_it_lives(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    run = planned(timedelta(minutes=3), count=1, state=Running())
    run = run.model_copy(update={"parameters": {"spec_path": "spec.yaml", "home": str(home.root)}})
    client: Any = Client(run)
    with home.locked():
        assert asyncio.run(close_abandoned(client, [uuid4()], home.root)) == 0
    assert client.states == {}
    assert asyncio.run(close_abandoned(client, [uuid4()], home.root)) == 1
    assert client.states == {run.id: "Crashed"}
    (failure,) = read_failures(home)
    assert failure.error == "Stopped"
    assert failure.resume.startswith("pldp release spec.yaml")


def test_grace_is_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    assert schedule.is_missed(NOW - timedelta(minutes=11), NOW)
    monkeypatch.setenv(schedule.GRACE, "60")
    assert not schedule.is_missed(NOW - timedelta(minutes=11), NOW)


@pytest.mark.parametrize(
    ("late", "cron", "superseded"),
    [(30, "*/5 * * * *", True), (30, "0 0 1 1 *", False), (5, "* * * * *", False)],
)
def test_a_slot_that_waited_gives_way_only_to_the_next(tmp_path: Path, late: int, cron: str, superseded: bool) -> None:
    file = load_spec(world(tmp_path, schedule=cron))
    assert schedule._is_superseded(file, NOW - timedelta(minutes=late), NOW) is superseded


@pytest.mark.usefixtures("server")
class TestRuns:
    def test_a_slot_spends_once_even_when_its_source_changes(self, tmp_path: Path) -> None:
        spec, home = world(tmp_path), Home(tmp_path / "home")
        first = scheduled_release(str(spec), str(home.root), SLOT, return_state=True)
        world(tmp_path, make_people(1500, seed=2))
        second = scheduled_release(str(spec), str(home.root), SLOT, return_state=True)
        (spent,) = home.spends()
        assert spent["slot"] == SLOT
        assert first.message == f"{spent['release_id']} published"
        assert second.message == f"{spent['release_id']} is there already; nothing was drawn"

    def test_a_slot_that_was_begun_is_not_begun_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.delenv(COMMAND, raising=False)
        spec, home = world(tmp_path), Home(tmp_path / "home").prepare()
        begun = {"release_id": "people-000000000000", "name": "people", "slot": SLOT, "key": home.fingerprint()}
        home.record_spend({**begun, "format": FORMAT})
        with pytest.raises(SpecError, match="was begun as people-000000000000"):
            scheduled_release(str(spec), str(home.root), SLOT)
        assert len(home.spends()) == 1
        assert [failure.error for failure in read_failures(home)] == ["SpecError"]

    def test_a_refused_release_is_a_failure(self, tmp_path: Path) -> None:
        spec, home = world(tmp_path, gates={"minimum_users": 10_000}), Home(tmp_path / "home")
        state: Any = scheduled_release(str(spec), str(home.root), SLOT, return_state=True)
        assert state.is_failed()
        assert [failure.error for failure in read_failures(home)] == ["GateFailed"]

    def test_releases_mentions_failures(self, tmp_path: Path, pldp: Pldp) -> None:
        spec, home = world(tmp_path), Home(tmp_path / "home")
        (tmp_path / "people.parquet").unlink()
        with pytest.raises(SourceError):
            scheduled_release(str(spec), str(home.root), SLOT)
        said = pldp("releases", "--home", home.root)
        assert "1 scheduled runs failed" in said.out
        assert f"--slot {SLOT}" in said.out

    def test_a_temporary_server_is_refused(self, tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """It would accept the schedule and never fire it."""
        monkeypatch.setattr(deployments, "SCHEDULER_SECONDS", 10)
        found = served([world(tmp_path, schedule="* * * * *")], tmp_path / "home")
        Home(tmp_path / "home").prepare()
        with pytest.raises(HomeError, match="plans no runs"):
            run_schedules(found, server)


def test_a_spec_without_schedule_is_refused(tmp_path: Path, pldp: Pldp) -> None:
    said = pldp("serve", world(tmp_path), "--home", tmp_path / "home")
    assert said.code == 2
    assert "schedule is required" in said.err
    assert not (tmp_path / "home").exists()


def test_two_specs_of_one_name_are_refused(tmp_path: Path) -> None:
    specs = [world(tmp_path / name, schedule="0 3 * * *") for name in "ab"]
    with pytest.raises(SpecError, match="name must differ"):
        served(specs, tmp_path / "home")


def test_homes_that_share_a_server_do_not_share_deployments(tmp_path: Path) -> None:
    spec = world(tmp_path, schedule="0 3 * * *")
    ((one,), (other,)) = (served([spec], tmp_path / home) for home in "ab")
    assert one.deployment != other.deployment


def test_the_profile_of_the_operator_names_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = tmp_path / "profiles.toml"
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert server._configured(profiles) == "http://127.0.0.1:1/api"
    assert not server.is_reachable("http://127.0.0.1:1/api")
    monkeypatch.delenv("PREFECT_API_URL")
    monkeypatch.setenv("PREFECT_PROFILES_PATH", str(profiles))
    assert server._named_profiles() == profiles
    assert server._configured(profiles) is None
    profiles.write_text(f'active = "team"\n[profiles.team]\nPREFECT_API_URL = {json.dumps("http://team/api")}\n')
    assert server._configured(profiles) == "http://team/api"


def test_the_first_slot_is_the_servers() -> None:
    """Planned by its clock: at a full minute the slot that we would compute may be gone already."""
    began = datetime.now(UTC)
    late, first, second = (planned(timedelta(minutes=m)) for m in (5, -1, -2))
    done = planned(timedelta(minutes=4), state=Completed())  # by the serve before
    skipped = planned(-timedelta(seconds=30), state=Cancelled())
    by_hand = planned(-timedelta(seconds=40), auto=False)
    key = uuid4()

    def slots(*runs: FlowRun) -> dict[UUID, datetime]:
        client: Any = Client(*(run.model_copy(update={"deployment_id": key}) for run in runs))
        return asyncio.run(first_slots(client, [key], began))

    assert slots(done, skipped, by_hand) == {}
    assert slots(second, first, done, skipped, by_hand) == {key: first.expected_start_time}
    assert slots(second, first, late, done) == {key: late.expected_start_time}  # a restart within the grace
