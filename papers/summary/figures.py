"""Which method when: for what an analyst knows beforehand, the best way to a histogram and its error."""

from __future__ import annotations

from fractions import Fraction

from pldp.papers.model import Data, Picture, Point, Reason, Unit
from pldp.papers.summary.check import BEYOND, CHECKED, WAYS, run_beyond, run_check, run_ways
from pldp.papers.summary.choices import (
    HIDDEN,
    HIDING,
    LEAKS,
    MIXES,
    MOST_TOLD,
    NAMES,
    OPENLY,
    PUBLIC,
    WORTH,
    Choice,
    Setting,
    hidden_choices,
    leak,
    public_choices,
    strictest,
)
from pldp.papers.summary.notes import NOTES

__all__ = ["NOTES", "PICTURES", "REASONS", "run", "units"]

_SEED = 2024
_EPSILONS = ("0.5", "1", "2", "3", "4", "6")
_PUBLIC_SIZES = (2, 4, 16, 64, 256, 1024)
_HIDDEN_SIZES = (2, 4, 8, 16, 32, 64)
_USERS = (10_000, 1_000_000)
_EQUAL = "levels are equal"


def units(quick: bool) -> list[Unit]:
    mixes = [_EQUAL] if quick else list(MIXES)
    repeats = 100 if quick else 1000
    hidden = [_unit("hidden", values=k, mix=mix) for k in reversed(_HIDDEN_SIZES) for mix in mixes]
    beyond = [
        _unit("beyond", repeats // 25, values=16, epsilon=epsilon, mix=_EQUAL, users=users)
        for users in ((10_000, 1_000) if quick else (100_000, 10_000, 1_000))
        for epsilon in ("1", "4")
    ]
    checks = [
        _unit(
            "check", repeats // 5 if secret else repeats, values=k, epsilon=e, mix=_EQUAL, users=10_000, hidden=secret
        )
        for secret in (1, 0)
        for k, e in ((16, "2"), (4, "1"), (64, "4"))
    ]
    public = [_unit("public", values=k, mix=mix) for k in reversed(_PUBLIC_SIZES) for mix in mixes]
    leaks = [_unit("leaks", epsilon=epsilon) for epsilon in ("1", "4")]
    return [*beyond, *hidden, *checks, _unit("ways", repeats), *public, *leaks]


def _unit(experiment: str, repeats: int = 1, **arguments: int | str) -> Unit:
    return Unit(paper="summary", experiment=experiment, arguments=arguments, repeats=repeats, seed=_SEED)


def run(unit: Unit, data: Data) -> list[Point]:
    return _RUN[unit.experiment](unit, data)


def _cells(unit: Unit) -> list[tuple[str, Setting]]:
    k, mix = int(unit.arguments["values"]), str(unit.arguments["mix"])
    return [(f"{e}; {k}", Setting.of(k, Fraction(e), mix, users)) for users in _USERS for e in _EPSILONS]


def _panel(setting: Setting) -> str:
    mix = next(name for name, shares in MIXES.items() if shares == setting.shares)
    return f"{setting.users:,} users, {mix}"


def _won(place: str, setting: Setting, x: str, choice: Choice) -> Point:
    return Point(place=place, panel=_panel(setting), series=choice.name, x=x, value=choice.error)


def _worth(setting: Setting, x: str, kind: str, choice: Choice) -> Point:
    """How many times fewer people give the same error, if they are asked for their own level."""
    mix = _panel(setting).partition(", ")[2]
    ratio = (strictest(setting).error / choice.error) ** 2
    return Point(place=WORTH, panel=f"{kind}, k = {setting.values}", series=mix, x=x.partition(";")[0], value=ratio)


def _run_public(unit: Unit, data: Data) -> list[Point]:
    points = []
    for x, setting in _cells(unit):
        best = public_choices(setting)[0]
        points.append(_won(PUBLIC, setting, x, best))
        if setting.users == _USERS[0] and setting.values in _WORTH_SIZES:
            points.append(_worth(setting, x, "public", best))
    return points


def _run_hidden(unit: Unit, data: Data) -> list[Point]:
    points = []
    for x, setting in _cells(unit):
        ranked = hidden_choices(setting)
        leaks = {name: leak(setting, name) for name in HIDING}
        best = next(one for one in ranked if not one.personal or leaks[one.mechanisms[0]] <= MOST_TOLD)
        points.append(_won(HIDDEN, setting, x, best))
        if setting.users == _USERS[0]:
            points.append(_won(OPENLY, setting, x, ranked[0]))
            points += [_worth(setting, x, "hidden", best)] if setting.values in _WORTH_SIZES else []
    return points


def _run_leaks(unit: Unit, data: Data) -> list[Point]:
    epsilon = str(unit.arguments["epsilon"])
    return [
        Point(place=LEAKS, panel=f"ε = {epsilon}", series=f"{NAMES[name]} reports", x=str(k), value=leak(setting, name))
        for k in _HIDDEN_SIZES
        for setting in [Setting.of(k, Fraction(epsilon), _EQUAL, _USERS[0])]
        for name in HIDING
    ]


_WORTH_SIZES = (4, 16, 64)
_RUN = {
    "public": _run_public,
    "hidden": _run_hidden,
    "leaks": _run_leaks,
    "check": run_check,
    "ways": run_ways,
    "beyond": run_beyond,
}

REASONS: tuple[Reason, ...] = ()

_AXES = "ε of the weakest level; number of values"
_MAPS = tuple(f"{users:,} users, {mix}" for users in _USERS for mix in MIXES)
PICTURES = (
    *(
        Picture(place=place, title=title, x_title=_AXES, y_title="", kind="grid", panels=panels)
        for place, title, panels in (
            (PUBLIC, "the best protocol, combined by oc+", _MAPS),
            (HIDDEN, f"the best within a leak of {MOST_TOLD}", _MAPS),
            (OPENLY, "the best whatever it tells about the level", _MAPS[: len(MIXES)]),
        )
    ),
    Picture(
        place=LEAKS,
        title="the exact ε of the level",
        x_title="number of values",
        y_title="ε about the level",
        log_x=True,
        log_y=True,
    ),
    Picture(
        place=WORTH,
        title="against everybody at the strictest level",
        x_title="ε of the weakest level",
        y_title="times fewer people",
        log_y=True,
        panels=tuple(f"{kind}, k = {k}" for k in _WORTH_SIZES for kind in ("public", "hidden")),
    ),
    Picture(
        place=WAYS,
        title="k = 16, 100,000 people, ε 0.5, 1 and 3 chosen by 50, 30 and 20 %",
        x_title="",
        y_title="mean squared error",
        kind="dots",
    ),
    Picture(
        place=BEYOND, title="what they add", x_title="users", y_title="root mean squared error", log_x=True, log_y=True
    ),
    Picture(place=CHECKED, title="", x_title="setting and choice", y_title="", kind="table"),
)
