# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A headless Chromium, spoken to through a pipe in the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

#: Seconds for one answer, or for a page to load.
PATIENCE = 60


class Browser:
    """One browser with one tab. What the page asked of the network and what went wrong in it is kept until `visit`."""

    def __init__(self, program: str, libraries: str = "") -> None:
        self._home = tempfile.TemporaryDirectory()
        theirs, self._out = os.pipe()
        self._in, theirs_too = os.pipe()
        # The browser reads from 3 and writes to 4. It is given nothing that it could fetch from.
        command = [
            *("bash", "-c", f'exec "$@" 3<&{theirs} 4>&{theirs_too}', "browser", program),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
            *(
                "--hide-scrollbars",
                "--disable-background-networking",
                "--no-first-run",
                "--allow-file-access-from-files",
            ),
            *(f"--user-data-dir={self._home.name}", "about:blank"),
        ]
        environment = {**os.environ, "HOME": self._home.name}
        if libraries:
            environment["LD_LIBRARY_PATH"] = libraries
        self._process = subprocess.Popen(
            command,
            pass_fds=(theirs, theirs_too),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(theirs_too)
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        self._home.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + PATIENCE
        while True:
            answer = self._message(limit)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _message(self, limit: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _writable, _failed = select.select([self._in], [], [], max(0, limit - time.monotonic()))
            chunk = os.read(self._in, 1 << 16) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer")
            self._buffer += chunk
        text, _end, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self._events.append(message)
        return message

    def visit(self, page: Path, width: int, *, dark: bool = False) -> None:
        """Load a file in a window of that width, and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        limit = time.monotonic() + PATIENCE
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._message(limit)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def trouble(self) -> list[str]:
        """What the page did since `visit` that no page should: errors, and requests that leave the machine."""
        found = []
        for event in self._events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:2000])
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent":
                address = parameters["request"]["url"]
                if not address.startswith(("file:", "data:", "about:", "blob:")):
                    found.append(f"asks for {address}")
        return found

    def screenshot(self, file: Path) -> None:
        """The whole page, not only what the window shows."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=False)["data"]
        file.write_bytes(base64.b64decode(data))
