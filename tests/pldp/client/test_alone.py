"""Without a single library installed: the client works, and the rest says what to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pldp.client import Accepted, check_message, read_plan
from tests.pldp.client.plans import ISSUED
from tests.pldp.client.test_vectors import VECTORS

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from datetime import UTC, datetime
from pathlib import Path
from pldp.client import Folder, Person, explain, read_plan
plan = read_plan(Path(sys.argv[2]).read_bytes(), sys.argv[3], datetime(2026, 11, 18, tzinfo=UTC))
assert explain(plan.questions["meal"], "high").words.startswith("Of 100 people")
sys.stdout.buffer.write(Person(plan, Folder(sys.argv[4])).answer({"meal": "soup"}, "high"))
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"pldp", "__main__"}
assert foreign <= {"__mp_main__"}, foreign
"""


def alone(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """An interpreter without site packages, environment or working folder in its path."""
    return subprocess.run([sys.executable, "-I", "-S", *arguments], capture_output=True, timeout=60)


def test_a_person_answers_with_the_standard_library_only(tmp_path: Path) -> None:
    signed = VECTORS["signed"]
    (tmp_path / "plan.signed").write_text(signed["envelope"])
    folder, plan = str(tmp_path / "kept"), str(tmp_path / "plan.signed")
    done = alone("-c", PROGRAM, str(ROOT), plan, signed["fingerprint"], folder)
    assert done.returncode == 0, done.stderr.decode()
    plan_read = read_plan(signed["envelope"].encode(), signed["fingerprint"], ISSUED)
    assert isinstance(check_message(plan_read, done.stdout), Accepted)


@pytest.mark.parametrize(
    ("program", "code"),
    [("from pldp.__main__ import command; command()", 2), ("import pldp; pldp.release", 1)],
)
def test_what_needs_the_pipeline_says_what_to_install(program: str, code: int) -> None:
    done = alone("-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {program}")
    assert done.returncode == code
    assert done.stderr.decode().splitlines()[-1].endswith("pip install 'pldp[pipeline]'. Nothing was run.")


def test_a_module_of_ours_that_is_missing_is_no_library() -> None:
    from pldp import without_pipeline

    missing = ModuleNotFoundError("no", name="pldp.flows.nowhere")
    assert without_pipeline(missing) is missing


def test_nothing_is_installed_with_the_client() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == []
    extras = project["optional-dependencies"]
    assert "pldp[pipeline]" in extras["dev"]
    assert "pldp[library]" in extras["pipeline"]
