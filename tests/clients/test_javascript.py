"""The JavaScript client's own tests, run by Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pldp.client import Accepted, check_message, parse_plan
from tests.pldp.client.vectors import PATH, cases

FOLDER = Path(__file__).parents[2] / "clients" / "js"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def node(*arguments: str, standard_input: str = "") -> str:
    assert NODE is not None
    done = subprocess.run([NODE, *arguments], input=standard_input, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_node
def test_the_javascript_client_passes_its_own_tests() -> None:
    told = node("--test", str(FOLDER))
    assert int(re.findall(r"^# pass (\d+)", told, re.MULTILINE)[0]) > len(cases())
    assert re.findall(r"^# (?:fail|skipped|todo) (\d+)", told, re.MULTILINE) == ["0", "0", "0"]


@needs_node
def test_what_it_draws_from_the_system_is_accepted() -> None:
    """With random bytes of its own, for every case of the vectors."""
    program = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ MemoryStore, Person, parsePlan }} from "{FOLDER.as_uri()}/pldp.js";
        for (const one of JSON.parse(readFileSync({str(PATH)!r}, "utf8")).cases) {{
          const plan = await parsePlan(new TextEncoder().encode(one.plan));
          const person = new Person(plan, new MemoryStore());
          console.log(await person.answer(one.answers, one.draws[0].choice, {{ importance: one.importance }}));
        }}"""
    messages = node("--input-type=module", "--eval", program).splitlines()
    assert len(messages) == len(cases())
    for message, case in zip(messages, json.loads(PATH.read_text())["cases"], strict=True):
        assert isinstance(check_message(parse_plan(case["plan"].encode()), message.encode()), Accepted)


def test_it_is_one_module_without_a_dependency() -> None:
    text = (FOLDER / "pldp.js").read_text()
    assert re.findall(r"^\s*import\b|\brequire\(|\bimport\(", text.replace(" *     import {", ""), re.MULTILINE) == []
    assert not re.search(r"Math\.random|eval\(|fetch\(|XMLHttpRequest|innerHTML", text)


def test_the_types_name_what_is_exported() -> None:
    pattern = r"^export (?:async )?(?:function|class|interface|type) (\w+)"
    exported = set(re.findall(pattern, (FOLDER / "pldp.js").read_text(), re.MULTILINE))
    declared = (FOLDER / "pldp.d.ts").read_text()
    assert len(exported) > 8
    assert exported <= set(re.findall(pattern, declared, re.MULTILINE))
