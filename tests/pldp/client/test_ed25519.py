"""Signatures: the vectors of RFC 8032, section 7.1, and the library that signs; whatever is changed does not verify."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pldp.client.ed25519 import _ORDER, _P, verify

RFC = json.loads((Path(__file__).parents[3] / "clients" / "rfc8032.json").read_text())["vectors"]
"""The JavaScript client is held to the same file."""


def test_all_vectors_of_the_standard_are_there() -> None:
    """Among them the long message, and one that is a hash."""
    assert [(one["test"], len(one["message"]) // 2) for one in RFC] == [
        ("1", 0), ("2", 1), ("3", 2), ("1024", 1023), ("SHA(abc)", 64),
    ]  # fmt: skip
    assert RFC[-1]["message"] == hashlib.sha512(b"abc").hexdigest()


@pytest.mark.parametrize("vector", RFC, ids=lambda vector: vector["test"])
def test_the_vectors_of_the_standard(vector: dict[str, str]) -> None:
    public, text, signed = (bytes.fromhex(vector[part]) for part in ("public", "message", "signature"))
    assert verify(public, text, signed)
    Ed25519PublicKey.from_public_bytes(public).verify(signed, text)  # the file is what the library says, too
    assert not verify(public, text + b"\0", signed)
    assert not verify(public, text[:-1] or b"\0", signed)


@pytest.mark.parametrize("seed", range(5))
def test_what_the_library_signs_verifies_and_nothing_else(seed: int) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed] * 32))
    public, text = key.public_key().public_bytes_raw(), b"plan" * 100 * seed
    signed = key.sign(text)
    assert verify(public, text, signed)
    for place in range(64):
        changed = bytearray(signed)
        changed[place] ^= 1 << place % 8
        assert not verify(public, text, bytes(changed))
    other = Ed25519PrivateKey.from_private_bytes(bytes([seed + 1] * 32))
    assert not verify(other.public_key().public_bytes_raw(), text, signed)


def test_one_signature_has_one_spelling() -> None:
    """S + L would verify too if it were not refused, and a point may not be written as y + p."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    signed = key.sign(b"")
    scalar = int.from_bytes(signed[32:], "little") + _ORDER
    public = key.public_key().public_bytes_raw()
    assert verify(public, b"", signed)
    assert not verify(public, b"", signed[:32] + scalar.to_bytes(32, "little"))
    assert not verify((_P + 1).to_bytes(32, "little"), b"", signed)


@pytest.mark.parametrize(("public", "signed"), [(b"", bytes(64)), (bytes(31), bytes(64)), (bytes(32), bytes(63))])
def test_other_lengths_are_no_signatures(public: bytes, signed: bytes) -> None:
    assert not verify(public, b"", signed)
