"""From values to reports, and from reports to support. Pure: columns in, columns and counts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pldp.channels import protocol as protocols_of
from pldp.channels.protocol import Counts, PureProtocol, Values
from pldp.channels.randomness import Keystream
from pldp.channels.unary import Unary
from pldp.channels.words import from_words, stray_bits, to_words
from pldp.estimate.hidden import joint_support, level_tally
from pldp.estimate.likelihood import fits, tally_hidden
from pldp.estimate.likelihood import tally as tally_distinct
from pldp.questions.histograms.hidden import LIKELIHOODS
from pldp.questions.question import Columns, Sheet, Tallies

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

LEVEL = "level"
"""The column of the report about a hidden level."""


@dataclass(frozen=True)
class HistogramTally:
    """What one or more report files add: how many reports, their support, and for likelihoods how often each distinct
    report stands there.

    Where levels are hidden, arrays have a first dimension: the level that reports tell.
    """

    n: Counts
    support: Counts
    table: Counts | None = None

    @property
    def n_reports(self) -> int:
        return int(self.n.sum())

    def __add__(self, other: HistogramTally) -> HistogramTally:
        table = None if self.table is None or other.table is None else self.table + other.table
        return HistogramTally(self.n + other.n, self.support + other.support, table)


@dataclass(frozen=True)
class Support:
    """All support of one attribute: (level, value), and how many reports each level has.

    Where levels are hidden, these are the levels that reports tell, not the ones that were chosen.
    """

    attribute: str
    counts: Counts
    n: Counts
    tables: tuple[Counts, ...] | None = None
    """By level: how often each distinct report stands there; None where nobody needs it or it would be too large."""


def draw(plan: Histograms, sheet: Sheet, rows: Columns, stream: Keystream, adapted: bytes | None) -> Columns:
    """Reports of one attribute: of one level's people, or, where levels are hidden, of everybody at their own level."""
    if sheet.path not in plan.places:
        return _level_reports(plan, sheet, rows, stream)
    attribute, level = plan.places[sheet.path]
    protocols = plan.attributes[attribute].protocols
    values = rows[sheet.fields[0]].astype(np.uint16)
    if level is not None:
        return to_words(protocols[level].perturb(values, stream))
    return to_words(perturb_mixed(protocols, rows[sheet.fields[1]].astype(np.uint16), values, stream))


def _level_reports(plan: Histograms, sheet: Sheet, rows: Columns, stream: Keystream) -> Columns:
    """The report about the level: drawn once per person, and repeated beside every report that the level rules."""
    if plan.hidden is None:
        raise ValueError("only hidden levels are reported on")
    levels = rows[sheet.fields[0]].astype(np.uint16)
    return to_words(plan.hidden.protocol.perturb(levels, stream), LEVEL)


def perturb_mixed(
    protocols: Sequence[PureProtocol], levels: Values, values: Values, stream: Keystream
) -> protocols_of.Reports:
    """Every person's value at that person's level, in the people's order; reports of all levels look alike."""
    reports = np.empty((values.size, protocols[0].report_bytes), dtype=np.uint8)
    for code, protocol in enumerate(protocols):
        chose = np.flatnonzero(levels == code)
        reports[chose] = protocol.perturb(values[chose], stream)
    return reports


def tabulates(plan: Histograms, attribute: int) -> bool:
    """Whether a likelihood is asked for and has few enough distinct reports to count them."""
    asked = plan.methods_of(plan.attributes[attribute])
    return any(method in LIKELIHOODS for method in asked) and fits(plan.attributes[attribute].protocols)


def tally(plan: Histograms, sheet: Sheet, reports: Columns) -> HistogramTally:
    """How many reports a file has and what they support; by the reported level where levels are hidden."""
    attribute, level = plan.places[sheet.path]
    protocols, tabulated = plan.attributes[attribute].protocols, tabulates(plan, attribute)
    protocol = protocols[level or 0]
    rows = from_words(reports, protocol.report_bytes)
    if level is not None:
        table = tally_distinct(protocol, rows) if tabulated else None
        return HistogramTally(
            np.array([len(rows)]), protocol.support(rows)[None], None if table is None else table[None]
        )
    reported = reports[LEVEL].astype(np.intp)
    table = tally_hidden(protocol, rows, reported, len(protocols)) if tabulated else None
    return HistogramTally(
        level_tally(reported, len(protocols)), joint_support(protocol, rows, reported, len(protocols)), table
    )


def invalid(plan: Histograms, sheet: Sheet, reports: Columns) -> NDArray[np.intp]:
    """Rows that no value, or of the report beside it no level, can have led to."""
    attribute, level = plan.places[sheet.path]
    protocol = plan.attributes[attribute].protocols[level or 0]
    width = protocol.report_bytes
    wrong = [stray_bits(reports, width), protocol.invalid(from_words(reports, width))]
    if plan.hidden is not None:
        wrong.append(plan.hidden.protocol.invalid(from_words(reports, 1, LEVEL)))
    return np.unique(np.concatenate(wrong))


def weights(plan: Histograms, sheet: Sheet, reports: Columns) -> NDArray[np.int64]:
    """How many reports of a public level support 0 … k values, where that differs from report to report."""
    attribute, level = plan.places[sheet.path]
    if level is None or not isinstance(protocol := plan.attributes[attribute].protocols[level], Unary):
        return np.empty(0, dtype=np.int64)
    bits = np.bitwise_count(from_words(reports, protocol.report_bytes)).sum(axis=1, dtype=np.int64)
    return np.bincount(bits, minlength=protocol.domain_size + 1)


def supports(plan: Histograms, tallies: Tallies) -> tuple[Support, ...]:
    """By attribute, its levels side by side."""
    by_attribute: list[list[HistogramTally]] = [[] for _ in plan.attributes]
    for path, (attribute, _) in plan.places.items():
        by_attribute[attribute].append(tallies[path])
    return tuple(
        Support(
            attribute=attribute.name,
            counts=np.concatenate([one.support for one in levels]),
            n=np.concatenate([one.n for one in levels]),
            tables=None
            if any(one.table is None for one in levels)
            else tuple(table for one in levels if one.table is not None for table in one.table),
        )
        for attribute, levels in zip(plan.attributes, by_attribute, strict=True)
    )
