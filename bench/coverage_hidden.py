"""Coverage under hidden levels: `auem`, `self-calibrated` and `sum` from exact laws, `em` from whole reports.

One value is looked at by itself: of a pure protocol its support by told level is a sum of binomials, and so is the
number of all other bits that BRR sets, which `self-calibrated` needs beside it. So no k and no n is too large.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from bench.cells import draw_cell
from bench.coverage import MIXES, moved_tilt
from bench.coverage_report import ANY_CHOICE, REPEATS, Row, row
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.hidden import draw_hidden, level_report
from pldp.estimate.hidden_choice import MOST_VARIATION, choose_hidden
from pldp.estimate.hidden_interval import calibrated_interval, fieller_interval, sum_interval
from pldp.estimate.likelihood import table_blocks
from pldp.estimate.mixture import correct_em
from pldp.estimate.score import Interval
from pldp.estimate.simulate import draw_levels, whole_counts

FITS = 400
"""Repetitions of `em`."""
Z = 1.959963984540054
_STEP = 12.5
"""Standard deviation of a support, in reports, from which on its steps force no more than half a per cent."""
_ALL = 0.9
FEW_REPORTS = "few reports: their number scatters by less than 12.5, one is a step of 0.08 standard errors"
_PROTOCOLS = {"k-RR": KRR, "BRR": BRR}


@dataclass(frozen=True)
class Hidden:
    values: int
    users: int
    epsilon: float
    epsilon_p: float
    mix: str
    protocol: str
    method: str
    choice: str = "independent"

    @property
    def name(self) -> str:
        return (
            f"k {self.values}, n {self.users:,}, ε {self.epsilon:g}, ε_p {self.epsilon_p:g}, {self.mix}, "
            f"{self.protocol}, hidden {self.method}, {self.choice}"
        )

    @property
    def sizes(self) -> Counts:
        return whole_counts(np.array([share for share, _ in MIXES[self.mix]]), self.users)

    @property
    def protocols(self) -> tuple[PureProtocol, ...]:
        kind = _PROTOCOLS[self.protocol]
        return tuple(kind.for_budget(self.values, Fraction(str(self.epsilon)) * part) for _, part in MIXES[self.mix])

    @property
    def report(self) -> KRR:
        return level_report(self.sizes.size, Fraction(str(self.epsilon_p)))

    @property
    def default(self) -> bool:
        """Whether a plan takes it: what is refused is not released. `sum` is taken where dependence is unknown."""
        if self.method == "sum":
            return True
        shares = 1 / np.arange(1, self.values + 1)
        chosen = choose_hidden(self.sizes, self.protocols, self.report, shares / shares.sum())
        return chosen.method == self.method and not (self.method == "auem" and chosen.variation > MOST_VARIATION)


def grid() -> Iterator[Hidden]:
    sizes = ((2, 3, 7, 33, 257), (200, 1_000, 20_000, 1_000_000), (0.5, 2, 6, 20), (0.5, 2), ("five", "thirds"))
    for base in product(*sizes):
        yield Hidden(*base, "k-RR", "auem")
        yield Hidden(*base, "BRR", "auem")
        if base[0] > 2:
            yield Hidden(*base, "BRR", "self-calibrated")
    # BRR's law does not know of k.
    for users, epsilon, mix in product(sizes[1], (2, 20), sizes[4]):
        for choice in ("independent", "moved"):
            yield Hidden(7, users, epsilon, 2, mix, "k-RR", "sum", choice)
            yield Hidden(7, users, epsilon, 2, mix, "BRR", "sum", choice)


def fits() -> Iterator[Hidden]:
    for values, users, epsilon in product((3, 7, 33), (200, 1_000, 20_000), (2, 6, 20)):
        yield Hidden(values, users, epsilon, 2, "five", "k-RR", "em")


def classes(setting: Hidden) -> dict[str, int]:
    counts = whole_counts(1 / np.arange(1, setting.values + 1), setting.users)
    holders = {
        "nobody": 0,
        "one person": 1,
        "rare": max(int(counts[-1]) // 4, 3),
        "middle": int(counts[setting.values // 2]),
        "top": int(counts[0]),
    }
    return holders if setting.choice == "moved" else holders | {"most": setting.users * 9 // 10}


def draw_one(setting: Hidden, holders: int, repeats: int, rng: np.random.Generator) -> tuple[Counts, Counts, Floats]:
    """Support by told level of the value and of all others together, (repeat, b, 2); who told what; the true share.

    `self-calibrated` asks for no told level: everybody counts as one. The others ask for the value alone, and all
    others' support is left at zero.
    """
    sizes, protocols, report, k = setting.sizes, setting.protocols, setting.report, setting.values
    tilt = moved_tilt(sizes / sizes.sum()) if setting.choice == "moved" else None
    held = draw_cell(holders, sizes, repeats, rng, tilt)
    alone = setting.method == "self-calibrated"
    levels = len(protocols)
    joint = np.zeros((repeats, 1 if alone else levels, 2), dtype=np.int64)
    reported = np.zeros(joint.shape[:2], dtype=np.int64)
    for level, protocol in enumerate(protocols):
        chances = np.full(levels, report.q)
        chances[level] = report.p
        chances = np.ones(1) if alone else chances / chances.sum()
        with_value, other = (rng.multinomial(n, chances) for n in (held[:, level], sizes[level] - held[:, level]))
        p, q = protocol.p, protocol.q
        joint[..., 0] += rng.binomial(with_value, p) + rng.binomial(other, q)
        if alone:
            joint[..., 1] += rng.binomial(with_value * (k - 1), q) + rng.binomial(other, p)
            joint[..., 1] += rng.binomial(other * (k - 2), q)
        reported += with_value + other
    return joint, reported, held.sum(axis=-1) / setting.users


def intervals(setting: Hidden, joint: Counts, reported: Counts) -> Interval:
    """As published, of the value alone."""
    if setting.method == "self-calibrated":
        ends = calibrated_interval(joint.sum(axis=-2), setting.users, setting.protocols, Z)
        return Interval(ends.low[:, 0], ends.high[:, 0])
    interval = sum_interval if setting.method == "sum" else fieller_interval
    ends = interval(joint[..., :1], reported, setting.protocols, setting.report, Z)
    return Interval(ends.low[:, 0], ends.high[:, 0])


def loose(setting: Hidden, joint: Counts, ends: Interval) -> str:
    """Why coverage may be far above 95 %; nothing where it should not."""
    if float(np.mean(ends.high - ends.low)) > _ALL:
        return "nearly every share is inside: there is no other end to miss"
    if float(joint[..., 0].sum(axis=-1).std()) < _STEP:
        return FEW_REPORTS
    return ANY_CHOICE if setting.method == "sum" else ""


def measure(setting: Hidden, repeats: int = REPEATS, only: str | None = None) -> list[Row]:
    stream = setting.name if only is None else f"{setting.name}, {only}, {repeats}"
    rng = np.random.default_rng(zlib.crc32(stream.encode()))
    rows, default = [], setting.default
    for kind, holders in classes(setting).items():
        if only in (None, kind):
            joint, reported, truth = draw_one(setting, holders, repeats, rng)
            ends = intervals(setting, joint, reported)
            why = loose(setting, joint, ends)
            rows.append(
                row(
                    f"hidden {setting.method}", setting.name, kind, truth, ends.low, ends.high,
                    default=default, tight=default and not why, why=why,
                )
            )  # fmt: skip
    return rows


def measure_fits(setting: Hidden) -> list[Row]:
    """`em` over whole histograms, a value of nobody and one of one person among them."""
    rng = np.random.default_rng(zlib.crc32(setting.name.encode()))
    counts = whole_counts(1 / np.arange(1, setting.values + 1), setting.users)
    counts[0] += int(counts[-2:].sum()) - 1
    counts[-2:] = (1, 0)
    sizes, protocols, report = setting.sizes, setting.protocols, setting.report
    joint, reported = draw_hidden(draw_levels(counts, sizes, FITS, rng), protocols, report, rng)
    # As published (`estimate_hidden`): AUEM's, extended to hold em's estimate.
    # A report of k-RR supports one value: its table is its support.
    fits = np.stack([correct_em(table_blocks(protocols, one), protocols, report).frequency for one in joint])
    ends = fieller_interval(joint, reported, protocols, report, Z)
    low, high = np.minimum(ends.low, fits), np.maximum(ends.high, fits)
    places = {"nobody": -1, "one person": -2, "middle": setting.values // 2, "top": 0}
    if setting.values < 7:
        del places["middle"]
    return [
        row("hidden em", setting.name, kind, counts[at] / setting.users, low[:, at], high[:, at], default=False)
        for kind, at in places.items()
    ]


def pieces() -> Iterator[tuple[str, Callable[[], list[Row]]]]:
    yield from ((setting.name, partial(measure, setting)) for setting in grid())
    yield from ((setting.name, partial(measure_fits, setting)) for setting in fits())


def rows() -> list[Row]:
    return [one for _, piece in pieces() for one in piece()]


def again(name: str, kind: str, repeats: int) -> Row | None:
    """A cell drawn anew with more repetitions; None where that would take too long."""
    setting = next((one for one in grid() if one.name == name), None)
    return None if setting is None else measure(setting, repeats, kind)[0]
