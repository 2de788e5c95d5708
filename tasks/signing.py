"""The operator's key pair, and the envelope in which a collection plan goes out.

The private key signs plans and does nothing else. It lies where the operator says, readable by its owner alone; whoever
serves plans and collects reports needs neither it nor a vault.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from pldp.client.plan import VERSION
from pldp.errors import Outcome, SourceError
from pldp.tasks.durable import write_new
from pldp.tasks.inbox import printable


def make_key(path: Path) -> str:
    """A new key pair in a file of mode 0600 that was not there before; returns its fingerprint."""
    content = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_new(path, content, 0o600, Outcome.NOTHING_SIGNED, "; plans that people hold are signed by it")
    return fingerprint(path)


def fingerprint(path: Path) -> str:
    """SHA-256 of the public key, in hex: what people get by another road than the plan."""
    return hashlib.sha256(_load(path).public_key().public_bytes_raw()).hexdigest()


def sign_plan(body: bytes, path: Path) -> bytes:
    """The plan in its envelope: one line, then exactly these bytes."""
    key = _load(path)
    public, signature = key.public_key().public_bytes_raw().hex(), key.sign(body).hex()
    return f"pldp-plan {VERSION} ed25519 {public} {signature}\n".encode() + body


def _load(path: Path) -> Ed25519PrivateKey:
    try:
        with path.open("rb") as handle:
            mode = stat.S_IMODE(os.fstat(handle.fileno()).st_mode)
            content = handle.read(1 << 16)
    except OSError as error:
        raise SourceError(
            f"the signing key cannot be read ({os.strerror(error.errno or 0)})",
            Outcome.NOTHING_SIGNED,
            file=printable(path),
            remedy="`pldp collect keys` makes one.",
        ) from None
    if mode & 0o077:
        raise SourceError(
            f"others may read the signing key (mode {mode:o})",
            Outcome.NOTHING_SIGNED,
            file=printable(path),
            remedy="Set it to 600.",
        )
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SourceError(
            "holds no Ed25519 key as `pldp collect keys` makes it",
            Outcome.NOTHING_SIGNED,
            file=printable(path),
            remedy="Name another file.",
        )
    return key
