"""The page of the collector: static files, and headers that let it talk to nobody but the collector."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import pldp

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_FILES = {
    "/": ("page/index.html", "text/html"),
    "/page.css": ("page/page.css", "text/css"),
    "/page.js": ("page/page.js", "text/javascript"),
    "/pldp.js": ("js/pldp.js", "text/javascript"),
}


def _folder() -> Path:
    """Installed beside the package's modules, in the repository beside the package."""
    package = Path(pldp.__file__).parent
    return next(place for place in (package / "clients", package.parent / "clients") if place.is_dir())


def page_routes() -> list[Route]:
    """The routes of the page that people answer on: its files, read once, and no icon."""
    folder = _folder()
    contents = {path: ((folder / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()}

    async def serve(request: Request) -> Response:
        content, kind = contents[request.scope["path"]]
        return Response(content, media_type=kind, headers=_HEADERS)

    async def no_icon(request: Request) -> Response:
        return Response(status_code=204)

    return [*(Route(path, serve) for path in contents), Route("/favicon.ico", no_icon)]
