"""Predicted errors against simulated ones, by the exact aggregate sampler; and what only simulation can tell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.randomness import Keystream
from pldp.estimate.combine import combine_linear, estimate_levels, linear_weights, noise_variances, spread
from pldp.estimate.hidden import auem, draw_hidden, level_report, self_calibrated
from pldp.estimate.likelihood import maximum_likelihood, table_blocks, tally
from pldp.estimate.mixture import correct_em
from pldp.estimate.postprocess import project_to_simplex
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.papers.model import Data, Point, Unit
from pldp.papers.summary.choices import (
    EPSILON_P,
    Choice,
    Setting,
    attribute,
    best_mechanism,
    hidden_choices,
    public_choices,
)

CHECKED, BEYOND, WAYS = "Predictions, checked", "Likelihood and projection", "Four ways"
PEERS = Setting(values=16, budgets=(Fraction(1, 2), Fraction(1), Fraction(3)), shares=(0.5, 0.3, 0.2), users=100_000)
_EQUAL = 1.001  # subset selection of one value is k-RR
_CELLS = 2_000_000  # of draws held at a time


def setting_of(unit: Unit) -> Setting:
    arguments = unit.arguments
    return Setting.of(
        int(arguments["values"]), Fraction(str(arguments["epsilon"])), str(arguments["mix"]), int(arguments["users"])
    )


def run_check(unit: Unit, data: Data) -> list[Point]:
    """The two best choices of a setting, predicted and simulated: root mean squared errors over the values."""
    setting, hidden = setting_of(unit), bool(unit.arguments["hidden"])
    ranked = hidden_choices(setting) if hidden else public_choices(setting)
    second = next(one for one in ranked if one.protocol != ranked[0].protocol and one.error > ranked[0].error * _EQUAL)
    name = f"{'hidden' if hidden else 'public'}, k = {setting.values}, ε = {unit.arguments['epsilon']}"
    points = []
    for rank, choice in (("best", ranked[0]), ("next protocol", second)):
        simulate = simulate_hidden if hidden else simulate_public
        squares = simulate(setting, choice, unit.repeats, np.random.default_rng(unit.seed))
        x = f"{name}: {rank}, {choice.name}"
        mean = float(squares.mean())
        error = float(squares.std(ddof=1) / np.sqrt(squares.size)) / 2 / mean  # of the root, relative
        points += [
            Point(place=CHECKED, series="predicted", x=x, value=choice.error),
            Point(
                place=CHECKED,
                series="simulated",
                x=x,
                value=float(np.sqrt(mean)),
                standard_error=error * float(np.sqrt(mean)),
                repeats=unit.repeats,
            ),
            Point(
                place=CHECKED,
                series="simulated / predicted",
                x=x,
                value=float(np.sqrt(mean)) / choice.error,
                standard_error=error * float(np.sqrt(mean)) / choice.error,
                repeats=unit.repeats,
            ),
        ]
    return points


def _dealt(setting: Setting, repeats: int, rng: np.random.Generator) -> tuple[Counts, Floats]:
    """True counts by level, (repeat, level, value), and the truth."""
    counts = whole_counts(setting.frequency, setting.users)
    return draw_levels(counts, setting.sizes, repeats, rng), counts / setting.users


def simulate_public(setting: Setting, choice: Choice, repeats: int, rng: np.random.Generator) -> Floats:
    """Mean squared error of every repetition."""
    protocols = attribute(setting, choice.mechanisms).protocols
    parts = []
    for some in _batches(setting, repeats):
        dealt, truth = _dealt(setting, some, rng)
        levels = estimate_levels(draw_support(dealt, protocols, rng), setting.sizes, protocols)
        parts.append(np.mean((combine_linear(choice.estimator, levels).frequency - truth) ** 2, axis=-1))
    return np.concatenate(parts)


def simulate_hidden(setting: Setting, choice: Choice, repeats: int, rng: np.random.Generator) -> Floats:
    protocols = attribute(setting, choice.mechanisms * len(setting.budgets)).protocols
    report = level_report(len(protocols), EPSILON_P)
    parts = []
    for some in _batches(setting, repeats):
        dealt, truth = _dealt(setting, some, rng)
        joint, reported = draw_hidden(dealt, protocols, report, rng)
        if choice.estimator == "em":
            frequency = np.stack(
                [correct_em(table_blocks(protocols, one), protocols, report).frequency for one in joint]
            )
        elif choice.estimator == "auem":
            frequency = auem(joint, reported, protocols, report).frequency
        else:
            frequency = self_calibrated(joint.sum(axis=-2), setting.users, protocols).frequency
        parts.append(np.mean((frequency - truth) ** 2, axis=-1))
    return np.concatenate(parts)


def _batches(setting: Setting, repeats: int) -> list[int]:
    most = max(1, _CELLS // (setting.values * len(setting.budgets)))
    return [min(most, repeats - done) for done in range(0, repeats, most)]


def run_ways(unit: Unit, data: Data) -> list[Point]:
    """What four ways to use the same people cost, mean squared error: from one budget for all to the best of ours."""
    setting, rng = PEERS, np.random.default_rng(unit.seed)
    dealt, truth = _dealt(setting, unit.repeats, rng)
    alike, apart = (
        attribute(setting, mechanisms).protocols
        for mechanisms in (("oue",) * 3, tuple(best_mechanism(setting, budget) for budget in setting.budgets))
    )
    strict = alike[0].estimate(alike[0].sample_support(dealt.sum(axis=-2), rng), setting.users)
    levels = estimate_levels(draw_support(dealt, alike, rng), setting.sizes, alike)
    noise, between = noise_variances(alike, setting.frequency), spread(setting.frequency, setting.users)
    weighted = linear_weights("oc", setting.sizes, noise, between)
    best = estimate_levels(draw_support(dealt, apart, rng), setting.sizes, apart)
    by_series = {
        "everybody at the strictest, OUE": strict,
        "all users weigh alike, OUE": combine_linear("sum", levels).frequency,
        "inverse variance, OUE": (weighted * levels.frequencies).sum(axis=-2),
        "best protocol of each level, oc": combine_linear("oc", best).frequency,
        "best protocol of each level, oc+": combine_linear("oc+", best).frequency,
    }
    points = []
    for series, estimates in by_series.items():
        each = np.mean((estimates - truth) ** 2, axis=-1)
        error = float(each.std(ddof=1) / np.sqrt(each.size))
        points.append(
            Point(
                place=WAYS,
                series="mean squared error",
                x=series,
                value=float(each.mean()),
                standard_error=error,
                repeats=each.size,
            )
        )
    return points


def run_beyond(unit: Unit, data: Data) -> list[Point]:
    """oc+ alone, projected onto the simplex, and the likelihood's maximum, on the same reports."""
    setting = setting_of(unit)
    protocols = attribute(setting, tuple(best_mechanism(setting, budget) for budget in setting.budgets)).protocols
    rng = np.random.default_rng(unit.seed)
    dealt, truth = _dealt(setting, unit.repeats, rng)
    squares: dict[str, list[float]] = {"oc+": [], "oc+, norm-sub": [], "em": []}
    for repeat, counts in enumerate(dealt):
        tables = [
            _reports(protocol, level_counts, Keystream.seeded(unit.seed, repeat, level))
            for level, (protocol, level_counts) in enumerate(zip(protocols, counts, strict=True))
        ]
        support = np.stack([protocol.support(reports) for protocol, reports in zip(protocols, tables, strict=True)])
        plain = combine_linear("oc+", estimate_levels(support, setting.sizes, protocols)).frequency
        cells = [tally(protocol, reports) for protocol, reports in zip(protocols, tables, strict=True)]
        likely = maximum_likelihood(table_blocks(protocols, cells), protocols).frequency
        for name, estimate in zip(squares, (plain, project_to_simplex(plain), likely), strict=True):
            squares[name].append(float(np.mean((estimate - truth) ** 2)))
    points = []
    for name, each in squares.items():
        root = float(np.sqrt(np.mean(each)))
        error = float(np.std(each, ddof=1) / np.sqrt(len(each)) / 2 / root)
        panel = f"k = {setting.values}, ε = {unit.arguments['epsilon']}"
        points.append(
            Point(
                place=BEYOND,
                panel=panel,
                series=name,
                x=str(setting.users),
                value=root,
                standard_error=error,
                repeats=len(each),
            )
        )
    return points


def _reports(protocol: PureProtocol, counts: Counts, stream: Keystream) -> np.ndarray:
    values = np.repeat(np.arange(counts.size, dtype=np.uint16), counts)
    return protocol.perturb(values, stream)
