"""Root in somebody else's inbox: a process of that user's does the work.

Whoever runs the collector may put a link where root is about to write, and race it between a look and a write; root's
process therefore touches nothing there. The other one starts as root, as that user may not be able to read this Python,
loads what it needs and becomes that user before it looks at the inbox. It has none of root's environment.

    python -m pldp.tasks.collector.owner UID GID close FOLDER SLOT < plan.signed
    python -m pldp.tasks.collector.owner UID GID forget SLOT_FOLDER RELEASE
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pldp.client.plan import Plan, parse_plan
from pldp.errors import HomeError, Outcome, Problem
from pldp.tasks.collector.boxes import width
from pldp.tasks.collector.closing import close_slot, delete_slot
from pldp.tasks.collector.store import Message, Store, database
from pldp.tasks.inbox import printable

_PASSED = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
"""Of the environment, which may hold passwords."""


def close_as_owner(folder: Path, slot: str, envelope: bytes) -> Path:
    """As `close_slot`, by a signed plan that is known to be good."""
    if not _is_foreign(folder):
        return close_slot(folder, slot, parse_plan(envelope.partition(b"\n")[2]))
    _ask(folder, envelope, "close", str(folder), slot)
    return folder / "closed" / slot


def forget_as_owner(folder: Path, slot: Path, release_id: str) -> None:
    """As `delete_slot`, of a slot in this inbox."""
    if _is_foreign(folder):
        _ask(folder, b"", "forget", str(slot), release_id)
    else:
        delete_slot(slot, release_id)


def _is_foreign(folder: Path) -> bool:
    return os.geteuid() == 0 and folder.stat().st_uid != 0


def _ask(folder: Path, content: bytes, *words: str) -> None:
    user = folder.stat()
    done = subprocess.run(  # noqa: S603 — this interpreter, and words of ours
        [sys.executable, "-P", "-s", "-m", "pldp.tasks.collector.owner", str(user.st_uid), str(user.st_gid), *words],
        input=content,
        capture_output=True,
        cwd="/",
        env={name: os.environ[name] for name in _PASSED if name in os.environ},
        umask=0o077,
        check=False,
    )
    if done.returncode == 0:
        return
    try:
        answer = json.loads(done.stdout)
        problems = [
            Problem.at(str(one["rule"]), file=one["file"], remedy=str(one["remedy"])) for one in answer["problems"]
        ]
        outcome = Outcome[answer["outcome"].upper()]
    except (ValueError, KeyError, TypeError, AttributeError):
        rule, outcome = "cannot be worked on as the user whose it is", Outcome.NOTHING_PUBLISHED
        remedy = "Run the same command as that user, who then needs a home to release to."
        problems = [Problem(rule, printable(folder), remedy=remedy)]
    raise HomeError.of(problems, outcome)


def _rehearse(plan: Plan | None) -> None:
    """The same work in a folder of root's own, with a message of noughts: all that is loaded late is loaded then, for
    the other user may not read it."""
    with TemporaryDirectory(prefix="pldp-") as name:
        folder = Path(name)
        slot = folder / "slot"
        (slot / "box").mkdir(parents=True)
        if plan is not None:
            boxes = {box for one in plan.questions.values() for choice in one.choices.values() for box in choice.boxes}
            rows = [[box.path, [0] * sum(width(kind) for _, kind in box.columns)] for box in boxes]
            with Store(folder, database(folder, 0)) as store:
                store.put([Message(bytes(16), json.dumps(rows).encode())])
            slot = close_slot(folder, "slot", plan)
        delete_slot(slot, "rehearsal")


def _main(user: str, group: str, work: str, *words: str) -> int:
    body = sys.stdin.buffer.read().partition(b"\n")[2]
    plan = parse_plan(body) if work == "close" else None
    _rehearse(plan)
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
    try:
        if plan is not None:
            close_slot(Path(words[0]), words[1], plan)
        else:
            delete_slot(Path(words[0]), words[1])
    except HomeError as error:
        print(json.dumps(error.as_json()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
