"""Frequency protocols: each a frozen value whose fields are the plan's parameters (`PROTOCOLS` names them)."""
