"""Signatures: the vectors of RFC 8032, section 7.1, and the library that signs; whatever is changed does not verify."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pldp.client.ed25519 import _ORDER, _P, verify

RFC = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d"
        "c027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), RFC)
def test_the_vectors_of_the_standard(key: str, message: str, signature: str) -> None:
    public, text, signed = bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature)
    assert verify(public, text, signed)
    assert not verify(public, text + b"\0", signed)


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
