"""The server and the command line of the tests of flows."""

from __future__ import annotations

from tests.flows.conftest import pldp, server

__all__ = ["pldp", "server"]
