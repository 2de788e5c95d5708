"""multiupp 5.3, the case study: what a recommender loses when it learns from items reconstructed from aggregates.

The paper says neither what becomes of the ratings nor how ratings were held out. Here 20 % of all ratings are held out
by lot, every user has one of 100 profiles t drawn as in its Section 5.1, and ε = 0.1. A *reading* says which ratings
the reconstructed items bring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream
from pldp.papers.model import Data, Point, Unit
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.papers.multiupp.filter import SCALE, Ratings, means, train
from pldp.papers.multiupp.items import Floats, Kinds, Whole, draw_items, fit
from pldp.papers.multiupp.utility import draw_profiles
from pldp.questions.aggregates.budgets import allocate, to_ticks
from pldp.questions.aggregates.objectives import OBJECTIVES
from pldp.questions.aggregates.release import Mechanism

PLACE, ITEMS, LOSS, MEASURED = "Case study", "Reconstructed items", "loss", "measured"
EPSILON = Fraction(1, 10)
HELD_OUT = 0.2
PROFILES = 100
OWN, CONTROL, FILLED, PUBLIC = (
    "own ratings of items found",
    "own ratings by lot, as many",
    "own ratings, else item's mean",
    "item's mean for items found",
)
READINGS = (OWN, CONTROL, FILLED, PUBLIC)
UNFILTERED = ("no filter: item's mean", "no filter: user's mean", "no filter: both means", "no filter: mean of all")


@dataclass(frozen=True)
class World:
    """One draw: who is held out, and how each user's known items and ratings look as tables."""

    known: Ratings
    held_out: Ratings
    n_users: int
    genres: NDArray[np.uint8]
    raw: Floats
    """Absolute errors of the filter that learns from the known ratings as they are."""

    @property
    def raw_error(self) -> float:
        return float(self.raw.mean())

    def learn(self, learnt: Ratings, seed: int) -> Floats:
        """Predictions of what is held out."""
        filtered = train(learnt, self.n_users, len(self.genres), seed)
        return filtered.predict(self.held_out.user, self.held_out.item)

    def loss(self, predicted: Floats) -> tuple[float, float]:
        """How much larger the error is than with raw data, and how well the held-out ratings tell that."""
        missed = np.abs(predicted - self.held_out.rating)
        ratio = float(missed.mean()) / self.raw_error
        return ratio - 1, float((missed - ratio * self.raw).std() / self.raw_error / np.sqrt(missed.size))


def run_case(unit: Unit, data: Data) -> list[Point]:
    """Losses of one reading, each draw with its own split, profiles, noise and lots."""
    reading, name = str(unit.arguments["reading"]), str(unit.arguments["objective"])
    users = int(unit.arguments["users"])
    draws = [_draw(data, reading, name, users, unit.seed + draw) for draw in range(unit.repeats)]
    x = reading if name == "mse" else f"{reading} ({name.upper()})"
    rates = [_point(ITEMS, MEASURED, rate, [each[rate] for _, each in draws]) for rate in draws[0][1]]
    return [_losses(x, [loss for loss, _ in draws]), *rates]


def run_unfiltered(unit: Unit, data: Data) -> list[Point]:
    """What prediction without any filter loses: the yardstick for the paper's 8 %."""
    losses, raw = [], []
    for draw in range(unit.repeats):
        world = world_of(data, int(unit.arguments["users"]), unit.seed + draw)
        known, out = world.known, world.held_out
        item, user = (
            means(known.item, known.rating, len(world.genres)),
            means(known.user, known.rating, world.n_users),
        )
        mean = float(known.rating.mean())
        predicted = (
            item[out.item],
            user[out.user],
            item[out.item] + user[out.user] - mean,
            np.full(out.user.size, mean),
        )
        losses.append([world.loss(np.clip(one, *SCALE)) for one in predicted])
        raw.append(world.raw_error)
    points = [_losses(name, list(each)) for name, each in zip(UNFILTERED, zip(*losses, strict=True), strict=True)]
    return [*points, _point(ITEMS, MEASURED, "MAE of the filter that learns from raw data", raw)]


def run_fit(unit: Unit, data: Data) -> list[Point]:
    """How near the reconstruction comes to the best: its squared misfit beside a bound that none can go below."""
    world = world_of(data, int(unit.arguments["users"]), unit.seed, trained=False)
    kinds = Kinds.of(world.genres)
    wanted = _perturbed(world, kinds, "mse", unit.seed)
    fitted, tight = fit(kinds, wanted), fit(kinds, wanted, steps=int(unit.arguments["steps"]))
    scale = np.sqrt(2 * np.stack([fitted.loss, tight.bound]) / wanted.shape[1])
    noise = np.median(np.abs(wanted - _true(world, kinds)))
    figures = {
        "misfit an attribute, median user": np.median(scale[0]),
        "misfit that none can go below, median user": np.median(scale[1]),
        "largest misfit above what none can go below": (scale[0] - scale[1]).max(),
        "true aggregate, mean": _true(world, kinds).mean(),
        "noise on an aggregate, median": noise,
    }
    return [Point(place=ITEMS, series=MEASURED, x=x, value=float(value)) for x, value in figures.items()]


