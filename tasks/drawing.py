"""What charts are drawn with: a sheet of SVG, the widths of words, scales with round ticks, and marks told apart twice.

Text takes the page's colour, and marks have a contrast of 3 or more on light and dark alike. Whatever a colour tells, a
shape, a dash or a place tells too. A sheet is as wide as a phone: it grows on a desk and stays legible.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

PALETTE = ("#0072B2", "#D55E00", "#008F68", "#B8609A", "#96701F", "#767B84")
"""After Okabe and Ito, the pale ones darkened."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
"""Seven against six colours: no pair comes twice before the forty-third."""

WIDTH = 340.0
SIZE = 11
INK = "currentColor"
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"

_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
"""Of printable ASCII in Helvetica, in thousandths of the type size; Arial and Liberation Sans have the same."""

WIDER = 1.2
"""Times as wide a letter may be in another font, as DejaVu Sans, which stands in for these where there is none."""


def width(text: str, size: float = SIZE) -> float:
    """How wide a text is, about: letters beyond ASCII are taken as wide ones."""
    return size * sum(_letter(sign) for sign in text) / 1000


def _letter(sign: str) -> int:
    if " " <= sign <= "~":
        return _WIDTHS[ord(sign) - 32]
    if unicodedata.combining(sign):
        return 0
    return 1000 if unicodedata.east_asian_width(sign) in "WF" else 650


def plain(text: str) -> str:
    """Without the characters that neither a screen nor XML can take."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def wrapped(text: str, room: float, lines: int = 2) -> list[str]:
    """A text in at most so many lines of that width; what does not fit ends in an ellipsis."""
    done: list[str] = []
    rest = plain(text)
    while rest and len(done) < lines:
        if width(rest) <= room:
            return [*done, rest]
        fits = _fitting(rest, room)
        space = rest.rfind(" ", 1, fits + 1)
        hyphen = rest.rfind("-", 1, fits) + 1
        if space <= 0 and len(done) + 1 < lines:  # inside a word, as Japanese always is: the end may tell names apart
            cut = hyphen or max(1, fits)
            done.append(rest[:cut])
            rest = rest[cut:].lstrip()
            continue
        if len(done) + 1 == lines:
            return [*done, rest[: max(1, _fitting(rest, room - width("…")))].rstrip() + "…"]
        done.append(rest[:space])
        rest = rest[space + 1 :]
    return done


def _fitting(text: str, room: float) -> int:
    """How many characters have room."""
    used = 0.0
    for place, sign in enumerate(text):
        used += SIZE * _letter(sign) / 1000
        if used > room:
            return place
    return len(text)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within a span, at most so many."""
    reach = high - low
    if not reach > 0 or not math.isfinite(reach):
        return [low]
    power = 10.0 ** math.floor(math.log10(reach / most))
    step = next(
        step for step in (power, 2 * power, 2.5 * power, 5 * power, 10 * power, 20 * power) if reach / step <= most
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def tick_label(value: float, unit: str) -> str:
    """A share as a percentage, a large number by its letter."""
    if unit == "share":
        return f"{100 * value:.6g} %".replace("-", "−")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.6g}{letter}".replace("-", "−")
    return f"{value:.6g}".replace("-", "−") if value else "0"


@dataclass(frozen=True)
class Scale:
    """From values to places; values beyond the ends stay at the ends."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        reach = self.high - self.low
        part = min(1.0, max(0.0, (value - self.low) / reach)) if reach > 0 else 0.0
        return self.start + part * (self.stop - self.start)


@dataclass
class Sheet:
    """An SVG picture in the making. Every text that is put on it is escaped here."""

    width: float = WIDTH
    height: float = 0.0
    parts: list[str] = field(default_factory=list)

    def put(self, tag: str, hint: str = "", **settings: object) -> None:
        """A mark; `hint` is what a pointer that rests on it is told."""
        inner = f"><title>{escape(plain(hint))}</title></{tag}>" if hint else "/>"
        self.parts.append(f"<{tag}{_settings(settings)}{inner}")

    def line(self, x1: float, y1: float, x2: float, y2: float, **settings: object) -> None:
        settings = {"stroke": INK, **settings}
        self.parts.append(f"<line{_settings({'x1': x1, 'y1': y1, 'x2': x2, 'y2': y2, **settings})}/>")

    def text(self, x: float, y: float, text: str, **settings: object) -> None:
        place = f'x="{_short(x)}" y="{_short(y)}"'
        self.parts.append(f'<text {place} fill="currentColor"{_settings(settings)}>{escape(plain(text))}</text>')

    def label(self, right: float, middle: float, lines: Sequence[str]) -> None:
        """The name of a row, ending at the right, around the row's middle."""
        top = middle - 6.0 * (len(lines) - 1)
        for place, line in enumerate(lines):
            self.text(right, top + 12.0 * place + 4, line, text_anchor="end")

    def interval(self, low: float, high: float, y: float, colour: str = INK, ends: float = 3.0) -> None:
        self.line(low, y, high, y, stroke=colour, stroke_width=1.3)
        if ends:
            for x in (low, high):
                self.line(x, y - ends, x, y + ends, stroke=colour, stroke_width=1.3)

    def mark(self, x: float, y: float, place: int, size: float = 3.2, hint: str = "") -> None:
        """A shape in the colour of its place."""
        colour = PALETTE[place % len(PALETTE)]
        shape = SHAPES[place % len(SHAPES)]
        if shape == "circle":
            self.put("circle", hint, cx=x, cy=y, r=size, fill=colour)
        else:
            self.put("path", hint, d=_outline(shape, x, y, size), fill=colour)

    def legend(self, names: Sequence[tuple[str, int]]) -> float:
        """Marks and names in as many lines as they need; where the picture below begins."""
        x, y = 2.0, 9.0
        for name, place in names:
            shown = wrapped(name, (WIDTH - 30) / WIDER, 1)[0]
            room = 12 + width(shown) * WIDER + 12
            if x > 2 and x + room > WIDTH:
                x, y = 2.0, y + 15
            self.mark(x + 4, y - 4, place)
            self.text(x + 12, y, shown)
            x += room
        return y + 8

    def svg(self, alternative: str, look: str = "chart") -> Markup:
        """One image with a text alternative."""
        size = f"{_short(self.width)} {_short(self.height)}"
        opening = f'<svg class="{look}" role="img" aria-label="{escape(alternative)}" viewBox="0 0 {size}"'
        font = f'font-family="{_FONT}" font-size="{SIZE}"'
        return Markup(f"{opening} {font}>{''.join(self.parts)}</svg>")  # noqa: S704 – every text was escaped above


def _settings(settings: dict[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{escape(_short(value))}"' for name, value in settings.items())


def _outline(shape: str, x: float, y: float, size: float) -> str:
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "triangle-up": ((0, -1.25), (1.2, 1), (-1.2, 1)),
        "diamond": ((0, -1.4), (1.2, 0), (0, 1.4), (-1.2, 0)),
        "triangle-down": ((0, 1.25), (1.2, -1), (-1.2, -1)),
        "cross": (
            (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4), (0.4, 1.2), (-0.4, 1.2),
            (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
        ),
        "triangle-right": ((1.25, 0), (-1, 1.2), (-1, -1.2)),
    }[shape]  # fmt: skip
    return "M" + "L".join(f"{_short(x + dx * size)},{_short(y + dy * size)}" for dx, dy in corners) + "Z"


def _short(value: object) -> str:
    """Coordinates to a tenth of a pixel."""
    if not isinstance(value, float):
        return str(value)
    written = f"{value:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written
