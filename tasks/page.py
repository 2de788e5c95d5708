"""The page: a release, and all releases of a home, as static HTML that works offline.

It is made from what is published (results, spec, privacy statement) and from nothing else; the vault is not in reach.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from pldp.errors import PldpError, StageFailed
from pldp.tasks import words
from pldp.tasks.aggregates.page import declared_total, declared_unit, render_aggregates
from pldp.tasks.home import Home, open_folder, replace
from pldp.tasks.items.page import render_items
from pldp.tasks.page_histograms import render_histograms
from pldp.tasks.results import PublishedRelease, read_release
from pldp.tasks.specfile import AGGREGATES, HISTOGRAMS, ITEMS
from pldp.tasks.trends import read_index


def build_page(home: Path, wanted: str) -> Path:
    """(Re)build the page of a release, and the index of them all. A page has no part in what is published."""
    found = read_release(home, wanted)
    pages = Home(home).pages
    path = pages / f"{found.release_id}.html"
    try:
        with _alone(pages):
            spec = read_spec(home, found.release_id)
            page = _render(found, spec).encode()
            # The page comes last: for a release that has one, nobody comes back to list it.
            replace(pages / "index.html", render_index(home, found.release_id).encode(), mode=0o644)
            replace(path, page, mode=0o644)
        return path
    except PldpError as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except Exception as error:
        reason = type(error).__name__
    raise StageFailed(
        f"{path}: the page could not be built ({reason}). Results are as they were; "
        f"`pldp page {found.release_id} --home {home}` builds it again."
    )


def _render(found: PublishedRelease, spec: dict[str, Any] | None) -> str:
    """The page of a release of whatever kind."""
    kind = (spec or {}).get("kind", HISTOGRAMS)
    if kind == AGGREGATES:
        return render_aggregates(found, spec, templates=_templates())
    if kind == ITEMS:
        return render_items(found, spec, declared_total(spec), templates=_templates())
    return render_histograms(found, spec, templates=_templates())


def render_index(home: Path, building: str = "") -> str:
    """The list of all releases, and how each name's results went from one to the next."""
    built = {building, *(path.stem for path in Home(home).pages.glob("*.html"))}

    def declared(release_id: str) -> tuple[str, str | None]:
        spec = read_spec(home, release_id)
        return declared_unit(spec), declared_total(spec)

    return _templates().get_template("index.html.j2").render(**read_index(home, declared), built=built)


def read_spec(home: Path, release_id: str) -> dict[str, Any] | None:
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
    environment.filters |= {
        name: getattr(words, name)
        for name in ("above", "certainty", "chance", "factor", "measured", "number", "percent", "protected", "whose")
    }
    environment.globals |= {"METHODS": words.METHODS, "POSTPROCESSES": words.POSTPROCESSES}
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
