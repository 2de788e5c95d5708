"""The spec's schema for editors: it is up to date, explains every key, and agrees with the models that check a spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from pldp.errors import SpecError
from pldp.tasks.specfile import load_spec
from pldp.tasks.specschema import SECTIONS, main, rows, spec_schema
from tests.flows.documents import blocks_of
from tests.people import SPEC, world

ROOT = Path(__file__).parents[2]
PAGE, SCHEMA = ROOT / "docs" / "spec.md", ROOT / "docs" / "spec.schema.json"
CONTENT: dict[str, Any] = json.loads(SCHEMA.read_text())
EDITOR = Draft7Validator(CONTENT)


def complaints(content: Any) -> list[str]:
    """What an editor underlines."""
    return [error.message for error in EDITOR.iter_errors(json.loads(json.dumps(content)))]


def test_the_schema_is_up_to_date(tmp_path: Path) -> None:
    Draft7Validator.check_schema(CONTENT)
    main(str(PAGE), str(tmp_path / "schema.json"))
    assert (tmp_path / "schema.json").read_text() == SCHEMA.read_text(), "`make reference` writes it anew"


def test_every_key_that_has_a_table_is_explained() -> None:
    """So docs/spec.md forgets none of them; keys of other models are explained where they are nested."""
    assert {section for section, _, _ in rows(PAGE.read_text())} == set(SECTIONS)
    for name in SECTIONS.values():
        model = CONTENT["definitions"][name]
        keys = (model if "properties" in model else model["anyOf"][1])["properties"]
        silent = {key for key, field in keys.items() if not field.get("description")}
        # Of other kinds than a table of people the kind is one word, which the section's title explains.
        assert silent <= ({"kind"} if name in ("AggregatesSpec", "ItemsSpec", "SeveralSpec") else set()), name
    dependence = CONTENT["definitions"]["Levels"]["properties"]["dependence"]["description"]
    assert "how far the choice of a level may depend on the answer" in dependence


def whole_specs() -> list[Any]:
    """Every spec that the repository shows: the examples, and the blocks of documents that are whole."""
    examples = [(path.name, path.read_text()) for path in sorted((ROOT / "data").glob("*.yaml"))]
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    shown = [(block.name, block.text) for path in documents for block in blocks_of(path) if block.language == "yaml"]
    parsed = [(name, yaml.safe_load(text)) for name, text in [*examples, *shown]]
    return [
        pytest.param(content, id=name)
        for name, content in parsed
        if isinstance(content, dict) and "name" in content and ("source" in content or "questions" in content)
    ]


def test_there_are_specs_of_every_kind() -> None:
    contents = [spec.values[0] for spec in whole_specs()]
    assert {"items", "aggregates"} <= {content.get("kind") for content in contents}
    assert sum("questions" in content for content in contents) >= 2
    assert len(contents) > 15


@pytest.mark.parametrize("content", whole_specs())
def test_editors_accept_what_the_repository_shows(content: dict[str, Any]) -> None:
    assert complaints(content) == []


def changed(place: str, value: Any) -> dict[str, Any]:
    """A sound spec with one other value; None takes the key away."""
    content = json.loads(json.dumps(SPEC, default=str))
    *above, last = place.split(".")
    part = content
    for key in above:
        part = part[int(key)] if isinstance(part, list) else part.setdefault(key, {})
    if value is None:
        del part[last]
    else:
        part[last] = value
    return dict(content)


BROKEN = [
    ("name", None),
    ("name", "two words"),
    ("source", None),
    ("budgett", {"total": 1}),
    ("budget.total", 0),
    ("budget.total", 1001),
    ("budget.total", "a third"),
    ("budget.total", True),
    ("budget.allocation", "even"),
    ("levels.dependence", 0.5),
    ("levels.dependence", "none"),
    ("levels.visibility", "secret"),
    ("levels.choices", {"not a name": 1}),
    ("levels.choices", {"low": 2}),
    ("attributes", []),
    ("attributes.0.kind", "histogram"),
    ("attributes.0.values", []),
    ("attributes.0.values", [None]),
    ("attributes.0.bounds", [0, 1]),
    ("attributes.0.mechanism", "rappor"),
    ("mechanism", "rappor"),
    ("postprocess", "round"),
    ("combination.method", "mean"),
    ("combination.alpha", 0.5),
    ("expected.users", 0),
    ("expected.users", 1.5),
    ("intervals.confidence", 1),
    ("runner", "cloud"),
    ("runner", {"dask": "tcp://nowhere"}),
    ("runner", {"dask": "local", "memory": "much"}),
    ("schedule", 3),
    ("source.csv", {"delimiter": ""}),
    ("retention.vault", "forever"),
    ("kind", "item"),
    ("questions", [{"kind": "items"}]),
]


@pytest.mark.parametrize(("place", "value"), BROKEN, ids=[f"{place}={value!r:.20}" for place, value in BROKEN])
def test_editors_and_the_command_refuse_alike(tmp_path: Path, place: str, value: Any) -> None:
    broken = changed(place, value)
    assert complaints(broken)
    path = world(tmp_path)
    path.write_text(yaml.safe_dump(broken))
    with pytest.raises(SpecError):
        load_spec(path)


SOUND = [
    ("budget.total", "7/2"),
    ("budget.total", 1),
    ("levels.dependence", "unknown"),
    ("attributes.0.label", "Their job"),
    ("mechanism", "krr"),
    ("runner", "threads"),
    ("runner", {"dask": "local", "workers": 2, "memory": "1.5 GiB"}),
    ("schedule", "0 3 * * *"),
    ("schedule", {"cron": "0 3 * * *", "timezone": "Europe/Rome"}),
    ("intervals.confidence", 0.9),
]


@pytest.mark.parametrize(("place", "value"), SOUND, ids=[f"{place}={value!r:.20}" for place, value in SOUND])
def test_editors_and_the_command_accept_alike(tmp_path: Path, place: str, value: Any) -> None:
    content = changed(place, value)
    assert complaints(content) == []
    path = world(tmp_path)
    path.write_text(yaml.safe_dump(content))
    load_spec(path)


def test_an_entry_says_only_what_is_its_own() -> None:
    several = next(spec.values[0] for spec in whole_specs() if "questions" in spec.values[0])
    first, *rest = several["questions"]
    assert complaints(several) == []
    assert complaints({**several, "questions": [{**first, "name": "again"}, *rest]})
    assert complaints({**several, "questions": [first]})
    assert complaints({**several, "budget": {"total": 1}})


def test_a_schema_that_forgot_a_key_would_be_caught() -> None:
    """The twin: descriptions come from the page, so one without a row has none."""
    page = "\n".join(line for line in PAGE.read_text().splitlines() if not line.startswith("| `dependence`"))
    assert "description" not in spec_schema(page)["definitions"]["Levels"]["properties"]["dependence"]
