"""YAML of a spec: a long one is read by the quick scanner, with the same content, rules and words."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pldp.tasks import plainyaml

LONG = 400
GOOD = "name: x\nprofiles:\n" + "".join(
    f"  p{i}: {{a: 0.05{i}, b: 007, c: 1_0, d: 2024-01-01, e: 'ä', f: [1, -2.50, null]}}\n" for i in range(9)
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plainyaml, "_LONG", LONG)


def both(text: str) -> list[Any]:
    """Content, or rule and place of what is refused, by either scanner."""
    found = []
    for loader in (plainyaml._Loader, plainyaml._QuickLoader):
        try:
            found.append(plainyaml._read(loader(text)))
        except yaml.YAMLError as error:
            found.append((type(error), error.problem, error.problem_mark.line))  # type: ignore[attr-defined]
    return found


def test_a_long_spec_has_the_content_of_a_short_one() -> None:
    assert len(GOOD) > LONG
    plain, quick = both(GOOD)
    assert plain == quick == plainyaml.load(GOOD)
    for content in (plain, quick):
        assert str(content["profiles"]["p0"]["b"]) == "007"
        assert str(content["profiles"]["p1"]["f"][1]) == "-2.50"
        assert content["profiles"]["p0"]["d"] == "2024-01-01"


@pytest.mark.parametrize(
    "wrong",
    [
        "name: again\n",
        "more: {<<: {a: 1}}\n",
        "more: " + "[" * 40 + "]" * 40 + "\n",
        "more: !!int x\n",
        "more: !!python/name:os.system\n",
    ],
)
def test_what_we_refuse_is_refused_at_any_length(wrong: str) -> None:
    plain, quick = both(GOOD + wrong)
    assert plain == quick
    with pytest.raises(yaml.YAMLError):
        plainyaml.load(GOOD + wrong)


@pytest.mark.parametrize("wrong", ["more: [1, 2\n", "more: 'open\n", "\tmore: 1\n", "more: a: b\n", "a: *nobody\n"])
def test_what_is_no_yaml_is_told_in_the_same_words_at_any_length(wrong: str) -> None:
    told = []
    for text in (wrong, GOOD + wrong):
        with pytest.raises(yaml.YAMLError) as refused:
            plainyaml.load(text)
        told.append((type(refused.value), refused.value.problem))  # type: ignore[attr-defined]
    assert told[0] == told[1]