def _point(place: str, series: str, x: str, values: Sequence[float], single: float = 0.0) -> Point:
    """The mean over draws and its error; of a single draw the error that is given."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else single
    return Point(
        place=place, series=series, x=x, value=float(np.mean(values)), standard_error=error, repeats=len(values)
    )


def _losses(x: str, pairs: Sequence[tuple[float, float]]) -> Point:
    return _point(PLACE, LOSS, x, [loss for loss, _ in pairs], pairs[0][1])


def world_of(data: Data, users: int, seed: int, *, trained: bool = True) -> World:
    """The first `users` users; the split depends on the seed alone, so that readings are compared on the same one."""
    number = data["user"].astype(np.int64) - 1
    chosen = number < users
    every = Ratings(number[chosen], data["movie"][chosen].astype(np.int64), data["rating"][chosen].astype(np.float64))
    rng = np.random.default_rng([seed, 0])
    out = rng.random(every.rating.size) < HELD_OUT
    known, held_out, genres = every.part(~out), every.part(out), data["genres"].astype(np.uint8)
    world = World(known, held_out, users, genres, np.zeros(0))
    return replace(world, raw=np.abs(world.learn(known, seed) - held_out.rating)) if trained else world


def _perturbed(world: World, kinds: Kinds, objective: str, seed: int) -> Floats:
    """Every user's aggregates as the provider gets them; what differs between objectives is the allocation only."""
    names = [str(column) for column in range(world.genres.shape[1])]
    catalogue = dense_catalogue(names, world.genres)
    profiles = draw_profiles(len(names), PROFILES, np.random.default_rng([seed, 1]))
    mechanism = Mechanism(catalogue, allocate(catalogue, profiles, to_ticks(EPSILON), OBJECTIVES[objective]).ticks)
    rng = np.random.default_rng([seed, 2])
    whose = rng.integers(0, PROFILES, world.n_users)
    return mechanism.perturb(_true(world, kinds), whose, Keystream.seeded(seed, "multiupp")).astype(np.float64)


def _true(world: World, kinds: Kinds) -> Whole:
    return kinds.counts(world.known.user, world.known.item, world.n_users) @ kinds.rows.astype(np.int64)


def _draw(
    data: Data, reading: str, objective: str, users: int, seed: int
) -> tuple[tuple[float, float], dict[str, float]]:
    """Loss with its error, and how many items were found, for the reading that they matter to."""
    world = world_of(data, users, seed)
    kinds = Kinds.of(world.genres)
    user, item = draw_items(
        kinds, fit(kinds, _perturbed(world, kinds, objective, seed)).counts, np.random.default_rng([seed, 3])
    )
    table = np.zeros((users, len(world.genres)))
    table[world.known.user, world.known.item] = world.known.rating
    ratings = table[user, item]
    learnt = LEARNT[reading](world, user, item, ratings, np.random.default_rng([seed, 4]))
    hits = int((ratings > 0).sum())
    rates = {
        "items a user": user.size / users,
        "share of the user's own items that are among them": hits / world.known.rating.size,
        "share of them that are the user's own": hits / user.size,
        "share of all items that are the user's own": world.known.rating.size / users / len(world.genres),
    }
    return world.loss(world.learn(learnt, seed)), rates if (reading, objective) == (OWN, "mse") else {}


_Indices = NDArray[np.intp]
_Reading = Callable[[World, _Indices, _Indices, Floats, np.random.Generator], Ratings]


def _own(world: World, user: _Indices, item: _Indices, ratings: Floats, rng: np.random.Generator) -> Ratings:
    """Only a rating that exists can be learnt from: the user's own, of items that happen to be reconstructed."""
    return Ratings(user, item, ratings).part(ratings > 0)


def _control(world: World, user: _Indices, item: _Indices, ratings: Floats, rng: np.random.Generator) -> Ratings:
    """As many of the known ratings as `_own` has, whatever the aggregates say."""
    share = float((ratings > 0).sum()) / world.known.rating.size
    return world.known.part(rng.random(world.known.rating.size) < share)


def _filled(world: World, user: _Indices, item: _Indices, ratings: Floats, rng: np.random.Generator) -> Ratings:
    mean = means(world.known.item, world.known.rating, len(world.genres))
    return Ratings(user, item, np.where(ratings > 0, ratings, mean[item]))


def _public(world: World, user: _Indices, item: _Indices, ratings: Floats, rng: np.random.Generator) -> Ratings:
    """Nothing of the user but the perturbed aggregates: the only reading within the paper's promise."""
    return Ratings(user, item, means(world.known.item, world.known.rating, len(world.genres))[item])


LEARNT: dict[str, _Reading] = dict(zip(READINGS, (_own, _control, _filled, _public), strict=True))
