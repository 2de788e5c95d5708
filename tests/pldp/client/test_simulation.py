"""People who answer on their own devices are estimated as those are whom the pipeline perturbs, for every kind."""

from __future__ import annotations

import shutil

import pytest

from pldp.client import parse_plan
from tests.pldp.client.plans import histograms, items
from tests.pldp.client.simulation import (
    WORLDS,
    World,
    baskets,
    collected,
    drawn,
    estimates,
    farthest,
    javascript_messages,
    people,
    python_messages,
)

PEOPLE = 3000
BOUND = 6.3
"""α = 1e-6 over some 90 estimates, 100 seeds and two clients, for estimates that are about normal."""
NODE = shutil.which("node")


@pytest.mark.parametrize("name", WORLDS)
def test_the_python_client_and_the_pipeline_agree(name: str, seed: int) -> None:
    world = WORLDS[name](PEOPLE, seed)
    sent = collected(parse_plan(world.body), world.question, python_messages(world, seed))
    assert farthest(estimates(world.question, sent), estimates(world.question, drawn(world, seed))) < BOUND


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("name", WORLDS)
def test_the_javascript_client_and_the_pipeline_agree(name: str) -> None:
    """By the system's randomness: it takes no seed."""
    world = WORLDS[name](400, 42)
    assert NODE is not None
    sent = collected(parse_plan(world.body), world.question, javascript_messages(world, NODE))
    assert farthest(estimates(world.question, sent), estimates(world.question, drawn(world, 42))) < BOUND


def test_a_client_with_another_budget_is_told_apart(seed: int) -> None:
    """A third of the budget: reports of another ε, counted as if they were of the plan's."""
    world, wrong = people(histograms(mechanism="krr"), PEOPLE, seed), histograms(mechanism="krr", budget={"total": 3})
    other = World(wrong, world.crowd, world.vault)
    sent = collected(parse_plan(other.body), other.question, python_messages(other, seed))
    assert farthest(estimates(world.question, sent), estimates(world.question, drawn(world, seed))) > BOUND
    world, wrong = baskets(items(holds="one"), PEOPLE, seed, one=True), items(holds="one", budget={"total": 1})
    other = World(wrong, world.crowd, world.vault)
    sent = collected(parse_plan(other.body), other.question, python_messages(other, seed))
    assert farthest(estimates(world.question, sent), estimates(world.question, drawn(world, seed))) > BOUND
