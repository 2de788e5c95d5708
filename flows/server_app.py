"""Prefect's server as our own processes run it: quicker to load, and it keeps the first database that it migrates.

It runs in the process that `own_server` starts, never in a command's own.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pldp.flows.template import keep_template, read_template

if TYPE_CHECKING:
    from fastapi import FastAPI

_SQLITE = "sqlite+aiosqlite:///"


def create_app() -> FastAPI:
    """What uvicorn serves."""
    gc.disable()  # nothing of what Prefect's modules make while they load is garbage; looking for it takes a tenth
    from prefect.server.api.server import create_app as create_prefect_app
    from prefect.server.database import provide_database_interface

    app = create_prefect_app()
    started = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(served: FastAPI) -> AsyncIterator[None]:
        database = _new_database()
        if database is not None and read_template() is None:
            await provide_database_interface().create_db()
            keep_template(database)  # before anybody can have asked for a run
        async with started(served):
            gc.freeze()
            gc.enable()
            yield

    app.router.lifespan_context = lifespan
    return app


def _new_database() -> Path | None:
    """The file that this server is going to make; None if it is there, or elsewhere."""
    from prefect.settings import get_current_settings

    url = get_current_settings().server.database.connection_url
    address = "" if url is None else url.get_secret_value()
    path = Path(address.removeprefix(_SQLITE))
    return path if address.startswith(_SQLITE) and path.is_absolute() and not path.exists() else None
