"""The JSON Schema of a spec, for editors: what the models of all kinds say, explained by the tables of docs/spec.md.

`python -m pldp.tasks.specschema docs/spec.md docs/spec.schema.json` (`make reference`) writes it anew. It is draft 7,
which every editor knows. Rules between fields are not in it: `pldp plan` checks those.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pldp.questions.several import ONCE
from pldp.questions.specs import AnySpec
from pldp.spec.runner import THREADS

Schema = dict[str, Any]

SECTIONS = {
    "Top level": "Spec",
    "`source`": "Source",
    "`source.csv`": "Csv",
    "Category": "Category",
    "Cross-tab": "Crosstab",
    "Binned number": "Binned",
    "Number": "Number",
    "`budget`": "Budget",
    "`numbers`": "Numbers",
    "`levels`": "Levels",
    "`expected`": "Expected",
    "`combination`": "Combination",
    "`reference`": "Reference",
    "`intervals`": "Intervals",
    "`gates`": "Gates",
    "`retention`": "Retention",
    "`runner`": "Runner",
    "`kind: aggregates`": "AggregatesSpec",
    "`kind: items`": "ItemsSpec",
    "`questions`: several kinds, the same people": "SeveralSpec",
}
"""The model that each table of docs/spec.md is about, by its heading or the head of its first column."""
_SHORT = {"Runner": {"const": THREADS}, "Schedule": {"type": "string"}}
"""What stands for a whole mapping."""
_KEYWORDS: dict[str, str] = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_FRACTION = r"^\s*[+-]?[0-9._]+([eE][+-]?[0-9]{1,3})?(\s*/\s*[0-9_]+)?\s*$"
_HERE = "#/definitions/"


def spec_schema(page: str) -> Schema:
    """The schema of every kind of spec; `page` is docs/spec.md, whose tables describe the keys."""
    generated = TypeAdapter(AnySpec).json_schema(ref_template=_HERE + "{model}")
    models: dict[str, Schema] = {name: _plain(model) for name, model in generated["$defs"].items()}
    for model in models.values():
        if "inbox" in model["properties"] and "reports" in model.get("required", ()):
            model["anyOf"] = [{"required": [key]} for key in ("reports", "inbox")]
            model["required"].remove("reports")
    _describe(models, page)
    for name, word in _SHORT.items():
        models[name] = {"anyOf": [word, models[name]]}
    attributes, questions = models["Spec"]["properties"]["attributes"], models["SeveralSpec"]["properties"]["questions"]
    entries = questions["items"]["oneOf"]
    attributes["items"] = _chosen(models, attributes["items"]["oneOf"])
    questions["items"] = _chosen(models, entries, " entry")
    alone = _chosen(models, entries)
    for name in [entry["$ref"].removeprefix(_HERE) for entry in entries]:
        models[f"{name} entry"] = _entry(models[name])
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A spec of pldp",
        "if": {"required": ["questions"]},
        "then": {"$ref": f"{_HERE}SeveralSpec"},
        "else": alone,
        "definitions": models,
    }


def _plain(part: Any) -> Any:
    """The same without what draft 7 does not know, or ignores beside a reference; titles that repeat a key go."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("format") == "fraction":
        return {"type": "string", "pattern": _FRACTION}
    plain: dict[str, Any] = {
        str(_KEYWORDS.get(key, key)): {name: _plain(each) for name, each in value.items()}
        if key == "properties"
        else float(Fraction(value))
        if key in _KEYWORDS and isinstance(value, str)
        else _plain(value)
        for key, value in part.items()
        if not (key == "title" and isinstance(value, str))
    }
    if "patternProperties" in plain:
        plain.setdefault("additionalProperties", False)
    if "prefixItems" in plain:
        plain["items"] = plain.pop("prefixItems")[0]
    if "$ref" in plain and len(plain) > 1:
        plain["allOf"] = [{"$ref": plain.pop("$ref")}]
    return plain


def _chosen(models: Mapping[str, Schema], choices: Iterable[Schema], ending: str = "") -> Schema:
    """Whichever model `kind` names, so that an editor speaks of that one alone; without a kind the one that needs none.
    With an ending its name in `definitions` ends so."""
    names = [choice["$ref"].removeprefix(_HERE) for choice in choices]
    (usual,) = (name for name in names if "kind" not in models[name]["required"])
    chosen: Schema = {"$ref": f"{_HERE}{usual}{ending}"}
    for name in reversed([name for name in names if name != usual]):
        named = {"properties": {"kind": models[name]["properties"]["kind"]}, "required": ["kind"]}
        chosen = {"if": named, "then": {"$ref": f"{_HERE}{name}{ending}"}, "else": chosen}
    return chosen


def _entry(model: Schema) -> Schema:
    """A spec of one kind as an entry of several: without what is said once, and perhaps without a source."""
    entry = deepcopy(model)
    entry["properties"] = {key: each for key, each in entry["properties"].items() if key not in ONCE}
    entry["required"] = [key for key in entry["required"] if key not in (*ONCE, "source")]
    return entry


def _describe(models: Mapping[str, Schema], page: str) -> None:
    """What the page says of every key; what it says of a source's and a category's holds wherever they stand."""
    stated: dict[tuple[str, str], str] = {}
    for section, key, text in rows(page):
        stated.setdefault((SECTIONS[section], key.partition(".")[0]), text)
    for name, model in models.items():
        for key, field in model["properties"].items():
            parts = (name,) if key == "kind" else (name, "Source", "Category")
            said = next((stated[part, key] for part in parts if (part, key) in stated), None)
            if said is not None:
                field["description"] = said
                if "$ref" in field:
                    field["allOf"] = [{"$ref": field.pop("$ref")}]


def rows(page: str) -> Iterator[tuple[str, str, str]]:
    """Every key that a table of the page explains: the table's name in SECTIONS, the key, and its row in plain text."""
    section, heads = "", list[str]()
    for line in page.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            heads = []
        elif not heads:
            heads = cells
        elif (name := heads[0] if heads[0] in SECTIONS else section) in SECTIONS and not line.startswith("| ---"):
            said = [f"{head}: {cell}" if head == "default" else cell for head, cell in zip(heads, cells, strict=False)]
            text = "; ".join(cell for cell in said[1:] if cell not in ("", "default: ")).replace("default: req", "req")
            for key in re.findall(r"`([^`]+)`", cells[0]):
                yield name, key, re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def main(page: str, schema: str) -> None:
    """Write the schema that the page explains."""
    content = json.dumps(spec_schema(Path(page).read_text(encoding="utf-8")), indent=1, ensure_ascii=False)
    Path(schema).write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
