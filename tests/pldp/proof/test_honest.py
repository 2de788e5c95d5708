"""Hundreds of random honest specs of every kind (`--slow`; a few of each without): none is stopped by its own proof."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from random import Random

import pytest

from pldp.channels.randomness import Keystream
from pldp.errors import SpecError
from pldp.questions.proof import proof
from pldp.questions.specs import spec_of
from pldp.tasks.specfile import load_spec
from tests.pldp.proof.honest import KINDS, write_honest
from tests.pldp.questions.memory import passes
from tests.slow import repeated

CASES = repeated(8, 300)
MOST_REFUSED = repeated(4, 75)
PATIENCE = 20.0
"""Seconds of a core that no proof takes, however busy the machine; most take less than a half."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_plan_takes_is_shown_and_passes_its_proof(kind: str, seed: int, tmp_path: Path) -> None:
    """Without a warning of what is no number, or divided by nothing."""
    warnings.simplefilter("error")
    refused = 0
    for case in range(CASES):
        label = f"{kind} {seed} {case}"
        path = write_honest(kind, Random(label), tmp_path)  # noqa: S311  (cases, not secrets)
        try:
            file = load_spec(path)
        except SpecError:
            refused += 1
            continue
        for question in file.plan.questions:
            question.predictions(spec_of(file.spec, question))
            question.statement("vault")
        start = time.process_time()
        gates = proof(file.plan.questions, Keystream.seeded(seed, label))
        assert time.process_time() - start < PATIENCE, label
        assert [(label, gate.name, gate.observed) for gate in gates if not passes(gate)] == []
    assert refused <= MOST_REFUSED, "a sweep of refusals shows little"


def test_hidden_levels_that_leave_no_noise_are_planned(tmp_path: Path) -> None:
    """A variance of nothing, which rounding puts below, has a root."""
    warnings.simplefilter("error")
    file = load_spec(write_honest("histograms", Random("histograms 42 85"), tmp_path))  # noqa: S311
    assert all(question.predictions(spec_of(file.spec, question)).tables for question in file.plan.questions)
