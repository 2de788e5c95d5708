"""The document of performance: what benchmarks found last stands in it, whatever stood there before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench.performance
from bench.common import Measure, publish
from bench.performance import BEGIN, END, main, points


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "performance.md"
    path.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    for module in ("bench.common", "bench.performance"):
        monkeypatch.setattr(f"{module}.RESULTS", tmp_path / "results")
    monkeypatch.setattr(bench.performance, "DOCUMENT", path)
    monkeypatch.setattr(bench.performance, "PICTURE", tmp_path / "picture.svg")
    return path


def test_the_table_has_every_requirement_and_the_rest_stays(document: Path) -> None:
    publish("ingest", "Ingest", [Measure("10 M users: ingest", 3.2, " s", 4.0, "≤"), Measure("CPU time", 5.0, " s")])
    assert main()
    text = document.read_text()
    assert "| `ingest`: 10 M users: ingest | 3.2 s | ≤ 4 s |  |" in text
    assert "CPU time" not in text, "nothing is required of it"
    assert "old" not in text
    assert text.startswith("# Before")
    assert text.endswith("after\n")
    assert main()
    assert document.read_text() == text, "written again it is the same"


def test_what_is_missed_is_told_and_fails(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish("groupby", "Cost", [Measure("whole release / GROUP BY", 104.0, "×", 40.0, "≤")])
    assert not main()
    assert "missed: whole release / GROUP BY" in capsys.readouterr().out
    assert "| 104× | ≤ 40× | missed |" in document.read_text()


def test_the_picture_has_time_cost_and_limit_of_every_size(document: Path) -> None:
    sizes = [Measure(f"{size} M users: {what}", size * 1.0, " s") for size in (1, 10) for what in ("time", "CPU time")]
    sizes += [Measure(f"{size} M users: stage ingest", size * 0.3, " s") for size in (1, 10)]
    sizes += [
        Measure("10 M users: stage perturb", 1.2, " s"),
        Measure("10 M users: CPU time of stage ingest", 5.1, " s"),
    ]
    publish("scale", "Scale", [*sizes, Measure("1 M users: peak memory above idle", 2e8, "B", 250e6, "≤")])
    assert main()
    rows = points(json.loads((document.parent / "results" / "scale.json").read_text())["measures"])
    assert {(row["users"], row["line"]) for row in rows} == {
        (size, line) for size in (1e6, 10e6) for line in ("time", "CPU time", "limit")
    }
    assert next(row["seconds"] for row in rows if row["line"] == "limit" and row["users"] == 10e6) == pytest.approx(14)
    assert "limit" in (document.parent / "picture.svg").read_text()
    text = document.read_text()
    assert "(pictures/picture.svg)" in text
    assert "| stage | 1 M users: s (CPU s) | 10 M users: s (CPU s) |" in text
    assert "| ingest | 0.3 (0) | 3 (5.1) |" in text
    assert "| perturb |  | 1.2 (0) |" in text
