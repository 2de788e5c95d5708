"""Faults in estimators, combinations, tables and the code of people, of every kind: each fails a gate of the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pldp.estimate.combine as histogram_combine
from pldp.channels.bits import coins
from pldp.channels.exact import SCALE
from pldp.channels.protocol import PureProtocol
from pldp.channels.randomness import Keystream
from pldp.channels.unary import BRR, OUE
from pldp.proof.laws import ROUNDING
from pldp.proof.trial import MOST_CELLS
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.histograms.question import Histograms
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.question import Items
from pldp.questions.items.transactions import Columns
from pldp.questions.madeup import MadeUp
from pldp.questions.numbers.question import Numbers
from pldp.questions.proof import EXACT, rehearsal
from pldp.questions.question import Question
from tests.pldp.proof.test_proof import FEW, MANY, WORLDS
from tests.pldp.questions.histograms.people import question as histogram_question
from tests.pldp.questions.items.memory import NAMES, ONE, make_question
from tests.pldp.questions.memory import passes
from tests.pldp.questions.numbers import test_question as numbers

SLIGHT = 1.0001
PROVERS = {"prove.py", "rehearse.py", "rehearse_sampled.py"}
COLUMNS = {
    "histograms": ("histograms", "unbiased_frequency"),
    "numbers": ("means", "mean"),
    "items": ("itemsets", "support"),
    "aggregates": ("aggregates", "total"),
}
"""Of every kind: where its estimates are published."""


def _off(question: Question) -> float:
    return max(one.off for one in question.recovered())


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("row", [0, -1])
def test_one_row_of_a_table_that_is_scaled(name: str, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantiles stand beside the mean of the same reports; they are a likelihood's, which nothing brings back."""
    question = WORLDS[name]().question
    table, column = COLUMNS[question.kind]
    right = type(question).tables

    def tables(self: Any, result: Any) -> Any:
        made = right(self, result)
        values = np.asarray(made[table][column], dtype=np.float64).copy()
        values[row] *= SLIGHT
        return {**made, table: {**made[table], column: values}}

    assert _off(question) <= EXACT
    monkeypatch.setattr(type(question), "tables", tables)
    assert _off(question) > EXACT


@pytest.mark.parametrize("name", WORLDS)
def test_a_file_that_is_counted_as_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A combination that takes the reports of one level (provider, phase) for those of the next."""
    question = WORLDS[name]().question
    right = type(question).combine
    if len(question.sheets()) == 1:
        pytest.skip("it has one file of reports")
    if name in ("laplace", "quantiles"):
        pytest.skip("reports are on one scale at every level, or go to a likelihood: a mean is the same")

    def combine(self: Any, method: str, tallies: Any, reports: Any) -> Any:
        paths = list(tallies)
        mixed = {path: tallies[other] for path, other in zip(paths, [*paths[1:], paths[0]], strict=True)}
        return right(self, method, mixed, reports)

    monkeypatch.setattr(type(question), "combine", combine)
    with suppress(ValueError, IndexError):  # of another shape: refused before any gate
        assert _off(question) > EXACT


def test_an_error_of_totals_that_is_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    question, right = WORLDS["aggregates"]().question, Aggregates.tables

    def tables(self: Any, result: Any) -> Any:
        made = right(self, result)["aggregates"]
        return {"aggregates": {**made, "standard_error": np.asarray(made["standard_error"]) * SLIGHT}}

    monkeypatch.setattr(Aggregates, "tables", tables)
    assert _off(question) > EXACT


@pytest.mark.parametrize("renormalised", [False, True])
def test_the_weight_of_a_level_that_is_dropped(renormalised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that still sum to one leave a truth alone that is every level's: that of `sum` is another in each."""
    attributes = [{"name": "job", "values": FEW, "mechanism": "krr"}]
    plan = histogram_question(attributes=attributes, combination={"method": "sum"})
    right = histogram_combine.linear_weights

    def dropped(*arguments: Any) -> Any:
        weights = np.array(right(*arguments))
        weights[..., 0, :] = 0
        return weights / weights.sum(axis=-2, keepdims=True) if renormalised else weights

    assert _off(plan) <= EXACT
    monkeypatch.setattr(histogram_combine, "linear_weights", dropped)
    assert _off(plan) > 1e-3


