"""Tables that never cut a number: they use the width they get, break lines between words, and else list row by row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

_BORDERS = 3
"""What a column takes beside its content: a line and a space on both sides of it."""

_WIDEST = 100_000
_FOLDED = 12
"""Words without digits may be folded at this width, in columns of text."""

_EIGHTHS = "▏▎▍▌▋▊▉"


class Bar:
    """A share of the largest, as a bar: drawn in the room there is, so that lengths compare at any width."""

    def __init__(self, share: float, widest: int, style: str = "") -> None:
        self.share, self.widest, self.style = min(max(share, 0.0), 1.0), widest, style

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(8, self.widest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole, part = divmod(round(8 * self.share * min(self.widest, options.max_width)), 8)
        yield Text("█" * whole + (_EIGHTHS[part - 1] if part else ""), style=self.style)


class Table(RichTable):
    """Rich's table shortens cells that do not fit to `5.537…`; this one gives each column what its words need.

    Where even that is too wide, every row becomes a list of its cells.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        free = options.update(max_width=_WIDEST)
        room = options.max_width - _BORDERS * len(self.columns) - 1
        natural = [self._measured(console, free, column).maximum for column in self.columns]
        least = [self._measured(console, free, column).minimum for column in self.columns]
        if sum(natural) <= room:
            yield from super().__rich_console__(console, options)
        elif sum(least) <= room:
            yield from self._fitted(console, options, self._widths(natural, least, room))
        else:
            yield from self._records(console, options)

    def _measured(self, console: Console, options: ConsoleOptions, column: Column) -> Measurement:
        """From the width of its longest word, or of what must not be folded, to that of its longest cell."""
        least = most = 1
        for cell in (column.header, *column.cells):
            measurement = Measurement.get(console, options, cell)
            minimum = measurement.minimum
            if column.no_wrap:
                minimum = measurement.maximum
            elif column.justify != "right" and isinstance(cell, str | Text):
                words = re.split(r"\s+", str(cell))
                minimum = max(len(word) if re.search(r"\d", word) else min(len(word), _FOLDED) for word in words)
            least, most = max(least, minimum), max(most, measurement.maximum)
        return Measurement(least, most)

    def _widths(self, natural: list[int], least: list[int], room: int) -> list[int]:
        """What is left over goes to numbers first, then to text, to the narrowest first."""
        widths, spare = list(least), room - sum(least)
        for numbers in (True, False):
            places = [i for i, column in enumerate(self.columns) if (column.justify == "right") == numbers]
            while spare and (wanting := [i for i in places if widths[i] < natural[i]]):
                widths[min(wanting, key=lambda i: widths[i])] += 1
                spare -= 1
        return widths

    def _fitted(self, console: Console, options: ConsoleOptions, widths: list[int]) -> RenderResult:
        before = [(column.width, column.overflow, column.no_wrap) for column in self.columns]
        for column, width in zip(self.columns, widths, strict=True):
            column.width, column.overflow, column.no_wrap = width, "fold", False
        try:
            yield from list(super().__rich_console__(console, options))
        finally:
            for column, earlier in zip(self.columns, before, strict=True):
                column.width, column.overflow, column.no_wrap = earlier

    def _records(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line a cell, its column's name before it; rows are apart by an empty line."""
        if self.title:
            yield Text(str(self.title), style="italic")
        names = max(len(str(column.header)) for column in self.columns)
        for cells in zip(*(list(column.cells) for column in self.columns), strict=True):
            record = RichTable(box=None, show_header=False, padding=(0, 1, 0, 0))
            record.add_column(max_width=max(min(names, options.max_width // 2 - 2), 1), overflow="fold")
            record.add_column(overflow="fold")
            for column, cell in zip(self.columns, cells, strict=True):
                if not _is_empty(cell):
                    record.add_row(column.header, cell)
            yield record
            yield Text()


def titled(title: str, texts: Sequence[str], numbers: Sequence[str], *more: str) -> Table:
    """A table without rows: first columns of text, then of numbers, which stand on the right, then of text again."""
    table = Table(*texts, title=title, title_justify="left")
    for column in numbers:
        table.add_column(column, justify="right")
    for column in more:
        table.add_column(column)
    return table


def _is_empty(cell: RenderableType) -> bool:
    return isinstance(cell, str | Text) and not str(cell)
