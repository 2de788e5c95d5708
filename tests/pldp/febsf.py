"""febsf's setting: its three attributes, its levels, and users who send a value report and a level report."""

from __future__ import annotations

import gzip
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats, PureProtocol, Reports
from pldp.channels.randomness import Keystream
from pldp.channels.unary import BRR

DATA = Path(__file__).parents[3] / "shared" / "data"
BUDGETS = tuple(Fraction(tenths, 10) for tenths in range(1, 11))
EPSILON_P = Fraction(3, 10)
UNIFORM = np.full(10, 0.1)
_FALLING = np.array([float(budget) ** -0.6 for budget in BUDGETS])
POWER_LAW = _FALLING / _FALLING.sum()


@cache
def column(attribute: str) -> NDArray[np.uint16]:
    """Every user's value as a number; skips where the data are not there."""
    files, separator, place = {
        "education": (("adult.data.gz",), ", ", 3),
        "country": (("adult.data.gz", "adult.test.gz"), ", ", 13),
        "job": (("bank-full.csv.gz",), ";", 1),
    }[attribute]
    cells = []
    for name in files:
        if not (DATA / name).exists():
            pytest.skip(f"the data set shared/data/{name} is not beside the repository")
        with gzip.open(DATA / name, "rt") as lines:
            rows = [line.split(separator) for line in lines]
        cells += [row[place] for row in rows if len(row) > place]
    if attribute == "job":
        cells = cells[1:]  # the header
    return np.unique(cells, return_inverse=True)[1].astype(np.uint16)


def shares_of(values: NDArray[np.uint16]) -> Floats:
    return np.bincount(values) / values.size


def protocols_for(size: int) -> tuple[PureProtocol, ...]:
    return tuple(BRR.for_budget(size, budget) for budget in BUDGETS)


def dealt(counts: Counts, shares: Floats, repeats: int, rng: np.random.Generator) -> Counts:
    """(repeat, level, value): everybody chooses a level at random."""
    drawn: Counts = rng.multinomial(np.broadcast_to(counts, (repeats, counts.size)), shares)
    return np.ascontiguousarray(drawn.swapaxes(-1, -2))


def report_all(
    values: NDArray[np.uint16],
    levels: NDArray[np.intp],
    protocols: tuple[PureProtocol, ...],
    level_report: PureProtocol,
    stream: Keystream,
) -> tuple[Reports, NDArray[np.uint8]]:
    """What the users send: value reports and level reports."""
    reports = np.zeros((values.size, protocols[0].report_bytes), dtype=np.uint8)
    for level, protocol in enumerate(protocols):
        chose = levels == level
        reports[chose] = protocol.perturb(values[chose], stream)
    return reports, level_report.perturb(levels.astype(np.uint16), stream)[:, 0]
