"""Hand out: the signed collection plan of a spec, into a file that anybody may read."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pldp.client.plan import Plan, read_plan
from pldp.errors import Outcome, SpecError
from pldp.questions.collection import collection_plan
from pldp.tasks.durable import write_new
from pldp.tasks.signing import fingerprint, sign_plan
from pldp.tasks.specfile import SpecFile


def write_plan(
    file: SpecFile,
    key: Path,
    to: Path,
    *,
    period: str,
    issued: datetime,
    expires: datetime,
    adapted: bytes | None = None,
) -> Plan:
    """The plan as a client reads it back from the file. A file that is there is refused: its hash stays what it was."""
    if file.plan.perturbed_by != "clients":
        raise SpecError(
            "must be what clients send, as its plan is for them: the plan of a source.path is drawn by "
            "whoever holds the vault",
            Outcome.NOTHING_WRITTEN,
            file=file.path,
            field="source",
            remedy="Set source.inbox, or source.reports.",
        )
    file.refuse_release()
    try:
        body = collection_plan(file.plan, file.spec, period=period, issued=issued, expires=expires, adapted=adapted)
    except ValueError as error:
        raise SpecError.broken(error, Outcome.NOTHING_WRITTEN, file=file.path) from None
    envelope = sign_plan(body, key)
    plan = read_plan(envelope, fingerprint(key), issued)
    write_new(to, envelope, 0o644, Outcome.NOTHING_WRITTEN, ", and people may have answered it")
    return plan
