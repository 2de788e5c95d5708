"""What is told when a scheduled run fails, and what never is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pldp.errors import SourceError
from pldp.tasks import failures
from pldp.tasks.failures import COMMAND, Failure, describe, read_failures, tell
from pldp.tasks.home import Home
from tests.people import mode

FAILURE = Failure(
    run="quiet-fox",
    spec="spec.yaml",
    slot="2026-01-02T03:00Z",
    at="2026-01-02T03:00:01+00:00",
    error="SourceError",
    message="people.csv: row 3 is bad.",
    resume="pldp release spec.yaml --slot 2026-01-02T03:00Z",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv(COMMAND, raising=False)
    return Home(tmp_path)


def test_our_own_words_are_told_and_foreign_ones_are_not() -> None:
    assert describe(SourceError("row 3 is bad")) == ("SourceError", "row 3 is bad.")
    error, message = describe(ValueError("could not convert CANARY"))
    assert error == "ValueError"
    assert "CANARY" not in message
    assert describe(None)[0] == "Stopped"


def test_a_failure_is_one_line_for_the_operator_alone(home: Home) -> None:
    tell(home, FAILURE)
    tell(home, FAILURE)
    assert [json.loads(line)["run"] for line in home.failures.read_text().splitlines()] == ["quiet-fox"] * 2
    assert mode(home.failures) == 0o600
    assert read_failures(home) == [FAILURE, FAILURE]


def test_half_a_line_is_left_out(home: Home) -> None:
    tell(home, FAILURE)
    with home.failures.open("a") as handle:
        handle.write('{"run": "cut sh')
    assert read_failures(home) == [FAILURE]


def test_the_command_finds_the_message(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND, f'printf %s "$PLDP_MESSAGE" > {tmp_path / "told"}')
    tell(home, FAILURE)
    assert (tmp_path / "told").read_text() == "spec.yaml, slot 2026-01-02T03:00Z: people.csv: row 3 is bad."


@pytest.mark.parametrize(("command", "said"), [("exit 3", "exit code 3"), ("sleep 60", "was stopped after")])
def test_a_command_that_fails_or_hangs_is_said_and_not_fatal(
    home: Home, command: str, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(COMMAND, command)
    monkeypatch.setattr(failures, "COMMAND_SECONDS", 2)
    tell(home, FAILURE)
    assert said in capfd.readouterr().err
    assert read_failures(home) == [FAILURE]


def test_a_home_that_cannot_be_written_does_not_stop_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(COMMAND, f"touch {tmp_path / 'told'}")
    tell(Home(tmp_path / "gone"), FAILURE)
    assert (tmp_path / "told").exists()
    assert "could not be written down" in capfd.readouterr().err