@pytest.mark.parametrize("name", [name for name, made in WORLDS.items() if isinstance(made().question, Histograms)])
def test_chances_that_are_swapped_in_the_estimator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question = WORLDS[name]().question

    def swapped(self: PureProtocol, support: Any, n: int) -> Any:
        return (support / n - self.p) / (self.q - self.p)

    monkeypatch.setattr(PureProtocol, "estimate", swapped)
    if question.hidden is None:  # type: ignore[attr-defined]
        assert _off(question) > 1e-3


@pytest.mark.parametrize("name", WORLDS)
def test_a_threshold_that_is_a_millionth_off(name: str) -> None:
    """One channel of one level: of a protocol, of a mechanism, of bits, of single values, of noise."""
    question = WORLDS[name]().question
    assert max(one.off for one in question.recomputed()) <= EXACT
    assert max(one.off for one in _nudged(question).recomputed()) > 1e-8 > ROUNDING


def _nudged(question: Question) -> Question:
    match question:
        case Histograms():
            first = question.attributes[0]
            level = _again(first.levels[0], parameters=_off_by_a_millionth(first.levels[0].parameters))
            attribute = first.model_copy(update={"levels": (level, *first.levels[1:])})
            return question.model_copy(update={"attributes": (attribute, *question.attributes[1:])})
        case Numbers():
            one = question.levels[0].classes[0]
            used = _again(one.mechanisms[0], parameters=_off_by_a_millionth(one.mechanisms[0].parameters))
            known = one.model_copy(update={"mechanisms": (used, *one.mechanisms[1:])})
            level = question.levels[0].model_copy(update={"classes": (known, *question.levels[0].classes[1:])})
            return question.model_copy(update={"levels": (level, *question.levels[1:])})
        case Items():
            return question.model_copy(update={"levels": (_nudged_items(question.levels[0]), *question.levels[1:])})
        case Aggregates():
            provider = question.providers[0]
            services = tuple(
                one.model_copy(update={"ticks": tuple(ticks + max(1, ticks >> 8) for ticks in one.ticks)})
                for one in provider.services
            )
            return question.model_copy(
                update={"providers": (provider.model_copy(update={"services": services}), *question.providers[1:])}
            )
    raise TypeError(question.kind)


def _nudged_items(level: Any) -> Any:
    channel = level.channel
    match channel.kind:
        case "bits":
            update = {"keep_one": tuple(keep + (keep >> 20) for keep in channel.keep_one)}
        case "value":
            update = {"redraw": tuple(redraw - (redraw >> 12) for redraw in channel.redraw)}
        case _:
            items = channel.items
            parameters = _off_by_a_millionth(items.parameters)
            update = {"items": _again(items, parameters=parameters)}
    return _again(level, channel=_again(channel, **update))


