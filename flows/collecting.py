"""Running the collector: one process, loopback unless told otherwise, no access log."""

from __future__ import annotations

import hashlib
import os
import resource
import secrets
from datetime import UTC, datetime
from pathlib import Path

import uvicorn

from pldp.client.plan import Plan, read_plan
from pldp.client.questions import Refused
from pldp.errors import Outcome, SourceError
from pldp.flows.collector import Collector, application
from pldp.flows.collector_protocol import CONNECTIONS, GuardedProtocol
from pldp.flows.collector_writer import Limits
from pldp.tasks.collector.closing import close_slot
from pldp.tasks.collector.store import Store, database, opened, token_hash
from pldp.tasks.drafts import commit
from pldp.tasks.durable import make_folder
from pldp.tasks.inbox import printable
from pldp.tasks.specfile import SpecFile, resolve

PLAN = "plan.signed"
_FILES = 100
"""That the collector may have open beside its connections."""
_ALWAYS = datetime.min.replace(tzinfo=UTC)


def signed_plan(path: Path, now: datetime | None = None) -> tuple[Plan, bytes]:
    """A plan as its own key signed it, not expired now. Whose key that is, people check by its fingerprint."""
    try:
        envelope = path.read_bytes()
        return read_plan(envelope, _own_fingerprint(envelope), now), envelope
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise SourceError(rule, Outcome.NOTHING_COLLECTED, file=printable(path)) from None
    except (Refused, ValueError, IndexError) as error:
        raise SourceError(
            f"is no signed plan that can be answered ({error})",
            Outcome.NOTHING_COLLECTED,
            file=printable(path),
            remedy="`pldp collect plan` writes one.",
        ) from None


def _own_fingerprint(envelope: bytes) -> str:
    return hashlib.sha256(bytes.fromhex(envelope.split(b"\n", 1)[0].split(b" ")[3].decode())).hexdigest()


def serve(plan_path: Path, folder: Path, host: str, port: int, limits: Limits) -> None:
    """Take messages until the process is told to end."""
    os.umask(0o077)
    plan, envelope = signed_plan(plan_path)
    make_folder(folder)
    commit(folder / PLAN, envelope, mode=0o644)  # public, and read by whoever releases
    if (folder / PLAN).read_bytes() != envelope:
        raise SourceError(
            "holds messages to another plan, and a message answers one",
            Outcome.NOTHING_COLLECTED,
            file=printable(folder),
            remedy="Name another folder.",
        )
    _make_room()
    app = application(Collector(folder, plan, envelope, limits))
    uvicorn.run(
        app,
        host=host,
        port=port,
        http=GuardedProtocol,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=5,
        proxy_headers=False,
    )


def _make_room() -> None:
    """As many files as connections may need: whoever opens them all must not keep the inbox from being opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + _FILES if hard == resource.RLIM_INFINITY else min(CONNECTIONS + _FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def make_tokens(folder: Path, number: int) -> list[str]:
    """One-time tokens; only their hashes are stored. From now on every message to this inbox needs one."""
    tokens = [secrets.token_urlsafe(24) for _ in range(number)]
    try:
        store = Store(folder, database(folder, opened(folder)))
    except BlockingIOError:
        raise SourceError(
            "a collector has it open",
            Outcome.NOTHING_MADE,
            file=printable(folder),
            remedy="Stop it, make the tokens, and start it again.",
        ) from None
    with store:
        store.add_tokens(token_hash(token) for token in tokens)
    return tokens


def settled(file: SpecFile, slot: str) -> Path | None:
    """Of a spec whose source is an inbox: the folder of what came in until the slot; None of every other."""
    if file.spec.source.inbox is None:
        return None
    folder = resolve(file.path, file.spec.source.inbox)
    plan, _ = signed_plan(folder / PLAN, _ALWAYS)  # expiry ends answering, and nothing else
    if plan.document["release_plan"] != file.plan.sha256:
        raise SourceError(
            f"people answered the plan {plan.document['release_plan'][:12]}, and the spec's is {file.plan.sha256[:12]}",
            Outcome.NOTHING_CLOSED,
            file=printable(folder),
            remedy="Release by the spec that the plan was made from.",
        )
    return close_slot(folder, slot, plan)
