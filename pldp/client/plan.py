"""The collection plan: a public, signed document that says everything a client needs to draw a report.

    pldp-plan 1 ed25519 <public key, 64 hex digits> <signature, 128 hex digits>
    {"format": "pldp collection plan", "version": 1, …}

The first line is the envelope. Everything after it, byte by byte, is what the hash and the signature cover; a plan's
meaning never changes for one hash. docs/wire.md and clients/plan.schema.json describe the document.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from pldp.client.ed25519 import verify
from pldp.client.fitting import require_apart, require_attribute, require_fitting, require_groups, require_promise
from pldp.client.questions import Attribute, Question, Refused, read_attribute, read_question
from pldp.client.written import LONGEST

VERSION = 1
FORMAT = "pldp collection plan"
_INSTANT = "%Y-%m-%dT%H:%M:%SZ"
_ENVELOPE = re.compile(rb"pldp-plan (\d{1,9}) ed25519 ([0-9a-f]{64}) ([0-9a-f]{128})\n")


@dataclass(frozen=True)
class Plan:
    """A plan whose hash and signature hold."""

    sha256: str
    fingerprint: str
    """SHA-256 of the operator's public key, in hex: whose plan this is."""
    name: str
    period: str
    """One person answers once in it."""
    expires: datetime
    attributes: Mapping[str, Attribute]
    """What a person is asked."""
    questions: Mapping[str, Question]
    """What is reported of it."""
    document: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)
    """As it was signed: titles and descriptions too."""

    @cached_property
    def series(self) -> str:
        """Under what a client keeps that it has answered: operator, name and period, whatever else the plan says."""
        return hashlib.sha256("\n".join((self.fingerprint, self.name, self.period)).encode()).hexdigest()


def read_plan(envelope: bytes, fingerprint: str, now: datetime | None = None) -> Plan:
    """The plan, if this operator signed exactly it and it has not expired; `Refused` says which does not hold.

    `fingerprint` is that of the operator's key, which a person has by another road than the plan itself.
    """
    header = _ENVELOPE.match(envelope) if len(envelope) <= LONGEST else None
    if header is None:
        raise Refused("this is no signed collection plan. Fetch it again")
    version, key, signature = int(header[1]), bytes.fromhex(header[2].decode()), bytes.fromhex(header[3].decode())
    if version != VERSION:
        raise Refused(f"the plan has version {version}, and this client knows {VERSION} only. Update the client")
    owner, wanted = hashlib.sha256(key).hexdigest(), re.sub(r"[\s:]", "", fingerprint).lower()
    if not hmac.compare_digest(owner, wanted):
        raise Refused(f"the plan was signed by {owner}, not by the key that you were given. Do not answer it")
    body = envelope[header.end() :]
    if not verify(key, body, signature):
        raise Refused("the plan was changed after it was signed. Do not answer it")
    plan = parse_plan(body, owner)
    if (now or datetime.now(UTC)) >= plan.expires:
        raise Refused(f"the plan expired at {plan.expires:%Y-%m-%d %H:%M} UTC. Fetch a new one")
    return plan


def parse_plan(body: bytes, fingerprint: str = "") -> Plan:
    """The plan of these bytes, nobody's signature looked at: for those who have signed it themselves."""
    try:
        document = json.loads(body.decode())
        if document["format"] != FORMAT or document["version"] != VERSION or document["version"] is True:
            raise Refused("the plan is of a kind or version that this client does not know. Update the client")
        attributes = _by_name(read_attribute(one) for one in document["attributes"])
        questions = _by_name(read_question(one, attributes) for one in document["questions"])
        for attribute in attributes.values():
            require_attribute(attribute)
        for question in questions.values():
            require_fitting(question)
            require_promise(question)
        require_groups(questions.values())
        require_apart(questions.values())
        expires = datetime.strptime(document["expires"], _INSTANT).replace(tzinfo=UTC)
        name, period = str(document["name"]), str(document["period"])
        if expires.strftime(_INSTANT) != document["expires"]:
            raise ValueError("a date in another form")
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, RecursionError):
        raise Refused("the plan does not say what a client needs to draw by. Ask the operator for another") from None
    sha256 = hashlib.sha256(body).hexdigest()
    return Plan(sha256, fingerprint, name, period, expires, attributes, questions, document)


_Named = TypeVar("_Named", Attribute, Question)


def _by_name(parts: Iterable[_Named]) -> dict[str, _Named]:
    """By their names, which must be different texts: of two of one name a person would see one and answer the other."""
    listed = list(parts)
    names = [one.name for one in listed]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise ValueError("names that are not different texts")
    return dict(zip(names, listed, strict=True))
