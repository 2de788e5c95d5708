"""`python -m bench`: which benches run, and what their verdicts come to."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

import bench.__main__
from bench.__main__ import NAMES, main
from bench.performance import NAMES as SHOWN


class Benches:
    """Stand-ins for the modules: which ran, and which pass or raise."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, list[str]]] = []
        self.missed: set[str] = set()
        self.broken: set[str] = set()

    def module(self, name: str) -> types.SimpleNamespace:
        short = name.removeprefix("bench.")

        def run(arguments: list[str] | None = None) -> bool:
            self.ran.append((short, arguments or []))
            if short in self.broken:
                raise RuntimeError("no such data")
            return short not in self.missed

        return types.SimpleNamespace(main=run)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ran]


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Benches:
    found = Benches()
    monkeypatch.setattr(bench.__main__, "import_module", found.module)
    monkeypatch.setattr("bench.common.RESULTS", tmp_path)
    return found


def test_the_document_can_be_written_alone(benches: Benches) -> None:
    assert main(["performance"]) == 0
    assert benches.names == ["performance"]
    benches.missed = {"performance"}
    assert main(["performance"]) == 1


def test_a_full_run_ends_with_the_document(benches: Benches) -> None:
    assert main([]) == 0
    assert benches.names == [*NAMES, "performance"]


def test_what_the_document_shows_comes_first_and_nothing_without_an_end() -> None:
    assert NAMES[: len(SHOWN)] == SHOWN
    assert {"coverage", "fuzz"}.isdisjoint(NAMES)


def test_a_run_that_is_interrupted_writes_what_it_has(benches: Benches, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.__main__, "_passes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main([])
    assert benches.names == ["performance"]


def test_parts_and_then_the_document(benches: Benches, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "performance", "groupby"]) == 0
    assert benches.names == ["scale", "groupby", "performance"]
    assert "bench: scale took 0 s." in capsys.readouterr().out


def test_a_part_does_not_write_it(benches: Benches) -> None:
    assert main(["kernel", "scale"]) == 0
    assert benches.names == ["kernel", "scale"]


def test_one_that_fails_does_not_end_the_run(
    benches: Benches, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what it found before does not pass for this run's."""
    (tmp_path / "peers.json").write_text("{}")
    benches.broken = {"peers"}
    assert main([]) == 1
    assert benches.names == [*NAMES, "performance"]
    assert "peers failed" in capsys.readouterr().err
    assert not (tmp_path / "peers.json").exists()


def test_one_that_misses_fails_the_run(benches: Benches) -> None:
    benches.missed = {"kernel"}
    assert main(["kernel", "scale"]) == 1
    assert benches.names == ["kernel", "scale"]


def test_an_unknown_one_runs_nothing(benches: Benches) -> None:
    assert main(["kernal"]) == 2
    assert benches.names == []


def test_options_reach_their_bench(benches: Benches) -> None:
    for words in (["fuzz", "--cases", "3"], ["coverage", "--quick"], ["scale", "--users", "9"]):
        assert main(words) == 0
    assert benches.ran == [
        ("fuzz", ["--cases", "3"]),
        ("coverage", ["--quick"]),
        ("scale", ["--users", "9"]),
    ]
