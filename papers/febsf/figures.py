"""febsf: frequencies under hidden levels, Figures 2 to 8, as its text tells them and as its published code makes them.

The text names three attributes, the most frequent k values of which are kept. What was run kept other values of one of
them and read other files for two; `febsf_code` says what else the published code does differently.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Counts
from pldp.papers.febsf.code import (
    CODE,
    FULL_JOB,
    KRR_LEVELS,
    SHAPES,
    TWICE,
    as_published,
    ppda_by_report,
    with_two_budgets,
)
from pldp.papers.febsf.draw import (
    EPSILON_P,
    TWO_BUDGETS,
    Errors,
    by_moments,
    by_reports,
    points,
    shares_of,
    two_by_text,
)
from pldp.papers.febsf.notes import NOTES as NOTES
from pldp.papers.febsf.notes import PICTURES as PICTURES
from pldp.papers.febsf.reasons import REASONS as REASONS
from pldp.papers.model import Data, Point, Unit

TEXT = {"Education": "adult-education", "Job": "bank-job", "Country": "adult-country"}
PUBLISHED: dict[str, str | None] = {"Education": "adult-education-named", "Job": "bank-job-published", "Country": None}
COUNTIES = np.array([2346, 1326, 940, 912, 883, 855, 827, 798, 770], dtype=np.int64)
"""Census tracts of the nine names of counties that have most, for a file that was not to be had. The first two follow
from PPDA's printed errors at k = 2, which are those of an even split: shares of 23/36 and 13/36, and Los Angeles County
has 2,346 tracts. The others are taken to fall evenly; the third and the last are fitted to EMOA's curve over k."""
SIZES = tuple(range(2, 10))
LARGEST = SIZES[-1]
LAWS = ("uniform", "power law")
TENTHS = tuple(Fraction(tenth, 10) for tenth in range(1, 11))
_DOMAIN, _LAWS, _TWO = ("Figure 3", "Figure 4"), ("Figure 7", "Figure 8"), ("Figure 5", "Figure 6")
_EPSILON_P_TWO = Fraction(1, 10)


