"""`pldp collect keys` and `pldp collect plan`: what is written where, with which mode, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pldp.client import Accepted, Memory, Person, check_message, read_plan
from pldp.tasks.signing import sign_plan
from tests.flows.conftest import Pldp
from tests.people import mode, write_spec

SENT = {"source": {"reports": "sent"}, "levels": {"dependence": 1}}


@pytest.fixture
def key(tmp_path: Path, pldp: Pldp) -> tuple[Path, str]:
    """A key as the command makes it, and its fingerprint as the command prints it."""
    path = tmp_path / "operator.key"
    return path, pldp("collect", "keys", path).out.split()[-1]


def test_a_plan_is_signed_and_a_client_answers_it(tmp_path: Path, pldp: Pldp, key: tuple[Path, str]) -> None:
    path, fingerprint = key
    assert mode(path) == 0o600
    spec, out = write_spec(tmp_path, **SENT), tmp_path / "plan.signed"
    said = pldp("collect", "plan", spec, "--key", path, "--out", out, "--period", "2026-11").out
    plan = read_plan(out.read_bytes(), fingerprint)
    assert plan.sha256 in said
    assert fingerprint in said
    assert (plan.name, plan.period, mode(out)) == ("people", "2026-11", 0o644)
    handed = json.loads(pldp("plan", spec, "--json").out)
    assert plan.document["release_plan"] == handed["plan_sha256"], "the hash that the release will publish"
    message = Person(plan, Memory()).answer({"job": "nurse", "sex": "male"}, "low")
    assert isinstance(check_message(plan, message), Accepted)
    assert "PRIVATE" not in out.read_text()


def test_the_same_spec_twice_is_two_plans_and_one_release(tmp_path: Path, pldp: Pldp, key: tuple[Path, str]) -> None:
    """Another period is another document; the release behind it is the same."""
    spec = write_spec(tmp_path, **SENT)
    plans = []
    for period in ("2026-11", "2026-12"):
        pldp("collect", "plan", spec, "--key", key[0], "--out", tmp_path / period, "--period", period)
        plans.append(read_plan((tmp_path / period).read_bytes(), key[1]))
    assert plans[0].sha256 != plans[1].sha256
    assert plans[0].document["release_plan"] == plans[1].document["release_plan"]


def test_nothing_that_is_there_is_written_over(tmp_path: Path, pldp: Pldp, key: tuple[Path, str]) -> None:
    before = key[0].read_bytes()
    failed = pldp("collect", "keys", key[0])
    assert failed.code == 2
    assert "is there already" in failed.err
    assert key[0].read_bytes() == before
    (tmp_path / "plan.signed").write_text("answered by many")
    failed = pldp("collect", "plan", write_spec(tmp_path, **SENT), "--key", key[0], "--out", tmp_path / "plan.signed")
    assert failed.code == 2
    assert "people may have answered it" in failed.err
    assert (tmp_path / "plan.signed").read_text() == "answered by many"


def test_a_plan_of_raw_rows_is_not_for_clients(tmp_path: Path, pldp: Pldp, key: tuple[Path, str]) -> None:
    failed = pldp("collect", "plan", write_spec(tmp_path), "--key", key[0], "--out", tmp_path / "plan.signed")
    assert failed.code == 2
    assert "source must be what clients send" in failed.err
    assert "Set source.inbox, or source.reports." in failed.err
    assert not (tmp_path / "plan.signed").exists()


def test_a_key_that_others_may_read_or_that_is_none_signs_nothing(tmp_path: Path, pldp: Pldp) -> None:
    spec, out, path = write_spec(tmp_path, **SENT), tmp_path / "plan.signed", tmp_path / "key"

    def refused() -> str:
        failed = pldp("collect", "plan", spec, "--key", path, "--out", out)
        assert failed.code == 2
        assert not out.exists()
        return failed.err

    assert "cannot be read" in refused()
    path.write_text("no key")
    path.chmod(0o600)
    assert "holds no Ed25519 key" in refused()
    other = generate_private_key(public_exponent=65537, key_size=2048)
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert "holds no Ed25519 key" in refused()
    own = Ed25519PrivateKey.generate()
    path.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o644)
    assert "others may read" in refused()
    path.chmod(0o600)
    public = own.public_key().public_bytes_raw()
    body = json.dumps({"any": "bytes"}).encode()
    assert sign_plan(body, path).endswith(body)
    assert pldp("collect", "plan", spec, "--key", path, "--out", out).code == 0
    assert read_plan(out.read_bytes(), hashlib.sha256(public).hexdigest()).name == "people"


@pytest.mark.parametrize("content", [b"name: people\n", b"", b"pldp plan v1 zz\n{}"])
def test_a_file_that_nobody_signed_is_no_plan(tmp_path: Path, pldp: Pldp, content: bytes) -> None:
    path = tmp_path / "people.yaml"
    path.write_bytes(content)
    said = pldp("collect", "serve", path, "--home", tmp_path / "inbox")
    assert said.code == 2
    assert "people.yaml: is no signed plan that can be answered" in said.err.replace("\n", " ")
    assert "index" not in said.err
    assert not (tmp_path / "inbox").exists()
