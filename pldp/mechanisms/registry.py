"""The frequency protocols by name."""

from __future__ import annotations

from pldp.mechanisms.krr import KRR
from pldp.mechanisms.olh import OLH
from pldp.mechanisms.protocol import PureProtocol
from pldp.mechanisms.subset import Subset
from pldp.mechanisms.unary import BRR, OUE

PROTOCOLS: dict[str, type[PureProtocol]] = {protocol.name: protocol for protocol in (KRR, BRR, OUE, OLH, Subset)}
"""By the name a spec and a plan give them. A protocol is a dataclass: its fields are the plan's parameters."""
