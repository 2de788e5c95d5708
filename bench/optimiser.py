"""Aggregates: all profiles' programmes at once against a modelling layer, and the exact noise against plain NumPy's."""

from __future__ import annotations

import json
import subprocess
import time
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import TypedDict

import numpy as np

from bench.common import Measure, cpu_medians, medians, publish
from bench.peers import interpreter
from pldp.channels.randomness import Keystream
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates.budgets import allocate, caps, to_ticks, turning_point
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.objectives import MAE, MSE, Objective
from pldp.questions.aggregates.release import Mechanism

HERE = Path(__file__).resolve().parent
LAYER, LAYER_PROFILES = "cvxpy", 50
ATTRIBUTES = 18
ITEMS = 300
PROFILES = 10_000
EPSILON = Fraction("0.05")
USERS = 200_000
KINDS = 100
ROUNDS = 5
SECONDS = 10.0
REQUIRED = 5.0  # measured 9.4; a floor against regressions
NOISE_REQUIRED = 0.2


class Answer(TypedDict):
    """What the worker says to a problem."""

    seconds: float
    losses: list[float]


def main() -> bool:
    rng = np.random.default_rng(42)
    catalogue = _catalogue(rng)
    budgets = (rng.dirichlet(np.ones(ATTRIBUTES), PROFILES) * 2**40).astype(np.int64)
    # -P: the worker's own folder has a module named numbers, which would stand in for the standard one.
    command = [str(interpreter(LAYER, (LAYER, "clarabel"))), "-P", str(HERE / "optimiser_worker.py")]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        measures = [one for objective in (MAE, MSE) for one in _solves(catalogue, budgets, objective, worker)] + _noise(
            catalogue, budgets[:KINDS]
        )
    finally:
        assert worker.stdin
        worker.stdin.close()
        worker.wait()
    note = (
        f"ε = {float(EPSILON)}, {ATTRIBUTES} attributes, {len(catalogue.rows)} binding rows, Σ t = 1 drawn from "
        f"Dirichlet(1), {PROFILES:,} profiles, CPU seconds, medians of {ROUNDS} interleaved rounds. cvxpy with "
        f"Clarabel: compiled once, then {LAYER_PROFILES} profiles as parameters. NumPy: laplace() with the same scales."
    )
    return publish("optimiser", "Aggregates: optimiser and noise", measures, note)


def _catalogue(rng: np.random.Generator) -> Catalogue:
    """One to six attributes an item, some far more common than others, as genres are."""
    chance = 1 / np.arange(1.0, ATTRIBUTES + 1)
    rows = np.zeros((ITEMS, ATTRIBUTES), dtype=np.uint8)
    for row in rows:
        row[rng.choice(ATTRIBUTES, rng.integers(1, 7), replace=False, p=chance / chance.sum())] = 1
    rows[:ATTRIBUTES] |= np.eye(ATTRIBUTES, dtype=np.uint8)
    return dense_catalogue([f"a{column}" for column in range(ATTRIBUTES)], rows)


def _solves(catalogue: Catalogue, budgets: Units, objective: Objective, worker: subprocess.Popen[str]) -> list[Measure]:
    epsilon = to_ticks(EPSILON)
    allocation = allocate(catalogue, budgets, epsilon, objective)
    cap = caps(catalogue, budgets).astype(np.float64)
    ratio = np.minimum(epsilon / turning_point(catalogue, budgets), 1)
    few = slice(0, LAYER_PROFILES)
    scale = cap[few] * (ratio[few] / epsilon)[:, None]
    weights = cap[few] ** -objective.power
    weights /= weights.sum(axis=1, keepdims=True)
    problem = {
        "rows": catalogue.rows.tolist(),
        "scale": scale.tolist(),
        "weights": weights.tolist(),
        "power": objective.power,
        "top": (1 / ratio[few]).tolist(),
    }
    answers: list[Answer] = []

    def ours() -> float:
        start = time.process_time()
        allocate(catalogue, budgets, epsilon, objective)
        return (time.process_time() - start) / PROFILES

    def layer() -> float:
        answers.append(_ask(worker, problem))
        return answers[-1]["seconds"] / LAYER_PROFILES

    taken = medians({"ours": ours, "cvxpy": layer}, ROUNDS)
    mine = allocation.ticks[few] / (cap[few] * ratio[few, None])
    losses = (weights * mine**-objective.power).sum(axis=1).tolist()
    worse = median(loss / other for loss, other in zip(losses, answers[-1]["losses"], strict=True)) - 1
    case = f"{objective.name}: "
    return [
        Measure(case + f"{PROFILES:,} profiles", taken["ours"] * PROFILES, " s", SECONDS, "≤"),
        Measure(case + "a profile, ours", taken["ours"] * 1e3, " ms"),
        Measure(case + "a profile, cvxpy", taken["cvxpy"] * 1e3, " ms"),
        Measure(case + "ours / cvxpy", taken["cvxpy"] / taken["ours"], "×", REQUIRED),
        Measure(case + "largest KKT residual", float(allocation.residual.max()), "", 1e-8, "≤"),
        Measure(case + "largest duality gap", float(allocation.gap.max()), "", 1e-8, "≤"),
        Measure(case + "loss above cvxpy's, median", worse, "", 1e-6, "≤"),
    ]


def _ask(worker: subprocess.Popen[str], problem: dict[str, object]) -> Answer:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(json.dumps(problem) + "\n")
    worker.stdin.flush()
    answer: Answer = json.loads(worker.stdout.readline())
    return answer


def _noise(catalogue: Catalogue, budgets: Units) -> list[Measure]:
    allocation = allocate(catalogue, budgets, to_ticks(EPSILON), MAE)
    mechanism, stream = Mechanism(catalogue, allocation.ticks), Keystream.secure()
    rng = np.random.default_rng()
    profiles = rng.integers(0, KINDS, USERS)
    truth = rng.integers(0, 100, (USERS, ATTRIBUTES))
    scales = 1 / allocation.spend
    mechanism.perturb(truth[:100], profiles[:100], stream)  # makes the tables

    def plain() -> None:
        for start in range(0, USERS, 1 << 12):
            part = slice(start, start + (1 << 12))
            truth[part] + rng.laplace(0, scales[profiles[part]])

    taken = cpu_medians({"ours": lambda: mechanism.perturb(truth, profiles, stream), "plain": plain}, ROUNDS)
    cells = USERS * ATTRIBUTES
    return [
        Measure("noise: exact, aggregates", cells / taken["ours"], "/s"),
        Measure("noise: plain NumPy, floating point, not private", cells / taken["plain"], "/s"),
        Measure("noise: exact / plain NumPy", taken["plain"] / taken["ours"], "×", NOISE_REQUIRED),
    ]
