"""The values that a page is built of. Kinds of questions make them; nothing here knows HTML, frames or files. Figures
are text already: a page says a number in one way, and the chart, its alternative and the table agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Run:
    """A few words of a sentence that look otherwise than the rest; a link leads to a section of the same page."""

    look: Literal["strong", "code", "soft", "power", "link"]
    text: str
    target: str = ""


Text = tuple[str | Run, ...]


def strong(text: str) -> Run:
    """Words that stand out."""
    return Run("strong", text)


def code(text: str) -> Run:
    """Words of a paragraph that are a name to be typed as it stands."""
    return Run("code", text)


def soft(text: str) -> Run:
    """Words of a paragraph that step back."""
    return Run("soft", text)


def power(text: str) -> Run:
    """An exponent."""
    return Run("power", text)


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: Text
    look: Literal["plain", "lead", "soft", "note"] = "plain"


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences under each other."""

    sentences: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Column:
    title: Text
    words: bool = False
    """Whether it holds words, which begin at the left; figures end at the right."""


@dataclass(frozen=True, slots=True)
class Strip:
    """A small chart inside a table: an estimate with its interval, between bounds; shares of bins behind it."""

    alternative: str
    bounds: tuple[float, float]
    at: float
    low: float
    high: float
    reliable: bool = True
    bins: tuple[tuple[float, float, float], ...] = ()
    """From, to, share."""


@dataclass(frozen=True, slots=True)
class Shaded:
    """A cell of a grid: the figure, what stands small below it, and how dark it is, 0 to 1."""

    figure: str
    below: str
    depth: float
    reliable: bool = True


Cell = Text | Strip | Shaded


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, of which the first names the row. `title` is what a screen reader says it is."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    look: Literal["", "whole", "grid"] = ""
    """A whole table is shown at its full height, and so is a grid, which is a picture too."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What unfolds when its summary is asked for."""

    summary: Text
    blocks: tuple[Block, ...]
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One estimate with its interval; a budget has none (`low` and `high` are its value)."""

    label: str
    value: float
    low: float
    high: float
    figure: str
    reliable: bool = True


Unit = Literal["share", "number"]


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars, one below the other in the order given, each with its figure."""

    alternative: str
    bars: tuple[Bar, ...]
    unit: Unit = "share"
    axis: str = ""
    beside: int = 0
    """How many series the chart beside it has: rows of both stand side by side then."""
    legend: bool = False
    """Say what reliable bars look like even if all are, for some beside it are not."""


@dataclass(frozen=True, slots=True)
class Series:
    """A level, or a value over time. `place` picks colour and shape: the same in every chart of a page."""

    name: str
    place: int


@dataclass(frozen=True, slots=True)
class Point:
    """An estimate of a series, in the row (or at the release) of that number."""

    row: int
    series: int
    value: float
    low: float
    high: float
    figure: str


@dataclass(frozen=True, slots=True)
class Dots:
    """Every row has a point of each series, with its interval."""

    alternative: str
    rows: tuple[str, ...]
    series: tuple[Series, ...]
    points: tuple[Point, ...]
    axis: str = ""


@dataclass(frozen=True, slots=True)
class GroupedBars(Dots):
    """Every row has a bar of each series, with its figure."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Series over releases, with intervals."""

    alternative: str
    releases: tuple[str, ...]
    series: tuple[Series, ...]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """One amount per release, from zero."""

    alternative: str
    releases: tuple[str, ...]
    amounts: tuple[float, ...]
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """A number on its bounds: the shares of its bins, and mean and quantiles with their intervals."""

    alternative: str
    bounds: tuple[float, float]
    bars: tuple[Bar, ...]
    bins: tuple[tuple[float, float, float], ...] = ()


Chart = Bars | Dots | GroupedBars | Lines | Steps | Spread


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, or a grid, with its caption; the numbers stand below it."""

    caption: Text
    chart: Chart | Table | None
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Figures side by side where the screen is wide enough."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Text for machines, as it is."""

    title: str
    text: str


Block = Paragraph | Listing | Table | Folded | Figure | Pair | Source


@dataclass(frozen=True, slots=True)
class Section:
    """`key` is what links lead to; it is made of letters, digits and hyphens."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    sections: tuple[Section, ...] = ()


def figure_table(title: str, columns: tuple[Column, ...], rows: tuple[tuple[Cell, ...], ...], **more: str) -> Folded:
    """The numbers of a figure, folded."""
    note = (Paragraph((more["note"],)),) if more.get("note") else ()
    table = Table(title, columns, rows, caption=more.get("caption", ""))
    return Folded((more.get("summary", title),), (table, *note))
