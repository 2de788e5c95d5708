"""A real browser for tests: headless Chromium, spoken to over its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

PATIENCE = 60
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_QUIET = (
    "--headless",
    "--no-sandbox",  # containers run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-port=0",
)


class Page:
    """One tab. `requests` are the URLs it asked for, `complaints` what it wrote to the console or its log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = 0
        self.requests: list[str] = []
        self.bodies: list[str] = []
        """What it sent beside addresses."""
        self.complaints: list[str] = []
        self._loaded = False
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._connection.recv(timeout=PATIENCE))
        told = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
                if told["request"].get("hasPostData"):
                    self.bodies.append(told["request"].get("postData", "?"))
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(told))
            case "Log.entryAdded":
                self.complaints.append(told["entry"]["text"])
            case "Page.loadEventFired":
                self._loaded = True
        return message

    def open(self, path: Path) -> None:
        self.visit(path.as_uri())

    def visit(self, url: str) -> None:
        self.requests, self.bodies, self.complaints, self._loaded = [], [], [], False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._receive()

    def evaluate(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def look(self, *, width: int, height: int = 900, dark: bool = False, phone: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def press_tab(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def screenshot(self) -> bytes:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with a profile of its own, ended by its process id."""
    assert CHROMIUM is not None
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, *_QUIET, f"--user-data-dir={folder / 'profile'}", "about:blank"], stdout=log, stderr=log
        )
    try:
        with connect(_tab(folder / "profile" / "DevToolsActivePort", process), max_size=None, proxy=None) as connection:
            yield Page(connection)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _tab(written: Path, process: subprocess.Popen[bytes]) -> str:
    """The address of the first tab, once the browser has written down where it listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        lines = written.read_text().splitlines() if written.exists() else []
        if len(lines) == 2:
            root = f"ws://127.0.0.1:{lines[0]}"
            with connect(root + lines[1], max_size=None, proxy=None) as connection:
                connection.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
                while (answer := json.loads(connection.recv(timeout=PATIENCE))).get("id") != 1:
                    pass
            tabs = [target for target in answer["result"]["targetInfos"] if target["type"] == "page"]
            if tabs:
                return f"{root}/devtools/page/{tabs[0]['targetId']}"
        time.sleep(0.05)
    raise RuntimeError("the browser did not start")