def units(quick: bool) -> list[Unit]:
    """The EMs first: they take longest."""
    drawn, fitted = (60, 3) if quick else (400, 40)
    made: list[Unit] = []

    def add(experiment: str, name: str, dataset: str | None, repeats: int, **arguments: float | int | str) -> None:
        made.append(
            Unit(
                paper="febsf",
                experiment=experiment,
                arguments={"name": name, **arguments},
                dataset=dataset,
                repeats=repeats,
                seed=len(made),
            )
        )

    for k in reversed(SIZES):
        for name, dataset in TEXT.items():
            add("em", name, dataset, fitted, k=k)
    for name, dataset in TEXT.items():
        add("em by law", name, dataset, fitted, law="power law")
        for law in LAWS:
            add("two", name, dataset, drawn, law=law, fits=4 * fitted)
    for name, dataset in TEXT.items():
        for k in SIZES:
            add("domain", name, dataset, drawn, k=k)
        for epsilon_p in TENTHS:
            add("epsilon_p", name, dataset, drawn, epsilon_p=str(epsilon_p))
        for law in LAWS:
            add("law", name, dataset, drawn, law=law)
        add("table 1", name, dataset, 1)
    for name, published in PUBLISHED.items():
        add("code", name, published, 10 * drawn)
        for k in SIZES:
            add("reports", name, published, drawn // 2, k=k)
        for times in (1, 2):
            add("reports by law", name, published, drawn // 2, times=times)
    add("code, two", f"Job{FULL_JOB}", "bank-job", 10 * drawn)
    return made


def run(unit: Unit, data: Data) -> list[Point]:
    arguments, rng = unit.arguments, np.random.default_rng([unit.seed, 11])
    name, repeats = str(arguments["name"]), unit.repeats
    counts = counts_of(data)
    k, law = int(arguments.get("k", LARGEST)), str(arguments.get("law", "uniform"))
    shares, top = shares_of(law), counts[:k]
    match unit.experiment:
        case "em":
            errors = by_reports(top, shares, repeats, rng)
            whole = points(errors, _DOMAIN, name, str(k))
            return whole + (points(errors, _LAWS, name, law) if k == LARGEST else [])
        case "em by law":
            return points(by_reports(top, shares, repeats, rng), _LAWS, name, law)
        case "two":
            errors = two_by_text(counts[:2], law, _EPSILON_P_TWO, repeats, int(arguments["fits"]), rng)
            gain = [_gain(errors, name)] if (name, law) == ("Job", "uniform") else []
            return points(errors, _TWO, name, law) + gain
        case "domain":
            return points(by_moments(top, shares, EPSILON_P, repeats, rng), _DOMAIN, name, str(k))
        case "epsilon_p":
            return _figure_2(top, Fraction(str(arguments["epsilon_p"])), name, repeats, rng)
        case "law":
            return points(by_moments(top, shares, EPSILON_P, repeats, rng), _LAWS, name, law)
        case "table 1":
            sizes = {"values": counts.size, "users": int(counts.sum())}
            return [Point(place="Table 1", series=each, x=name, value=float(n)) for each, n in sizes.items()]
        case "code":
            return _by_code(name, counts, repeats, rng)
        case "reports":
            errors = {"PPDA": ppda_by_report(top, shares, repeats, rng)}
            whole = points(errors, _DOMAIN, name + CODE, str(k))
            return whole + (points(errors, _LAWS, name + CODE, law) if k == LARGEST else [])
        case "reports by law":
            law, times = "power law", int(arguments["times"])
            errors = {f"PPDA{TWICE * (times - 1)}": ppda_by_report(top, shares_of(law, times=times), repeats, rng)}
            return points(errors, _LAWS, name + CODE, law)
        case "code, two":
            return _two_by_code(name, counts, repeats, rng)
    raise ValueError(f"febsf has no experiment {unit.experiment!r}")


def counts_of(data: Data) -> Counts:
    """By value, the most frequent first; the counties if there is no file."""
    return np.asarray(data["counts"], dtype=np.int64) if data else COUNTIES


def _gain(errors: Mapping[str, Errors], name: str) -> Point:
    """How much smaller EMOA's squared error is than PBP's, on one file."""
    ours, theirs = errors["EMOA"][0], errors["PBP"][0]
    ratio = ours.mean() / theirs.mean()
    parts = [values.std(ddof=1) / math.sqrt(values.size) / values.mean() for values in (ours, theirs)]
    return Point(
        place="Section 7.3.3",
        series="EMOA against PBP",
        x=f"{name}, uniform",
        value=float(1 - ratio),
        standard_error=float(ratio * math.hypot(*parts)),
        repeats=theirs.size,
    )


def _figure_2(counts: Counts, epsilon_p: Fraction, name: str, repeats: int, rng: np.random.Generator) -> list[Point]:
    errors = by_moments(counts, shares_of("uniform"), epsilon_p, repeats, rng)
    kept = {series: errors[series] for series in ("AUEM", "AUEM, shares known", "self-calibrated")}
    return points(kept, ("Figure 2", "Figure 2, MAE"), name, f"{float(epsilon_p):g}")


def _by_code(name: str, counts: Counts, repeats: int, rng: np.random.Generator) -> list[Point]:
    """Everything that the published code computes, on the file it reads."""
    made: list[Point] = []
    even = shares_of("uniform")
    for k in SIZES:
        made += points(as_published(counts[:k], even, EPSILON_P, repeats, rng), _DOMAIN, name + CODE, str(k))
    for epsilon_p in TENTHS:
        errors = as_published(counts[:LARGEST], even, epsilon_p, repeats, rng)
        only = {series: errors[series] for series in ("AUEM", KRR_LEVELS)}
        made += points(only, ("Figure 2", "Figure 2, MAE"), name + CODE, f"{float(epsilon_p):g}")
    for law in LAWS:
        errors = as_published(counts[:LARGEST], shares_of(law), EPSILON_P, repeats, rng)
        made += _shapes(errors, name + CODE, law)
        if law == "power law":
            twice = as_published(counts[:LARGEST], shares_of(law, times=2), EPSILON_P, repeats, rng)
            errors[f"RCF{TWICE}"] = twice["RCF"]
        made += points(errors, _LAWS, name + CODE, law)
    return made + _two_by_code(name, counts, repeats, rng)


def _shapes(errors: Mapping[str, Errors], panel: str, law: str) -> list[Point]:
    """Mean absolute error over the root of the mean squared one: two numbers of one run must have it."""
    made = []
    for series, (squared, absolute) in errors.items():
        ratio = absolute.mean() / math.sqrt(squared.mean())
        apart = absolute / absolute.mean() - squared / squared.mean() / 2  # the logarithm's, to first order
        made.append(
            Point(
                place=SHAPES,
                panel=panel,
                series=series,
                x=law,
                value=float(ratio),
                standard_error=float(ratio * apart.std(ddof=1) / math.sqrt(apart.size)),
                repeats=apart.size,
            )
        )
    return made


def _two_by_code(name: str, counts: Counts, repeats: int, rng: np.random.Generator) -> list[Point]:
    made: list[Point] = []
    for law in LAWS:
        shares = shares_of(law, TWO_BUDGETS)
        made += points(with_two_budgets(counts[:2], shares, _EPSILON_P_TWO, repeats, rng), _TWO, name + CODE, law)
    return made
