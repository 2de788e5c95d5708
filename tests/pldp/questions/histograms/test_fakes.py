"""What a plan says of fake people is what the estimators make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pldp.estimate.combine import combine_linear, estimate_levels
from pldp.questions.fakes import FAKES
from pldp.questions.histograms.fakes import FORCED, fake_reaches, hidden_move, may_fall_back, public_move
from pldp.questions.histograms.question import Histograms
from pldp.tasks.specfile import load_spec

VALUES = [f"v{i}" for i in range(16)]
MIX = {"choices": {"high": "1/6", "mid": "1/3", "low": 1}, "dependence": 1}
"""methods.md's reference mix: ε = ½, 1, 3 of 50, 30, 20 %."""


def planned(folder: Path, **sections: Any) -> Histograms:
    content: dict[str, Any] = {
        "name": "mix",
        "source": {"reports": "sent"},
        "attributes": [{"name": "a", "values": VALUES}],
        "budget": {"total": 3},
        "levels": MIX,
        "expected": {"users": 100_000, "levels": {"high": 0.5, "mid": 0.3, "low": 0.2}},
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(content | sections))
    (question,) = load_spec(folder / "spec.yaml").plan.questions
    assert isinstance(question, Histograms)
    return question


def test_the_reference_mix_has_the_figures_derived_elsewhere(tmp_path: Path) -> None:
    """methods.md, section 6: a share of 1.8 % becomes 9.7 %, with `sum` at its worst 6.6 %: 7.9 and 4.8 points. A share
    of nothing moves by 2 % of these more."""
    plan = planned(tmp_path)
    rows = {row.combination: row for row in fake_reaches(plan, plan.expected_sizes())}
    assert rows["guarded"].moved == pytest.approx(0.079, rel=0.03)
    assert rows["sum"].moved == pytest.approx(0.048, rel=0.03)
    assert (rows["guarded"].at, rows["sum"].at) == ("low", "high")


@pytest.mark.parametrize("method", ["sum", "oc+"])
def test_expected_counts_with_fakes_move_so_far(method: str, tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (attribute,), sizes = plan.attributes, plan.expected_sizes()
    level, moved = public_move(plan, attribute, method, sizes)
    place, fakes = plan.levels.index(level), round(FAKES * int(sizes.sum()))
    truth = np.append(0.0, np.full(15, 1 / 15))
    support = np.stack([n * (one.q + truth * one.gap) for n, one in zip(sizes, attribute.protocols, strict=True)])
    support[place, 0] += fakes
    joined = sizes.copy()
    joined[place] += fakes
    found = combine_linear(method, estimate_levels(support, joined, attribute.protocols)).frequency[0]
    # Weights by precision follow from what is seen: a share that fakes made is less rare, and its lever shorter.
    assert found <= moved * (1 + 1e-9)
    assert found == pytest.approx(moved, rel=1e-9 if method == "sum" else 0.08)


def test_no_other_level_is_a_longer_lever(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (attribute,), sizes = plan.attributes, plan.expected_sizes()
    _, most = public_move(plan, attribute, "sum", sizes)
    fakes = round(FAKES * int(sizes.sum()))
    by_level = [fakes / (int(sizes.sum()) + fakes) * (1 - one.q) / one.gap for one in attribute.protocols]
    assert most == pytest.approx(max(by_level), rel=1e-12)


def test_hidden_levels_are_a_lever_too(tmp_path: Path) -> None:
    """The ratio and `sum` at expected counts: the fakes' own level report is part of the lever."""
    levels = {
        "choices": {"high": "1/3", "low": 1},
        "visibility": "hidden",
        "epsilon_p": 2,
        "max_leak": 9,
        "dependence": 1,
    }
    plan = planned(tmp_path, levels=levels, expected={"users": 100_000}, mechanism="krr")
    (attribute,), hidden, sizes = plan.attributes, plan.hidden, plan.expected_sizes()
    assert hidden is not None
    report = hidden.protocol
    honest, fakes = np.asarray(sizes, dtype=float), FAKES * float(sizes.sum())
    telling = np.full((2, 2), report.q) + np.eye(2) * report.gap
    p, q = (np.array([getattr(one, side) for one in attribute.protocols]) for side in ("p", "q"))
    level, moved = hidden_move(attribute, hidden, "auem", sizes)
    said = honest @ telling
    said[plan.levels.index(level)] += fakes
    support = float(honest @ q) + fakes
    shares = (said / said.sum() - report.q) / report.gap
    found = (support / said.sum() - shares @ q) / (shares @ (p - q))
    assert found == pytest.approx(moved, rel=0.05), "to first order in the fakes"
    assert hidden_move(attribute, hidden, "sum", sizes)[1] >= moved


def test_raw_rows_have_no_fake_reports(tmp_path: Path) -> None:
    spec = load_spec(_with(tmp_path, {"path": "people.csv", "user_id": "id"}, {**MIX, "column": "level"}))
    (question,) = spec.plan.questions
    assert "fakes" not in question.predictions(spec.spec).tables
    spec = load_spec(_with(tmp_path, {"reports": "sent"}, MIX))
    (question,) = spec.plan.questions
    assert list(question.predictions(spec.spec).tables["fakes"]["combination"]) == ["guarded", "sum"]
    assert FORCED in question.predictions(spec.spec).assumptions
    for changes in ({"method": "sum"}, {"disagreement": "refuse"}):
        assert not may_fall_back(planned(tmp_path, combination=changes))


def _with(folder: Path, source: dict[str, Any], levels: dict[str, Any]) -> Path:
    content = {"name": "mix", "source": source, "attributes": [{"name": "a", "values": VALUES}]}
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump({**content, "budget": {"total": 3}, "levels": levels}))
    return path
