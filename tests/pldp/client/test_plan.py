"""A plan is read if its key, signature, version and date hold; whatever does not is refused, and says which."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pldp.client import Refused, parse_plan, read_plan
from pldp.client.written import LONGEST
from tests.pldp.client.plans import ISSUED, KEY, document, histograms, signed

BODY = document(histograms(mechanism="krr"))
OWNER = hashlib.sha256(KEY.public_key().public_bytes_raw()).hexdigest()
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))


def test_hash_and_signature_cover_the_exact_bytes() -> None:
    plan = read_plan(signed(BODY), OWNER, ISSUED)
    assert plan.sha256 == hashlib.sha256(BODY).hexdigest()
    assert (plan.name, plan.period, plan.fingerprint) == ("people", "2026-11", OWNER)
    assert list(plan.questions) == ["meal", "age", "both", "town"]
    # The same content in other bytes is another plan, and needs another signature.
    again = json.dumps(json.loads(BODY)).encode()
    assert parse_plan(again).sha256 != plan.sha256
    with pytest.raises(Refused, match="changed after it was signed"):
        read_plan(signed(BODY)[: -len(BODY)] + again, OWNER, ISSUED)


@pytest.mark.parametrize("spelled", [OWNER.upper(), ":".join(OWNER[i : i + 2] for i in range(0, 64, 2)), f" {OWNER}\n"])
def test_a_fingerprint_may_be_spelled_as_people_do(spelled: str) -> None:
    assert read_plan(signed(BODY), spelled, ISSUED).sha256 == hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize(
    ("envelope", "reason"),
    [
        (BODY, "no signed collection plan"),
        (b"", "no signed collection plan"),
        (signed(BODY).replace(b"ed25519", b"rsa"), "no signed collection plan"),
        (signed(BODY, version=2), "knows 1 only"),
        (signed(BODY, OTHER), "not by the key"),
        (signed(BODY) + b" ", "changed after"),
        (signed(BODY).replace(b'"soup"', b'"soap"'), "changed after"),
        (signed(BODY.replace(b'"version": 1', b'"version": 2')), "kind or version"),
        (signed(BODY.replace(b'"version": 1', b'"version": true')), "kind or version"),
        (signed(BODY.replace(b"collection plan", b"plan")), "kind or version"),
        (signed(BODY.replace(b'"krr"', b'"none"', 1)), "does not say what a client needs"),
        (signed(BODY.replace(b'"redraw"', b'"again"', 1)), "does not say what a client needs"),
        (signed(b"[" * 100_000), "does not say what a client needs"),
        (signed(b"\xff"), "does not say what a client needs"),
        (signed(b"{}"), "does not say what a client needs"),
    ],
)
def test_what_does_not_hold_is_refused(envelope: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_plan(envelope, OWNER, ISSUED)


CLIENTS = Path(__file__).parents[3] / "clients"
BOMBS = json.loads((CLIENTS / "bombs.json").read_text())
"""Changes that would make a client draw for ever, fill its memory, or send values as they are; the JavaScript client is
held to the same."""


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb["why"])
def test_a_hostile_plan_is_refused_whoever_signed_it(bomb: dict[str, Any]) -> None:
    cases = json.loads((CLIENTS / "vectors.json").read_text())["cases"]
    plan = next(one["plan"] for one in cases if one["name"] == bomb["case"])
    assert parse_plan(plan.encode())
    changed: Any = json.loads(plan)
    part = changed
    for step in bomb["at"][:-1]:
        part = part[step]
    part[bomb["at"][-1]] = bomb["with"]
    with pytest.raises(
        Refused, match="would tell more than" if "tells" in bomb["why"] else "does not say what a client"
    ):
        parse_plan(json.dumps(changed).encode())


def test_a_plan_without_end_is_not_even_looked_at() -> None:
    with pytest.raises(Refused, match="no signed collection plan"):
        read_plan(signed(BODY) + b" " * LONGEST, OWNER, ISSUED)


def test_a_plan_expires() -> None:
    expires = ISSUED + timedelta(days=30)
    assert read_plan(signed(BODY), OWNER, expires - timedelta(seconds=1)).expires == expires
    with pytest.raises(Refused, match="expired at 2026-12-18 00:00 UTC"):
        read_plan(signed(BODY), OWNER, expires)


def test_a_plan_says_nothing_but_what_clients_need() -> None:
    """Not the source, not what is expected, not how levels are combined."""
    text = BODY.decode()
    for word in ("source", "sent", "expected", "recipe", "assumed", "minimum", "/"):
        assert f'"{word}"' not in text
