"""A CSV file's bytes, looked at before the database reads it: how many records it must find, and what it would lose.

The database leaves out what it cannot read: behind a quote that nobody closed everybody, and a row whose cell is not
UTF-8 or too long. Whether a person counts must not depend on the value, so such a file is refused whole, by its line.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pldp.spec.source import Csv
from pldp.tasks.sources.csvbytes import (
    CR,
    LF,
    Positions,
    Truths,
    chunks,
    halves,
    line_ends,
    open_bytes,
    past_spaces,
)
from pldp.tasks.sources.csvfaults import LONG, LONGEST, MOST_LINES, NOT_TEXT, STRAY, UNCLOSED, CsvFault


@dataclass(frozen=True)
class CsvLines:
    """What the database must account for."""

    records: int
    """Without the header, comments and blank lines."""
    blanks: int
    """Blank lines, which are records where a file has a single column."""
    inside: int
    """Line ends inside quoted cells."""


def read_lines(path: Path, dialect: Csv) -> CsvLines:
    """Go through a CSV file once, a few MB at a time; raises CsvFault where it cannot be read to its last record."""
    scan = _Scan(dialect)
    with open_bytes(path) as handle:
        for chunk in chunks(handle, scan.too_long):
            scan.add(chunk)
    return scan.end()


class _Scan:
    """Where a pass through the file stands. Quotes follow the database: one opens at the start of a cell only, and
    elsewhere outside quotes it is text; inside, a doubled one is text."""

    def __init__(self, dialect: Csv) -> None:
        self.dialect = dialect
        self.delimiter = dialect.delimiter.encode()
        quote, comment = dialect.quote.encode(), dialect.comment.encode()
        self.quote = quote if len(quote) == 1 else b""
        self.comment = comment[0] if len(comment) == 1 else None
        self.records = self.blanks = self.inside = 0
        self.lines = 0
        """Line ends before this chunk."""
        self.opened: int | None = None
        """The line of the quote that is open at the end of the chunk before."""
        self.bytes = 0
        """Bytes before this chunk."""
        self.begun: tuple[int, ...] = (0, 0, 1)
        """Where the last record began: bytes and lines inside quotes before it, and its line."""

    def too_long(self) -> CsvFault:
        return CsvFault(self.begun[2] if self.opened else self.lines + 1, LONG)

    def add(self, chunk: bytes) -> None:
        self._require_text(chunk)
        simple = self.opened is None and self.comment is None and b"\r" not in chunk and b"\n\n" not in chunk
        if simple and not chunk.startswith(b"\n") and not (self.quote and self.quote in chunk):
            self._require_short(chunk)
            ends = chunk.count(b"\n")
            self.records += ends
            self.lines += ends
        else:
            self._add_quoted(np.frombuffer(chunk, dtype=np.uint8))
        self.bytes += len(chunk)

    def end(self) -> CsvLines:
        if self.opened is not None:
            raise CsvFault(self.opened, UNCLOSED)
        return CsvLines(self.records - self.dialect.header, self.blanks, self.inside)

    def _require_text(self, chunk: bytes) -> None:
        try:
            chunk.decode("utf-8")
            return
        except UnicodeDecodeError as error:
            before = chunk[: error.start]
        at = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
        cell = None if self.opened is not None else self._cell(before[at:])
        raise CsvFault(self.lines + line_ends(before) + 1, NOT_TEXT, cell)

    def _cell(self, row: bytes) -> int:
        """In which cell of its row the next byte stands, if the row begins on this line."""
        delimiter = self.dialect.delimiter if len(self.delimiter) == 1 else "\x1f"
        text = row.decode("latin-1").replace(self.delimiter.decode("latin-1"), delimiter)
        cells = list(csv.reader(io.StringIO(text), delimiter=delimiter, quotechar=self.dialect.quote or "\0"))
        return max(len(cells[0]) - 1, 0) if cells else 0

    def _require_short(self, chunk: bytes) -> None:
        """By leaps to the last line end within reach, so that few lines are looked at."""
        at = 0
        while len(chunk) - at > LONGEST:
            end = chunk.rfind(b"\n", at, at + LONGEST + 1)
            if end < 0:
                raise CsvFault(self.lines + line_ends(chunk[:at]) + 1, LONG)
            at = end + 1

    def _add_quoted(self, text: NDArray[np.uint8]) -> None:
        ends = np.flatnonzero((text == LF) | (text == CR))
        quotes = np.flatnonzero(text == self.quote[0]) if self.quote else np.empty(0, dtype=np.intp)
        quotes, states = self._states(text, quotes, ends)
        inside = np.concatenate([[self.opened is not None], states])[np.searchsorted(quotes, ends)]
        outer = ends[~inside]
        first = [] if self.opened is not None else [0]
        starts = np.concatenate([first, outer + 1]).astype(np.intp)
        starts = starts[starts < text.size]
        is_blank = (text[starts] == LF) | (text[starts] == CR)
        after_return = (text[starts] == LF) & (starts > 0) & (text[starts - 1] == CR)
        self.blanks += int((is_blank & ~after_return).sum())
        starts = starts[~is_blank]
        self._require_whole(text, starts, ends, inside)
        if self.comment is not None and starts.size:
            starts = starts[text[past_spaces(text, starts, 1)] != self.comment]
        self.records += int(starts.size)
        self.inside += int((inside & ~halves(text, ends)).sum())
        if states.size:
            last = quotes[-1]
            self.opened = self.lines + line_ends(text[:last].tobytes()) + 1 if states[-1] else None
        self.lines += int((~halves(text, ends)).sum())

    def _states(self, text: NDArray[np.uint8], quotes: Positions, ends: Positions) -> tuple[Positions, Truths]:
        """The quotes that count, and whether each leaves a cell open behind it."""
        while True:
            opens = self._opens(text, quotes)
            doubled = np.concatenate([[False], np.diff(quotes) == 1]) & ~opens
            turns = opens | doubled
            # Any other quote is text, or closes: either way nothing is open behind it.
            count = np.cumsum(turns)
            base = np.maximum.accumulate(np.where(turns, -1, np.arange(quotes.size))) if quotes.size else quotes
            since = np.where(base < 0, count + (self.opened is not None), count - count[base])
            after = (since % 2).astype(np.bool_)
            before = np.concatenate([[self.opened is not None], after[:-1]]) if quotes.size else after
            remark = self._quoted_remark(text, quotes, before, ends)
            if remark is None:
                break
            quotes = np.delete(quotes, np.s_[remark[0] : remark[1]])
        self._require_closed(text, quotes, before, after)
        return quotes, after

    def _opens(self, text: NDArray[np.uint8], quotes: Positions) -> Truths:
        """Whether a quote stands at the start of a cell, but for spaces."""
        at = past_spaces(text, quotes - 1, -1) if self.delimiter != b" " else quotes - 1
        starts = (at < 0) | (text[at] == LF) | (text[at] == CR)
        return starts | self._is_delimiter(text, at - len(self.delimiter) + 1)

    def _is_delimiter(self, text: NDArray[np.uint8], at: Positions) -> Truths:
        matches = (at >= 0) & (at + len(self.delimiter) <= text.size)
        for i, byte in enumerate(self.delimiter):
            matches &= text[np.clip(at + i, 0, text.size - 1)] == byte
        return matches

    def _quoted_remark(
        self, text: NDArray[np.uint8], quotes: Positions, before: Truths, ends: Positions
    ) -> tuple[int, int] | None:
        """The quotes within the first comment that has some; few comments do, so they are looked for one by one."""
        if self.comment is None or not quotes.size:
            return None
        line = np.searchsorted(ends, quotes)
        starts = np.where(line > 0, ends[np.maximum(line - 1, 0)] + 1, 0)
        remarks = np.flatnonzero((text[past_spaces(text, starts, 1)] == self.comment) & ~before)
        if not remarks.size:
            return None
        first = int(remarks[0])
        return first, int(np.searchsorted(line, line[first], side="right"))

    def _require_closed(self, text: NDArray[np.uint8], quotes: Positions, before: Truths, after: Truths) -> None:
        if not quotes.size:
            return
        next_to = np.concatenate([np.diff(quotes) == 1, [False]])
        at = past_spaces(text, quotes + 1, 1) if self.delimiter != b" " else quotes + 1
        ended = (text[at] == LF) | (text[at] == CR) | self._is_delimiter(text, at)
        if self.comment is not None:
            ended |= text[at] == self.comment
        wrong = before & ~after & ~next_to & ~ended
        # A doubled quote in a cell that is not in quotes would be taken for the start of one.
        wrong |= np.concatenate([[False], ~before[:-1] & ~after[:-1]]) & np.concatenate([[False], next_to[:-1]])
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            again = np.concatenate([[False], next_to[:-1] & before[:-1]])  # the second of a doubled quote
            opened = np.flatnonzero(after[:bad] & ~before[:bad] & ~again[:bad])
            place = quotes[opened[-1]] if opened.size else quotes[bad]
            line = self.lines + line_ends(text[:place].tobytes()) + 1
            line = self.opened if self.opened is not None and not opened.size else line
            raise CsvFault(line, STRAY)

    def _require_whole(self, text: NDArray[np.uint8], starts: Positions, ends: Positions, inside: Truths) -> None:
        """That no record has more bytes, or lines, than one can have; one that began before goes on here."""
        whole = ends[~halves(text, ends)]
        within = np.concatenate([[0], np.cumsum(inside[~halves(text, ends)])])
        at = np.concatenate([starts, [text.size]])
        ended = np.searchsorted(whole, at)
        facts = np.stack([self.bytes + at, self.inside + within[ended], self.lines + 1 + ended])
        if self.opened is not None:
            facts = np.hstack([np.array(self.begun)[:, None], facts])
        for row, most, rule in ((1, MOST_LINES, UNCLOSED), (0, LONGEST, LONG)):
            wrong = np.flatnonzero(np.diff(facts[row]) > most)
            if wrong.size:
                raise CsvFault(int(facts[2, wrong[0]]), rule)
        if facts.shape[1] > 1:
            self.begun = tuple(int(fact) for fact in facts[:, -2])
