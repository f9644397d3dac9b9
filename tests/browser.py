"""A real browser for the tests: headless Chromium, spoken to through a pipe, and no other library.

The protocol is Chromium's own (DevTools): messages are JSON objects that end in a zero byte.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-pipe",
]
PATIENCE = 60.0  # seconds


class Browser:
    """One tab. `events` holds all that the browser reported: console, errors, requests."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        (read_in, self._out), (self._in, write_out) = os.pipe(), os.pipe()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        # Chromium reads from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{read_in} 4>&{write_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "chromium", *command],
            pass_fds=(read_in, write_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_in), os.close(write_out)
        self._ids, self._buffer, self._session = itertools.count(1), b"", None
        self.events: list[dict[str, Any]] = []
        targets = self.send("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], end - time.monotonic())
            assert ready, "the browser does not answer"
            piece = os.read(self._in, 2**16)
            assert piece, "the browser has ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path) -> None:
        """Load a file and wait until its pictures are there."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._receive())

    def run(self, script: str) -> Any:
        """Return what a JavaScript expression gives."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key, as a keyboard does."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def look(self, *, dark: bool = False, width: int = 1100) -> None:
        """Set the colour scheme that the reader prefers, and the width of the window."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def screenshot(self, path: Path) -> None:
        """Save a picture of the whole page."""
        picture = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def requests(self) -> list[str]:
        """Return what the page loaded, apart from itself."""
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        urls = [e["params"]["request"]["url"] for e in sent if e["params"]["type"] != "Document"]
        return [url for url in urls if not url.startswith("data:")]

    def complaints(self) -> list[Any]:
        """Return what was written to the console, and errors."""
        names = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [e["params"] for e in self.events if e.get("method") in names]

    def close(self) -> None:
        os.close(self._out), os.close(self._in)
        self._process.terminate()
        self._process.wait(PATIENCE)
