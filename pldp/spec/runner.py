"""Where a release runs. It is no part of what the release is: the same one may resume elsewhere."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from pldp.errors import BrokenRule
from pldp.spec.fields import Model, Whole

THREADS, LOCAL = "threads", "local"
MAX_WORKERS = 1024
LEAST_MEMORY = 512 * 10**6
LEAST_OF_ALL = 10**9
"""Bytes of a worker, and of a process that does everything: it holds most of them before it has read anything."""

_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([MGT])(i?)B")
_POWERS = {"M": 2, "G": 3, "T": 4}
RunnerOptions = dict[str, str | int | None] | None
"""What a command line says of the runner, under the keys of the spec; a place to run (`dask`) replaces the section."""


def _place(value: Any) -> Any:
    """A local cluster, or the address of a scheduler."""
    if value is None or value == LOCAL:
        return value
    parts = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if parts is None or not 1 <= int(parts[3]) <= 65535:
        raise ValueError("must be local, or the address of a scheduler such as tcp://10.0.0.5:8786 or tls://host:8786")
    return value


def _bytes(value: Any) -> Any:
    """A size as people write it."""
    if value is None:
        return value
    parts = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = 0 if parts is None else int(float(parts[1]) * (1024 if parts[3] else 1000) ** _POWERS[parts[2]])
    if size < LEAST_MEMORY:
        raise ValueError(f"must be a size of at least {LEAST_MEMORY // 10**6} MB, such as 512 MB or 2 GB")
    return size


class Runner(Model):
    """Threads of this process, unless `dask` names a cluster: `local`, or the address of one that runs already."""

    dask: Annotated[
        str | None,
        BeforeValidator(_place),
        WithJsonSchema({"type": ["string", "null"], "pattern": f"^({LOCAL}|{_ADDRESS.pattern})$"}),
    ] = None
    workers: Annotated[Whole, Field(ge=1, le=MAX_WORKERS)] | None = None
    """Processes of a local cluster; None for one a core."""
    memory: Annotated[
        int | None,
        BeforeValidator(_bytes),
        WithJsonSchema({"type": ["string", "null"], "pattern": f"^{_SIZE.pattern}$"}),
    ] = None
    """What a process may hold: this one with threads, each worker with dask. Partitions are sized by it."""

    @model_validator(mode="before")
    @classmethod
    def _in_a_word(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value != THREADS:
                raise ValueError("must be threads, or a mapping such as {dask: local}")
            return {}
        return value

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if self.dask is None and self.memory is not None and self.memory < LEAST_OF_ALL:
            raise BrokenRule(
                f"must be at least {LEAST_OF_ALL // 10**9} GB with threads, which share one process", field="memory"
            )
        if self.dask != LOCAL and self.workers is not None:
            raise BrokenRule(
                "goes with dask: local; threads fill the cores, a running cluster has its workers", field="workers"
            )
        return self