LEVELS = {"of": 3, "levels": dict(zip(NAMES, (1, 2, 1, 2, 1, 2), strict=True))}
SINGLE = {**ONE, "budget": {"total": 2, "bound": 1000}, "levels": None, "users": None}
LOUDER: dict[str, tuple[Callable[[], Items], Callable[[Any], Any]]] = {
    "two values that are told as they are": (
        lambda: make_question(**{**SINGLE, "budget": {"total": 2}}),
        lambda channel: _again(channel, redraw=(0, 0, *channel.redraw[2:])),
    ),
    "values alike that are drawn anew more often": (
        lambda: make_question(**{**SINGLE, "budget": {"total": 2}}),
        lambda channel: _again(channel, redraw=tuple(int(redraw * 1.01) for redraw in channel.redraw)),
    ),
    "values that aprr draws anew less often": (
        lambda: make_question(**SINGLE, protocol="aprr", sensitivity=LEVELS),
        lambda channel: _again(channel, redraw=tuple(int(redraw * 0.99) for redraw in channel.redraw)),
    ),
    "a row of more than 30": (
        lambda: make_question(protocol="bounded", budget={"total": 40}, levels=None, users=None),
        lambda channel: _again(
            channel,
            keep_one=tuple(SCALE - (SCALE - keep) // 2 for keep in channel.keep_one),
            keep_zero=tuple(SCALE - (SCALE - keep) // 2 for keep in channel.keep_zero),
        ),
    ),
}


@pytest.mark.parametrize("name", LOUDER)
def test_a_channel_of_items_at_another_budget(name: str) -> None:
    """A ratio of two chances of nothing is no number, which passed. By aprr, of rows of more than 30, and of values
    that spend less nothing was compared with the budget."""
    made, wrong = LOUDER[name]
    question = made()
    level = _again(question.levels[0], channel=wrong(question.levels[0].channel))
    assert max(one.off for one in question.recomputed()) <= EXACT
    assert max(one.off for one in question.model_copy(update={"levels": (level,)}).recomputed()) > 1e-3


def _again(model: Any, **fields: Any) -> Any:
    """Made anew: a copy would keep what is computed once from its fields."""
    return type(model).model_validate({**{name: getattr(model, name) for name in type(model).model_fields}, **fields})


def _off_by_a_millionth(parameters: dict[str, int]) -> dict[str, int]:
    """The last of them is a threshold, or a length."""
    *rest, last = parameters.items()
    return dict([*rest, (last[0], last[1] - max(1, last[1] >> 20))])


def test_made_up_people_stay_in_the_proof() -> None:
    """Only what proves makes them; nothing that commits reports, adds up a release or spends knows of them."""
    root = Path(__file__).parents[3] / "pldp"
    users = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if "questions.madeup" in path.read_text()}
    assert len(users) >= 6
    assert {user for user in users if Path(user).name not in PROVERS} == set()
    assert not issubclass(MadeUp, Mapping), "draw and tally of a release take columns"


@pytest.mark.parametrize("mechanisms", [("pm", "pm", "pm"), ("pm", "hm", "duchi")])
def test_a_number_that_is_drawn_as_another(
    mechanisms: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or whose reports are counted as another's: made-up numbers stand on different sides."""
    attributes = [
        {"name": name, "kind": "number", "bounds": [0, 1], "mechanism": mechanism}
        for name, mechanism in zip("abc", mechanisms, strict=True)
    ]
    plan, right = numbers.question(total=12, attributes=attributes), Numbers.draw

    def mixed(self: Any, sheet: Any, rows: Any, *rest: Any) -> Any:
        return right(self, sheet, {**rows, "number_0": rows["number_2"], "number_2": rows["number_0"]}, *rest)

    assert _passes(plan, seed)
    monkeypatch.setattr(Numbers, "draw", mixed)
    assert not _passes(plan, seed)


@pytest.mark.parametrize("name", ["bits", "bits at a small ε", "sampling", "sampling at a large ε", "one value"])
@pytest.mark.parametrize("places", [[5, 4, 3, 2, 1, 0], [1, 2, 3, 4, 5, 0]])
def test_items_that_are_counted_as_others(
    name: str, places: list[int], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other direction, or each as the next: nobody who holds all items or none shows that."""
    question, right = WORLDS[name]().question, Items.tally
    assert len(question.items) == len(places)  # type: ignore[attr-defined]

    def tally(self: Any, sheet: Any, reports: Any) -> Any:
        counted = right(self, sheet, reports)
        beyond = range(len(places), len(counted.counts))  # dummies
        return replace(counted, counts=np.asarray(counted.counts)[[*places, *beyond]])

    assert _passes(question, seed)
    monkeypatch.setattr(Items, "tally", tally)
    assert not _passes(question, seed)


def _passes(question: Question, seed: int) -> bool:
    return passes(rehearsal(list(question.rehearsed(Keystream.seeded(seed, "mixed"), MOST_CELLS))))


BINNED = {"name": "pay", "kind": "binned", "bounds": [0, 100], "bins": 8, "quantiles": [0.25, 0.5, 0.9]}
TABLES: dict[str, Callable[[], Question]] = {
    "level_estimates.frequency": lambda: WORLDS["krr"]().question,
    "level_estimates.level": lambda: WORLDS["krr"]().question,
    "level_estimates.n_reports": lambda: WORLDS["krr"]().question,
    "histograms.count": lambda: WORLDS["krr"]().question,
    "histograms.standard_error": lambda: WORLDS["krr"]().question,
    "level_shares.share": lambda: WORLDS["hidden"]().question,
    "bins.frequency": lambda: histogram_question(attributes=[BINNED]),
    "quantiles.probability": lambda: histogram_question(attributes=[BINNED]),
    "rules.support": lambda: WORLDS["bits"]().question,
    "itemsets.length": lambda: WORLDS["bits"]().question,
    "aggregates.share": lambda: WORLDS["aggregates"]().question,
    "aggregates.share_error": lambda: WORLDS["aggregates"]().question,
}


@pytest.mark.parametrize("place", TABLES)
def test_a_column_in_another_order(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell and the first that differs from it, exchanged: every number is one of its table's."""
    question, (table, column) = TABLES[place](), place.split(".")
    right = type(question).tables

    def tables(self: Any, result: Any) -> Any:
        made = right(self, result)
        cells = list(made[table][column])
        other = next(at for at, cell in enumerate(cells) if cell != cells[0])
        cells[0], cells[other] = cells[other], cells[0]
        return {**made, table: {**made[table], column: cells}}

    assert _off(question) <= EXACT
    monkeypatch.setattr(type(question), "tables", tables)
    assert _off(question) > EXACT


@pytest.mark.parametrize("place", ["rules.lift", "itemsets.n_users"])
def test_a_column_of_items_that_is_scaled(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose cells are alike in the proof, so that no other order of them shows."""
    question, right, (table, column) = WORLDS["bits"]().question, Items.tables, place.split(".")

    def tables(self: Any, result: Any) -> Any:
        made = right(self, result)
        scaled = [cell and cell * SLIGHT for cell in made[table][column]]
        return {**made, table: {**made[table], column: scaled}}

    assert _off(question) <= EXACT
    monkeypatch.setattr(Items, "tables", tables)
    assert _off(question) > EXACT


def _every_flip_alike(self: BRR, values: Any, stream: Keystream) -> Any:
    """All bits of a report kept, or all flipped: each bit has its chance, and the report tells the value."""
    flipped = coins(SCALE - self.keep, values.size, stream)[:, None]
    own = values[:, None] == np.arange(self.domain_size)
    return np.packbits(own ^ flipped.astype(np.bool_), axis=1, bitorder="little")


def test_bits_that_share_a_coin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    question = WORLDS["brr"]().question
    assert _passes(question, seed)
    monkeypatch.setattr(BRR, "perturb", _every_flip_alike)
    assert not _passes(question, seed)


def _every_item_alike(self: ItemChannels, columns: Any, stream: Keystream) -> Any:
    """All bits of a row kept, or all flipped, as often as each has to be."""
    flipped = coins(SCALE - self.keep_zero[0], columns.n_rows, stream).astype(np.bool_)
    return Columns.of_table(columns.table() ^ flipped[:, None])


@pytest.mark.parametrize("total", [1, 4, 24])
@pytest.mark.parametrize("items", [2, 6, 200])
def test_bits_of_items_that_share_a_coin(total: int, items: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item is told as its budget says, and the row is told whole."""
    question = make_question(items=[f"item {i}" for i in range(items)], protocol="bounded", budget={"total": total})
    assert _passes(question, seed)
    monkeypatch.setattr(ItemChannels, "perturb", _every_item_alike)
    assert not _passes(question, seed)


def test_sets_that_are_counted_as_others(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the files of reports, which expected counts of sets take the place of."""
    question, right = WORLDS["bits"]().question, Items.count_sets
    assert _passes(question, seed)
    monkeypatch.setattr(Items, "count_sets", lambda *arguments: np.roll(right(*arguments), 1, axis=0))
    assert not _passes(question, seed)


def test_an_own_bit_that_is_no_fair_coin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flip of 0.56 in place of a half, which noise dilutes to 0.515: an ε of 0.5 is 12 % larger then. Where values
    are many, their bits tell ε by few people."""
    attributes = [{"name": "job", "values": MANY, "mechanism": "oue"}]
    question = histogram_question(attributes=attributes, budget={"total": 1.5})
    assert _passes(question, seed)

    def perturb(self: OUE, values: Any, stream: Keystream) -> Any:
        reports = self._noise(self.flip, values, stream)
        self._flip_own(reports, values, coins(SCALE * 56 // 100, values.size, stream))
        return reports

    monkeypatch.setattr(OUE, "perturb", perturb)
    assert not _passes(question, seed)
