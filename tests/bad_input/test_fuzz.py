"""Fuzz: random specs and sources are read or refused in our own words. `python -m bench fuzz` goes on for longer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pldp.errors import SpecError
from pldp.tasks.specfile import load_spec
from tests.bad_input.wild import (
    MARK,
    PATIENCE,
    check_ingest,
    check_message,
    check_spec,
    mutated,
    source_case,
    spec_bytes,
)
from tests.people import write_spec
from tests.slow import repeated

RNG = st.randoms(use_true_random=False)
fuzz = settings(
    deadline=timedelta(seconds=PATIENCE),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,  # the folder is only ever written over
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


@given(rng=RNG)
@settings(fuzz, max_examples=repeated(200, 600))
def test_a_mutated_spec_is_read_or_refused(rng: Random, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(spec_bytes(rng))
    check_spec(path)


@given(text=st.text(max_size=300))
@settings(fuzz, max_examples=repeated(70, 200))
def test_any_text_is_read_or_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    assert check_spec(path) == "refused"


@given(content=st.binary(max_size=300))
@settings(fuzz, max_examples=repeated(40, 100))
def test_any_bytes_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    assert check_spec(path) == "refused"


@given(rng=RNG)
@settings(fuzz, max_examples=repeated(40, 120))
def test_a_random_source_is_counted_to_its_last_row_or_refused(rng: Random, tmp_path: Path) -> None:
    spec, n_rows = source_case(rng, tmp_path)
    check_ingest(spec, n_rows, tmp_path / "home")


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGED = "a: &a {x: 1}\n" + "".join(
    f"{after}: &{after} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, after in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS + "{spec}", "a is not a key of the spec"),
        (LAUGHS + "name: *j\n", "name: input should be a valid string"),
        (LAUGHS + "attributes: [{kind: *j}]\n", "attributes[0]: kind must be category, binned, crosstab or number"),
        (
            MERGED + "{spec}",
            "line 2, column 8: the spec is not valid YAML: merging with << is not read: write the keys out",
        ),
        ("{spec}budget: {total: 900}\n", "a key stands there twice"),
        ("{spec}expected: {users: 5, users: 6}\n", "column 22: the spec is not valid YAML: a key stands there twice"),
        ("x: &x [*x]\n{spec}", "recursive"),
        ("[" * 100_000, "nested deeper than 32"),
        ("name: " + "{a: " * 3000, "nested deeper than 32"),
        ("".join(" " * i + "a:\n" for i in range(1500)), "nested deeper than 32"),
        ("\tname: x\n", "line 1, column 1: the spec is not valid YAML"),
        ("x: !!python/name:os.system\n{spec}", "tags (with `!`) are not read"),
        ("x: !!python/object/apply:os.getcwd []\n", "tags (with `!`) are not read"),
        ("x: !!set {a, b}\n", "tags (with `!`) are not read"),
        ("x: !!int abc\n", "line 1, column 4: the spec is not valid YAML: this is not a value of its kind"),
        ("x: !!bool abc\n", "this is not a value of its kind"),
        ("x: !!int\n", "this is not a value of its kind"),
        ("x: !!float ''\n", "this is not a value of its kind"),
        ("x: " + "9" * 5000 + "\n", "this is not a value of its kind"),
        ("x: 0x" + "f" * 5000 + "\n", "this is not a value of its kind"),
        ("x: 2024-99-99\n{spec}", "x is not a key of the spec"),
        ("name: a\n---\nname: b\n", "expected a single document"),
    ],
    ids=lambda text: text[:24] if isinstance(text, str) else None,
)
def test_tricks_of_yaml(text: str, said: str, tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    path.write_text(text.replace("{spec}", path.read_text()), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert said in str(caught.value)
    check_message(str(caught.value), path, "Nothing was run.")
    check_spec(path)


def test_the_generators_reach_both_ends(tmp_path: Path) -> None:
    """A fuzz that only ever meets refusals, or none, would show little."""
    outcomes = set()
    for seed in range(60):
        (tmp_path / "spec.yaml").write_bytes(spec_bytes(Random(seed)))  # noqa: S311  (cases, not secrets)
        outcomes.add(check_spec(tmp_path / "spec.yaml"))
    assert outcomes == {"read", "refused"}
    assert mutated(Random(1)) != mutated(Random(2))  # noqa: S311


def test_the_check_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    check_message(f"{path}: a rule. Nothing was run.", path, "Nothing was run.")
    for said in (
        f"{path}: a rule. Nothing was run. And {MARK}",
        f"{path}: {MARK}. Nothing was run.",
        f"{path}: \x1b[31m. Nothing was run.",
        f"{path}: <function f at 0x7f0b6c52e2a0>. Nothing was run.",
        "A rule. Nothing was run.",
    ):
        with pytest.raises(AssertionError):
            check_message(said, path, "Nothing was run.")
