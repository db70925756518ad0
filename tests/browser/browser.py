# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A headless Chromium, driven over a pipe in the protocol of its developer tools: no package is needed for that."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

#: Seconds to wait for an answer.
PATIENCE = 60

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
<dir>{fonts}</dir><dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir></fontconfig>
"""


def _above(handle: int) -> int:
    """The same file as a descriptor that is none of the protocol's own."""
    moved = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(handle)
    return moved


def program() -> Path:
    """The Chromium that the environment names. Without one the test is skipped, and with ``CI=true`` it fails."""
    import pytest

    named = os.environ.get("RECONCILE_CHROMIUM")
    if not named:
        lacking = "no Chromium: RECONCILE_CHROMIUM names none; the log of the part says why"
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(lacking)
        pytest.skip(lacking)
    return Path(named)


class Chromium:
    """The browser. ``program`` may lie in an unpacked package, with its libraries and fonts beside it."""

    def __init__(self, program: Path) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="browser-")
        home = Path(self._scratch.name)
        root = program.parents[3]
        fonts = home / "fonts.conf"
        fonts.write_text(FONTS.format(fonts=root / "usr/share/fonts", cache=home / "fonts"), encoding="utf-8")
        libraries = root / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, (libraries, libraries / "pulseaudio"))),
            "FONTCONFIG_FILE": str(fonts),
        }
        theirs_in, ours_out = map(_above, os.pipe())
        ours_in, theirs_out = map(_above, os.pipe())
        # The protocol's pipes are the file descriptors 3 and 4, which a shell can make of any others.
        command = [
            "bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "browser", str(program), "--headless",
            "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars=false",
            "--no-first-run", "--disable-background-networking", f"--user-data-dir={home / 'profile'}", "about:blank",
        ]  # fmt: skip
        self._log = (home / "log").open("wb")
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in = ours_out, ours_in
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._log.close()
        # It may still be writing there.
        shutil.rmtree(self._scratch.name, ignore_errors=True)
        self._scratch.cleanup()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        wanted = self._number
        for answer in self._messages(time.monotonic() + PATIENCE):
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)
        raise RuntimeError(f"{method}: no answer: {Path(self._log.name).read_text(errors='replace')[-2000:]}")

    def wait(self, method: str, session: str) -> None:
        """Wait for an event."""

        def found() -> bool:
            return any(event.get("method") == method and event.get("sessionId") == session for event in self.events)

        if not found():
            for event in self._messages(time.monotonic() + PATIENCE):
                self.events.append(event)
                if found():
                    return
            raise RuntimeError(f"{method} did not happen")

    def _messages(self, until: float) -> Iterator[dict[str, Any]]:
        while True:
            text, mark, rest = self._rest.partition(b"\0")
            if mark:
                self._rest = rest
                yield json.loads(text)
                continue
            ready, _w, _x = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                return
            self._rest += data


class Tab:
    """A page in a tab of its own, at a width, with or without scripts, in light or dark."""

    def __init__(
        self, browser: Chromium, path: Path, *, width: int = 1600, height: int = 900, dark: bool = False,
        scripts: bool = True, touch: bool = False, scrollbars: bool = True,
    ) -> None:  # fmt: skip
        self._browser = browser
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Emulation.setScrollbarsHidden", hidden=not scrollbars)
        self.visit(path)

    def visit(self, path: Path) -> None:
        """Load a file, and wait until it is there. What was told of the page before is forgotten."""
        self._browser.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self._browser.wait("Page.loadEventFired", self._session)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def ask(self, expression: str) -> Any:
        """What an expression of JavaScript gives, as JSON has it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=modifiers
            )

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def complaints(self) -> list[str]:
        """What the console says."""
        self.ask("1")  # so that everything has come that was on the way
        told = []
        for event in self._events():
            if event["method"] == "Log.entryAdded":
                told.append(event["params"]["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                told.append(str(event["params"]["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                told.append(str(event["params"]["exceptionDetails"]))
        return told

    def requests(self) -> list[str]:
        """What the page asked for, itself included."""
        self.ask("1")
        return [
            event["params"]["request"]["url"]
            for event in self._events()
            if event["method"] == "Network.requestWillBeSent"
        ]

    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is to be seen as PNG, or the whole page."""
        options: dict[str, Any] = {"captureBeyondViewport": True} if whole else {}
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])
