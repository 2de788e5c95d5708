"""HTML of a page's blocks: one function per form. Every text is escaped here, whatever a spec or a value holds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from markupsafe import Markup, escape

from pldp.page.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Folded,
    Listing,
    Pair,
    Paragraph,
    Run,
    Section,
    Shaded,
    Source,
    Strip,
    Table,
    Text,
)
from pldp.tasks.charts import FLAG, draw, draw_strip

SHADES = 8
"""How dark a cell of a grid can be; the style sheet has a colour for each, in both themes."""

_RUNS = {
    "strong": Markup("<strong>{}</strong>"),
    "code": Markup("<code>{}</code>"),
    "soft": Markup('<span class="soft">{}</span>'),
    "power": Markup("<sup>{}</sup>"),
    "link": Markup('<a href="#{1}">{0}</a>'),
}
_LOOKS = {
    "plain": Markup(""),
    "lead": Markup(' class="lead"'),
    "soft": Markup(' class="soft"'),
    "note": Markup(' class="note"'),
}
_WORDS = {True: Markup(' class="words"'), False: Markup("")}
_ROW = (Markup("<tr>"), Markup("</tr>\n"))
_CELLS = {
    (True, False): (Markup('<th scope="row">'), Markup("</th>")),
    (True, True): (Markup('<th scope="row" class="words">'), Markup("</th>")),
    (False, False): (Markup("<td>"), Markup("</td>")),
    (False, True): (Markup('<td class="words">'), Markup("</td>")),
}
"""Whether it names its row, and whether it holds words."""
_OPEN = {True: Markup(" open"), False: Markup("")}


def written(text: Text) -> Markup:
    """A sentence of several runs."""
    if len(text) == 1 and isinstance(text[0], str):
        return escape(text[0])
    return _joined(_RUNS[run.look].format(run.text, run.target) if isinstance(run, Run) else run for run in text)


def _joined(parts: Iterable[str | Markup]) -> Markup:
    return Markup("").join(parts)


def section_html(section: Section, depth: int = 2) -> Markup:
    """A section with its heading, and those inside it one level lower."""
    return Markup(
        '<section aria-labelledby="{key}">\n<h{depth} id="{key}">{title}</h{depth}>\n{inner}</section>\n'
    ).format(
        key=section.key,
        depth=depth,
        title=section.title,
        inner=_joined(
            [*map(block_html, section.blocks), *(section_html(each, depth + 1) for each in section.sections)]
        ),
    )


@singledispatch
def block_html(block: Block) -> Markup:
    """The HTML of one block of a page, by its class; every class of block registers its own."""
    raise TypeError(f"no HTML of {type(block).__name__}")


@block_html.register
def _paragraph(block: Paragraph) -> Markup:
    return Markup("<p{}>{}</p>\n").format(_LOOKS[block.look], written(block.text))


@block_html.register
def _listing(block: Listing) -> Markup:
    return Markup("<ul>\n{}</ul>\n").format(
        _joined(Markup("<li>{}</li>\n").format(written(s)) for s in block.sentences)
    )


@block_html.register
def _source(block: Source) -> Markup:
    return Markup('<pre tabindex="0" role="region" aria-label="{}"><code>{}</code></pre>\n').format(
        block.title, block.text
    )


@block_html.register
def _folded(block: Folded) -> Markup:
    return Markup("<details{}>\n<summary>{}</summary>\n{}</details>\n").format(
        _OPEN[block.opened], written(block.summary), _joined(map(block_html, block.blocks))
    )


@block_html.register
def _pair(block: Pair) -> Markup:
    return Markup('<div class="pair">\n{}</div>\n').format(_joined(map(block_html, block.figures)))


@block_html.register
def _figure(block: Figure) -> Markup:
    if block.chart is None:
        drawn = Markup("")
    else:
        drawn = block_html(block.chart) if isinstance(block.chart, Table) else draw(block.chart) + Markup("\n")
    return Markup("<figure>\n<figcaption>{}</figcaption>\n{}{}</figure>\n").format(
        written(block.caption), drawn, _joined(map(block_html, block.blocks))
    )


@block_html.register
def _table(block: Table) -> Markup:
    """In a region of its own that scrolls, for the page itself never does sideways."""
    caption = Markup("<caption>{}</caption>\n").format(block.caption) if block.caption else ""
    head = _joined(
        Markup('<th scope="col"{}>{}</th>').format(_WORDS[column.words], written(column.title))
        for column in block.columns
    )
    return Markup(
        '<div class="scroll{}" role="region" tabindex="0" aria-label="{}">\n<table>\n{}<thead><tr>{}</tr></thead>\n'
        "<tbody>\n{}</tbody>\n</table>\n</div>\n"
    ).format(
        f" {block.look}" if block.look else "",
        block.title,
        caption,
        head,
        _joined(_row(row, block.columns) for row in block.rows),
    )


def _row(row: tuple[Cell, ...], columns: tuple[Column, ...]) -> Markup:
    cells = (
        _cell(cell, column, first=place == 0) for place, (cell, column) in enumerate(zip(row, columns, strict=True))
    )
    return _ROW[0] + _joined(cells) + _ROW[1]


def _cell(cell: Cell, column: Column, *, first: bool) -> Markup:
    if isinstance(cell, Shaded):
        shade = min(SHADES, max(0, round(cell.depth * SHADES)))
        return Markup('<td class="shade-{}">{}{}<br><small>{}</small></td>').format(
            shade, "" if cell.reliable else FLAG, cell.figure, cell.below
        )
    start, end = _CELLS[first, column.words]
    return start + (draw_strip(cell) if isinstance(cell, Strip) else written(cell)) + end
