"""A CSV file's bytes, looked at before the database reads it: how many records it must find, and what it would lose.

The database leaves out what it cannot read: behind a quote that nobody closed everybody, and a row whose cell is not
UTF-8 or too long. Whether a person counts must not depend on the value, so such a file is refused whole, by its line.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pldp.spec.source import Csv

LONGEST = 2_000_000
"""Bytes of a record. The database drops a record that fills its buffer (tasks/textfile.py), and may not say so."""
MOST_LINES = 1_000
"""Lines of one record: two stray quotes would otherwise make one cell of everybody between them."""

NOT_TEXT = "the cell holds a byte that is not UTF-8"
LONG = f"the row has more than {LONGEST:,} bytes"
UNCLOSED = (
    f"a quote opens here that is not closed, by the end of the file or within {MOST_LINES:,} lines, so the rows after "
    "it would be lost"
)
STRAY = "a quote stands here that neither opens nor closes a cell, so rows would be lost"

_CHUNK = 1 << 22
_LF, _CR, _SPACE = b"\n\r "
_BOM = b"\xef\xbb\xbf"
_SPACES = 64
"""Spaces beside a quote that are looked past."""

Positions = NDArray[np.intp]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class CsvFault(Exception):
    """What is wrong with a file, and where: a physical line from 1, and a cell of its row from 0 if that is known."""

    line: int
    rule: str
    cell: int | None = None

    def remedy(self, field: str) -> str:
        """`field` is the section of the spec that names the file."""
        if self.rule == NOT_TEXT:
            return "Write the file as UTF-8."
        if self.rule in (UNCLOSED, STRAY):
            return (
                f"Close the quote, or double it inside a cell that is in quotes; where quotes are plain text, say "
                f'`quote: ""` in {field}.csv.'
            )
        return f"Shorten it, or close the quote that it starts with; check {field}.csv."


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
    with _open_bytes(path) as handle:
        for chunk in _chunks(handle, scan.too_long):
            scan.add(chunk)
    return scan.end()


def _open_bytes(path: Path) -> BinaryIO | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _chunks(handle: BinaryIO | gzip.GzipFile, too_long: Callable[[], CsvFault]) -> Iterator[bytes]:
    """Whole lines with their ends, so that neither a character nor what stands beside a quote is cut."""
    rest = handle.read(len(_BOM)).removeprefix(_BOM)
    while piece := handle.read(_CHUNK):
        rest += piece
        # A carriage return at the very end may belong to a line feed that is not read yet.
        cut = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, -1)) + 1
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        if len(rest) > LONGEST:
            raise too_long()
    if rest:
        yield rest if rest.endswith((b"\n", b"\r")) else rest + b"\n"


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
        raise CsvFault(self.lines + _line_ends(before) + 1, NOT_TEXT, cell)

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
                raise CsvFault(self.lines + _line_ends(chunk[:at]) + 1, LONG)
            at = end + 1

    def _add_quoted(self, text: NDArray[np.uint8]) -> None:
        ends = np.flatnonzero((text == _LF) | (text == _CR))
        quotes = np.flatnonzero(text == self.quote[0]) if self.quote else np.empty(0, dtype=np.intp)
        quotes, states = self._states(text, quotes, ends)
        inside = np.concatenate([[self.opened is not None], states])[np.searchsorted(quotes, ends)]
        outer = ends[~inside]
        first = [] if self.opened is not None else [0]
        starts = np.concatenate([first, outer + 1]).astype(np.intp)
        starts = starts[starts < text.size]
        is_blank = (text[starts] == _LF) | (text[starts] == _CR)
        after_return = (text[starts] == _LF) & (starts > 0) & (text[starts - 1] == _CR)
        self.blanks += int((is_blank & ~after_return).sum())
        starts = starts[~is_blank]
        self._require_whole(text, starts, ends, inside)
        if self.comment is not None and starts.size:
            starts = starts[text[_past_spaces(text, starts, 1)] != self.comment]
        self.records += int(starts.size)
        self.inside += int((inside & ~_halves(text, ends)).sum())
        if states.size:
            last = quotes[-1]
            self.opened = self.lines + _line_ends(text[:last].tobytes()) + 1 if states[-1] else None
        self.lines += int((~_halves(text, ends)).sum())

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
        at = _past_spaces(text, quotes - 1, -1) if self.delimiter != b" " else quotes - 1
        found = (at < 0) | (text[at] == _LF) | (text[at] == _CR)
        return found | self._is_delimiter(text, at - len(self.delimiter) + 1)

    def _is_delimiter(self, text: NDArray[np.uint8], at: Positions) -> Truths:
        found = (at >= 0) & (at + len(self.delimiter) <= text.size)
        for i, byte in enumerate(self.delimiter):
            found &= text[np.clip(at + i, 0, text.size - 1)] == byte
        return found

    def _quoted_remark(
        self, text: NDArray[np.uint8], quotes: Positions, before: Truths, ends: Positions
    ) -> tuple[int, int] | None:
        """The quotes within the first comment that has some; few comments do, so they are looked for one by one."""
        if self.comment is None or not quotes.size:
            return None
        line = np.searchsorted(ends, quotes)
        starts = np.where(line > 0, ends[np.maximum(line - 1, 0)] + 1, 0)
        remarks = np.flatnonzero((text[_past_spaces(text, starts, 1)] == self.comment) & ~before)
        if not remarks.size:
            return None
        first = int(remarks[0])
        return first, int(np.searchsorted(line, line[first], side="right"))

    def _require_closed(self, text: NDArray[np.uint8], quotes: Positions, before: Truths, after: Truths) -> None:
        if not quotes.size:
            return
        next_to = np.concatenate([np.diff(quotes) == 1, [False]])
        at = _past_spaces(text, quotes + 1, 1) if self.delimiter != b" " else quotes + 1
        ended = (text[at] == _LF) | (text[at] == _CR) | self._is_delimiter(text, at)
        if self.comment is not None:
            ended |= text[at] == self.comment
        wrong = before & ~after & ~next_to & ~ended
        # A doubled quote in a cell that is not in quotes would be taken for the start of one.
        wrong |= np.concatenate([[False], ~before[:-1] & ~after[:-1]]) & np.concatenate([[False], next_to[:-1]])
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            opened = np.flatnonzero(after[:bad] & ~before[:bad])
            place = quotes[opened[-1]] if opened.size else quotes[bad]
            line = self.lines + _line_ends(text[:place].tobytes()) + 1
            line = self.opened if self.opened is not None and not opened.size else line
            raise CsvFault(line, STRAY)

    def _require_whole(self, text: NDArray[np.uint8], starts: Positions, ends: Positions, inside: Truths) -> None:
        """That no record has more bytes, or lines, than one can have; one that began before goes on here."""
        whole = ends[~_halves(text, ends)]
        within = np.concatenate([[0], np.cumsum(inside[~_halves(text, ends)])])
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


def _past_spaces(text: NDArray[np.uint8], at: Positions, step: int) -> Positions:
    """The first byte from there on that is no space."""
    at = at.copy()
    for _ in range(_SPACES):
        inside = (at >= 0) & (at < text.size)
        spaces = inside & (text[np.clip(at, 0, text.size - 1)] == _SPACE)
        if not spaces.any():
            break
        at[spaces] += step
    return at


def _halves(text: NDArray[np.uint8], ends: Positions) -> Truths:
    """Carriage returns that a line feed follows: half of one line end."""
    follows = np.minimum(ends + 1, text.size - 1)
    return (text[ends] == _CR) & (text[follows] == _LF)


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
