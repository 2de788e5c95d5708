"""The fenced blocks of a document, and what its author says about running them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.flows.conftest import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = ("sh", "python", "sql", "yaml", "json")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- (.+?) -->\n$")


@dataclass(frozen=True)
class Block:
    """One fenced block. `answer` is the block without a language that follows at once: what it shows to come back."""

    document: str
    line: int
    language: str
    text: str
    mark: str
    answer: str | None

    @property
    def name(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def not_run(self) -> bool:
        return self.mark == "a drawing" or self.mark.startswith("not run: ")


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text()
    found = list(_FENCE.finditer(text))
    blocks: list[Block] = []
    previous = None
    for match in found:
        before = _MARK.search(text[: match.start()])
        mark = before[1] if before else ""
        line = text.count("\n", 0, match.start()) + 1
        follows = previous is not None and not text[previous.end() : match.start()].strip()
        if not match[1] and not mark and follows and blocks:
            blocks[-1] = Block(**{**vars(blocks[-1]), "answer": match[2]})
        else:
            blocks.append(Block(path.name, line, match[1], match[2], mark, None))
        previous = match
    return blocks


def shape(text: str) -> list[str]:
    """What is left of an answer when chance, time and the terminal's width are taken away, line by line."""
    lines = []
    for line in text.splitlines():
        bare = re.sub(r"[│┃┏┓┗┛┡┩┠┨┌┐└┘├┤┬┴┼╇┳━─┻╀╋]", " ", line)
        bare = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(Z| UTC)?", "TIME", bare)
        bare = re.sub(r"\b[0-9a-f]{12}\b", "ID", bare)
        bare = re.sub(r"\d[\d,.]*", "N", bare)
        if bare.strip():
            lines.append(" ".join(bare.split()))
    return lines
