"""The runner's section: what may stand there, and what is said of what may not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pldp.spec.runner import Runner


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("threads", Runner()),
        ({}, Runner()),
        ({"dask": None}, Runner()),
        ({"dask": "local", "workers": 3}, Runner(dask="local", workers=3)),
        ({"dask": "tcp://10.0.0.5:8786"}, Runner(dask="tcp://10.0.0.5:8786")),
        ({"dask": "tls://[::1]:8786"}, Runner(dask="tls://[::1]:8786")),
    ],
)
def test_places_to_run(given: Any, expected: Runner) -> None:
    assert Runner.model_validate(given) == expected


@pytest.mark.parametrize(
    ("text", "size"), [("512 MB", 512 * 10**6), ("2GB", 2 * 10**9), ("1.5 GiB", 3 << 29), ("0.6 TB", 6 * 10**11)]
)
def test_sizes(text: str, size: int) -> None:
    assert Runner.model_validate({"dask": "local", "memory": text}).memory == size


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("ray", "must be threads, or a mapping"),
        ({"dask": "cluster"}, "must be local, or the address of a scheduler"),
        ({"dask": "http://host:8786"}, "must be local, or the address"),
        ({"dask": "tcp://host"}, "must be local, or the address"),
        ({"dask": "tcp://host:70000"}, "must be local, or the address"),
        ({"dask": "tcp://user@host:8786"}, "must be local, or the address"),
        ({"dask": 8786}, "must be local, or the address"),
        ({"dask": "local", "workers": 0}, "greater than or equal to 1"),
        ({"dask": "local", "workers": True}, "must be a whole number"),
        ({"workers": 2}, "workers goes with dask: local"),
        ({"dask": "tcp://host:8786", "workers": 2}, "workers goes with dask: local"),
        ({"memory": "511 MB"}, "at least 512 MB"),
        ({"memory": "512 MB"}, "at least 1 GB with threads"),
        ({"memory": "lots"}, "at least 512 MB"),
        ({"memory": 2 * 10**9}, "at least 512 MB"),
        ({"cores": 2}, "Extra inputs"),
    ],
)
def test_what_breaks_a_rule(given: Any, rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        Runner.model_validate(given)
