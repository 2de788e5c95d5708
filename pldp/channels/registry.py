"""The frequency protocols by name."""

from __future__ import annotations

from pldp.channels.krr import KRR
from pldp.channels.olh import OLH
from pldp.channels.protocol import PureProtocol
from pldp.channels.subset import Subset
from pldp.channels.unary import BRR, OUE

PROTOCOLS: dict[str, type[PureProtocol]] = {protocol.name: protocol for protocol in (KRR, BRR, OUE, OLH, Subset)}
"""By the name a spec and a plan give them. A protocol is a dataclass: its fields are the plan's parameters."""
