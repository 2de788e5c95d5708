"""The page: a release, and all releases of a home, as static HTML that works offline.

It is made from what is published (results, spec, wording, privacy statement) and from nothing else; the vault is not in
reach. What is said stands with the kinds of questions (`pldp/questions/<kind>/page.py`); here it becomes HTML.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import yaml

from pldp.errors import Outcome, PldpError, StageFailed
from pldp.page import words
from pldp.page.blocks import Block, Section
from pldp.page.promises import promised
from pldp.page.published import Published, Row
from pldp.questions.pages import KIND_PAGES
from pldp.tables.common import SPENDS
from pldp.tasks.drafts import replace
from pldp.tasks.home import Home, open_folder
from pldp.tasks.html import block_html, section_html
from pldp.tasks.results import PublishedRelease, read_release
from pldp.tasks.trends import read_index
from pldp.tasks.wording import read_wording


def build_page(home: Path, wanted: str) -> Path:
    """(Re)build the page of a release, and the index of them all. A page has no part in what is published."""
    release = read_release(home, wanted)
    pages = Home(home).pages
    path = pages / f"{release.release_id}.html"
    try:
        with _alone(pages):
            page = render_release(home, release).encode()
            # The page comes last: for a release that has one, nobody comes back to list it.
            replace(pages / "index.html", render_index(home, release.release_id).encode(), mode=0o644)
            replace(path, page, mode=0o644)
        return path
    except PldpError as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except Exception as error:
        reason = type(error).__name__
    raise StageFailed(
        f"the page could not be built ({reason})",
        Outcome.AS_BEFORE,
        file=path,
        remedy=f"`pldp page {release.release_id} --home {home}` builds it again.",
    )


def plain_tables(release: PublishedRelease) -> Mapping[str, Sequence[Row]]:
    """Rows of every table of results: the one place where a page knows how they are read."""
    return {name: rows.to_dicts() for name, rows in release.tables.items()}


def render_release(home: Path, release: PublishedRelease) -> str:
    """The page of one release. The same release gives the same bytes."""
    folder = Home(home).releases / release.release_id
    spec = read_spec(home, release.release_id)
    row = {"release_id": release.release_id, **release.releases.to_dicts()[0]}
    page = Published(row, plain_tables(release), spec, release.statement, read_wording(folder))
    budgets = [block for kind in KIND_PAGES for block in kind.budgets(page)]
    results = [section for kind in KIND_PAGES for section in kind.results(page)]
    return (
        _templates()
        .get_template("release.html.j2")
        .render(
            release=row,
            published=release.status == "published",
            plan_matches=release.plan_matches,
            wording=page.wording,
            holds=[said for kind in KIND_PAGES if (said := kind.holds(page))],
            spends=spends_of(home, row, page.rows(SPENDS.name)),
            sections=[
                *promised(page, promise),
                *results,
                *([Section("budgets", "Budgets", tuple(budgets))] if budgets else []),
            ],
            gates=sorted(release.validations.to_dicts(), key=lambda gate: gate["passed"]),
            query=next((query for kind in KIND_PAGES if (query := kind.query(page))), None),
            spec=None if spec is None else written_spec(spec),
        )
    )


def promise(page: Published) -> tuple[Block, ...]:
    """What one promise is, in the words of the kinds that make it."""
    return tuple(block for kind in KIND_PAGES for block in kind.promise(page))


def spends_of(home: Path, release: Row, spends: Sequence[Row] = ()) -> list[tuple[str, float | None]]:
    """Whom a release protects and the most that it spent, `spends` its rows of that table."""
    if spends:
        return [(str(row["unit"]), float(row["worst_epsilon"])) for row in spends]
    return [spend_of(home, release)]


def spend_of(home: Path, release: Row) -> tuple[str, float | None]:
    """Of a release without such rows; those of earlier versions say it in their spec alone."""
    if release.get("worst_epsilon") is not None:
        return str(release["protects"]), float(release["worst_epsilon"])
    spec = read_spec(home, release["release_id"])
    stated = (kind.spends(spec) for kind in KIND_PAGES) if spec is not None else iter(())
    return next((spend for spend in stated if spend is not None), ("user", None))


def written_spec(spec: dict[str, Any]) -> str:
    """A stored spec as its author might have written it, shortened where it would fill pages."""
    notes = []
    for kind in KIND_PAGES:
        spec, note = kind.abridged(spec)
        notes.append(note)
    text = yaml.dump(
        _without_nulls(spec),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    return str(text) + "".join(notes)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def render_index(home: Path, building: str = "") -> str:
    """The list of all releases, and how each name's results went from one to the next."""
    built = {building, *(path.stem for path in Home(home).pages.glob("*.html"))}
    index = read_index(home, lambda release: spend_of(home, release), lambda release_id: read_spec(home, release_id))
    return _templates().get_template("index.html.j2").render(**index, built=built)


def read_spec(home: Path, release_id: str) -> dict[str, Any] | None:
    """The spec that a release was made from, as its folder keeps it; None where an older version kept none."""
    path = Home(home).releases / release_id / "spec.json"
    return json.loads(path.read_text()) if path.exists() else None


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pldp.tasks"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    said = ("above", "chance", "number", "protected", "whose")
    environment.filters |= {name: getattr(words, name) for name in said}
    environment.filters |= {"html": section_html, "block": block_html}
    return environment


@contextmanager
def _alone(pages: Path) -> Iterator[None]:
    """One writer at a time, or an older index could replace a newer one."""
    open_folder(pages)
    folder = os.open(pages, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
