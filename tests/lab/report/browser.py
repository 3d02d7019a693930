"""A headless Chromium driven over its DevTools pipe: JSON messages ended by a zero byte, no further package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium reads descriptor 3 and writes descriptor 4. Both are first moved out of the way of these numbers.
START = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(given), fcntl.F_DUPFD, 10) for given in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.close(reads)
os.close(writes)
os.execv(sys.argv[3], sys.argv[3:])
"""
LIMIT = 30.0  # seconds for one answer; a cold start on two busy cores takes ten


def find_browser() -> str | None:
    """The path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. ``requests``, ``errors`` collect what it asked the network for and what its console complained of."""

    def __init__(self, executable: str) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._next = 0
        self._scripts = True
        self._buffer = b""
        self._profile = tempfile.mkdtemp(prefix="gatedrnn-browser-")
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        flags = [
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
        ]
        flags += [
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium refuses its sandbox to root
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                START,
                str(theirs_in),
                str(theirs_out),
                executable,
                *flags,
                f"--user-data-dir={self._profile}",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        target = self.call("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        os.close(self._to)  # it ends when its pipe does
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(
        self, method: str, parameters: dict[str, Any] | None = None, session: str | None = "page"
    ) -> dict[str, Any]:
        """Send a command and return its result."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        number = self._next
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open a file, offline, in a window of this size."""
        self.requests.clear()
        self.errors.clear()
        self.call(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
        )
        self.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        self.call(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        self.call("Page.navigate", {"url": path.resolve().as_uri()})
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")
        self.settle()

    def scripts(self, allowed: bool) -> None:
        """Switch JavaScript on or off for pages opened from now on."""
        self._scripts = allowed
        self.call("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def wait(self, condition: str) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + LIMIT
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def settle(self) -> None:
        """Until two frames have been drawn: observers of sizes have run then. Without scripts there are none."""
        if self._scripts:
            self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def move(self, x: float, y: float) -> None:
        """The mouse, in pixels of the window."""
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, x: float, y: float) -> None:
        """A real click there."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def press(self, key: str) -> None:
        """A key by its name, such as "ArrowRight" or "Tab"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                {
                    "type": kind,
                    "key": key,
                    "code": key,
                    "windowsVirtualKeyCode": codes[key],
                    **(text if kind == "keyDown" else {}),
                },
            )

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """The page as a PNG."""
        image = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(image["data"]))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], LIMIT)[0]:
                raise TimeoutError("the browser does not answer")
            received = os.read(self._from, 1 << 20)
            if not received:
                raise RuntimeError("the browser has ended")
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        self._note(found.get("method", ""), found.get("params", {}))
        return found

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["entry"]))
