"""The one way to a terminal or a log: what a spec, a file name or a table holds is shown, and never obeyed.

A terminal obeys control characters: they move the cursor, hide what was written, set its title, answer as if typed.
Direction marks reorder what a person reads. Rich obeys its markup. So characters that steer are written out, such as
`\\x1b`, and markup is off: whatever is ours to style is styled by a `Text`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

# C0 but the end of a line, DEL, C1, line and paragraph separators, overrides and isolates of direction, and halves of
# characters, which a file name that is not UTF-8 has in Python and which no stream can write.
_STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


_PIPE = 10_000
"""Columns of what is no terminal: there is no width that anything would have to fit into."""


def visible(text: str) -> str:
    """The text with every character that steers a terminal written out, as Python and JSON would."""
    return _STEERING.sub(lambda steering: _written(steering[0]), text)


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class SafeConsole(Console):
    """A console on which text is text. Cleaned before it is measured, so that tables stay straight."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        piped = not stream.isatty() and "COLUMNS" not in os.environ
        super().__init__(stderr=stderr, markup=False, emoji=False, width=_PIPE if piped else None)

    def on_broken_pipe(self) -> None:
        """Whoever reads (`head`) has seen enough. The command goes on, and ends with the exit code of what it did."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Whatever came as a `Text` passes here; Rich's own sequences are control segments and styles."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def styled(text: str, style: str) -> Text:
    """A piece of ours in a style."""
    return Text(visible(text), style=style)
