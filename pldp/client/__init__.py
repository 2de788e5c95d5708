"""One person's side: a signed plan in, perturbed reports out. The standard library only, on the person's own device.

    from pldp.client import Folder, Person, read_plan

    plan = read_plan(envelope, fingerprint)                  hash, signature, version and expiry are checked
    person = Person(plan, Folder("answers"))
    message = person.answer({"meal": "soup"}, "high")        drawn once and kept; these bytes are what is sent

Read in this order: plan.py (what is signed), questions.py (what is asked), channels.py, holdings.py, protocols.py and
numeric.py (how a report is drawn), dice.py (from which bytes), fitting.py and spend.py (which plans are refused),
person.py (what is kept), message.py (what is sent).
"""

from __future__ import annotations

from pldp.client.catalogue import totals
from pldp.client.dice import Dice
from pldp.client.explain import Odds, explain
from pldp.client.message import REASONS, Accepted, Collected, Rejected, check_message
from pldp.client.person import Folder, Memory, Person, Store
from pldp.client.plan import Plan, parse_plan, read_plan
from pldp.client.questions import Refused

__all__ = [
    "REASONS",
    "Accepted",
    "Collected",
    "Dice",
    "Folder",
    "Memory",
    "Odds",
    "Person",
    "Plan",
    "Refused",
    "Rejected",
    "Store",
    "check_message",
    "explain",
    "parse_plan",
    "read_plan",
    "totals",
]
