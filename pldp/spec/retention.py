"""How long a release keeps what it needs no more once it is published."""

from __future__ import annotations

from typing import Literal

from pldp.spec.fields import Model


class Retention(Model):
    vault: Literal["delete", "keep"] = "delete"
    inbox: Literal["delete", "keep"] = "delete"
    """Of a collector's slot, once it is published: its reports lie in the release's own files."""
