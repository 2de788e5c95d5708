"""Another user of the machine, who wants to run code as the operator. Runs as a script, with the standard library.

It watches command lines. A port that the operator is about to use, it takes, and answers there as Prefect's server
would: a run is over already, and its result is in a file that the squatter wrote. A port that is taken, and of which it
has a hint, it tries to share, and it asks the server there for runs without a password.
"""

from __future__ import annotations

import contextlib
import encodings.idna  # noqa: F401 — needed for an address, and not to be had as nobody
import json
import os
import re
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
NOBODY = 65534
NOW = datetime.now(UTC).isoformat()


class FakePrefect(BaseHTTPRequestHandler):
    """Says to everything what makes a client read the planted file."""

    planted = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if "csrf-token" in self.path:
            self._answer({}, 404)
        else:
            self._answer("3.8.8" if self.path.endswith("version") else True)

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        note(answered=self.path, password=self.headers.get("Authorization"))
        found: dict[str, Any] = {"id": str(uuid.uuid4()), "created": NOW, "updated": NOW, "name": "release"}
        if self.path.endswith("/flow_runs/"):
            wanted = json.loads(asked).get("state") or {"type": "PENDING"}
            found |= {"flow_id": str(uuid.uuid4()), "state": {"id": str(uuid.uuid4()), "timestamp": NOW, **wanted}}
        if self.path.endswith("/set_state"):
            result = {"storage_key": self.planted, "serializer": {"type": "pickle"}, "prefect_version": "3.8.8"}
            over = {"id": str(uuid.uuid4()), "type": "COMPLETED", "name": "Completed", "timestamp": NOW, "data": result}
            found = {"state": over, "status": "REJECT", "details": {"type": "reject_details", "reason": "done"}}
        self._answer(found)

    def _answer(self, content: object, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def note(**seen: object) -> None:
    with (Path(sys.argv[1]) / "seen.jsonl").open("a") as handle:
        handle.write(json.dumps(seen) + "\n")


def announced() -> set[int]:
    """Ports that command lines of the operator name: of whatever the process that started this one starts."""
    parents, words = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                pid = int(folder.name)
                parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                words[pid] = (folder / "cmdline").read_bytes().decode(errors="replace")
    found = set()
    for pid, line in words.items():
        above = pid
        while above not in (0, os.getppid()):
            above = parents.get(above, 0)
        if above:
            found |= {int(port) for port in re.findall(r"--port[\0=](\d+)", line)}
    return found


def hinted() -> tuple[int, int]:
    """A port and the process that has it, if somebody has told; others on this machine are none of our business."""
    path = Path(sys.argv[1]) / "hint"
    words = path.read_text().split() if path.exists() else []
    return (int(words[0]), int(words[1])) if len(words) == 2 else (0, 0)


def lives(process: int) -> bool:
    """A process that ends forgets its words before it closes its sockets."""
    try:
        return bool((Path("/proc") / str(process) / "cmdline").read_bytes())
    except OSError:
        return False


def take(port: int) -> bool:
    """Answer on a port, by any of the ways in which two may have one."""
    for host in (LOOPBACK, "0.0.0.0", "::"):  # noqa: S104 — the attack
        for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
            listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            try:
                for option in options:
                    listener.setsockopt(socket.SOL_SOCKET, option, 1)
                if ":" in host:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                listener.bind((host, port))
                listener.listen()
            except OSError:
                listener.close()
                continue
            server = HTTPServer((LOOPBACK, port), FakePrefect, bind_and_activate=False)
            server.socket.close()
            server.socket = listener
            threading.Thread(target=server.serve_forever, daemon=True).start()
            return True
    return False


def ask(port: int) -> int | None:
    """What the server says to whoever has no password; None where none answers."""
    request = urllib.request.Request(
        f"http://{LOOPBACK}:{port}/api/flow_runs/filter", b"{}", {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError):
        return None


def become_nobody() -> None:
    """For good. An interpreter in the operator's folder could not be started as somebody else."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def main() -> None:
    become_nobody()
    FakePrefect.planted = sys.argv[2]
    note(watching=True)
    taken: set[int] = set()
    told: set[tuple[int, int | None]] = set()
    while True:
        hint, process = hinted()
        for port in (announced() | {hint}) - taken - {0}:
            if take(port):
                taken.add(port)
                note(took=port, alive=lives(process or os.getppid()))
            elif port == hint and (port, status := ask(port)) not in told:
                told.add((port, status))
                note(asked=port, status=status)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
