"""An inbox around the collector: its signed plan, its tokens, and what is released of it."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime
from pathlib import Path

from pldp.client.message import write_message
from pldp.client.plan import Plan, read_plan
from pldp.client.questions import Choice, Refused
from pldp.errors import Outcome, SourceError
from pldp.tasks.collector.boxes import width
from pldp.tasks.collector.owner import close_as_owner
from pldp.tasks.collector.store import Store, database, opened, token_hash
from pldp.tasks.inbox import printable
from pldp.tasks.specfile import SpecFile, resolve

PLAN = "plan.signed"
_ALWAYS = datetime.min.replace(tzinfo=UTC)


def signed_plan(path: Path, now: datetime | None = None) -> tuple[Plan, bytes]:
    """A plan as its own key signed it, not expired now. Whose key that is, people check by its fingerprint."""
    try:
        envelope = path.read_bytes()
        return read_plan(envelope, _own_fingerprint(envelope), now), envelope
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise SourceError(rule, Outcome.NOTHING_COLLECTED, file=printable(path)) from None
    except (Refused, ValueError) as error:
        raise SourceError(
            f"is no signed plan that can be answered ({error})",
            Outcome.NOTHING_COLLECTED,
            file=printable(path),
            remedy="`pldp collect plan` writes one.",
        ) from None


def _own_fingerprint(envelope: bytes) -> str:
    words = envelope.split(b"\n", 1)[0].split(b" ")
    if len(words) < 4:
        raise ValueError("its first line names no key and signature")
    return hashlib.sha256(bytes.fromhex(words[3].decode())).hexdigest()


_LONGEST = {"u1": "255", "u2": "65535", "u4": str(2**32 - 1), "u8": str(2**64 - 1), "i8": str(-(2**63))}


def longest_message(plan: Plan) -> int:
    """Bytes of a message on all questions, with a token, in which no number could be longer."""
    reports = {
        name: max(map(_longest_report, question.choices.values()), key=lambda report: len(str(report)))
        for name, question in plan.questions.items()
    }
    return len(write_message(plan, "0" * 32, reports, "0" * 128))


def _longest_report(choice: Choice) -> dict[str, object]:
    height, _ = choice.channel.shape
    boxes = choice.boxes if len(choice.boxes) > 1 else choice.boxes * height
    rows = [[_LONGEST[kind[:2]] for _, kind in box.columns for _ in range(width(kind))] for box in boxes]
    return {"choice": choice.name, "rows": rows}


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
    plan, envelope = signed_plan(folder / PLAN, _ALWAYS)  # expiry ends answering, and nothing else
    if plan.document["release_plan"] != file.plan.sha256:
        raise SourceError(
            f"people answered the plan {plan.document['release_plan'][:12]}, and the spec's is {file.plan.sha256[:12]}",
            Outcome.NOTHING_CLOSED,
            file=printable(folder),
            remedy="Release by the spec that the plan was made from.",
        )
    sheets = {sheet.path for _, sheet in file.plan.sheets}
    choices = [choice for question in plan.questions.values() for choice in question.choices.values()]
    if any(box.path not in sheets for choice in choices for box in choice.boxes):
        # Whoever may write to the inbox could name another folder of ours for reports to be written to.
        raise SourceError(
            "its plan has reports collected where the spec's plan has none",
            Outcome.NOTHING_CLOSED,
            file=printable(folder / PLAN),
            remedy="It is not what `pldp collect plan` wrote of this spec: find out who exchanged it.",
        )
    return close_as_owner(folder, slot, envelope)
