"""A headless Chromium, spoken to over a pipe in its own protocol: no driver, no port, nothing from the network."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds for one answer
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip


def find_chromium() -> str | None:
    """The program, where there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a running browser. `events` holds all that it told of unasked."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back, self.last, self.waiting = to, back, 0, b""
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Security"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, /, **params: Any) -> Any:
        """What the browser answers."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params} | (
            {"sessionId": self.session} if self.session else {}
        )
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def read(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.waiting:
            assert time.monotonic() < deadline, "the browser does not answer"
            piece = os.read(self.back, 1 << 20)
            assert piece, "the browser has ended"
            self.waiting += piece
        line, _, self.waiting = self.waiting.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def open(self, path: Path, *, width: int = 1280, dark: bool = False, address: str = "") -> None:
        """Show a file, at an address in it, as on a screen of this width."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media="", features=scheme)
        self.ask("Page.navigate", url=path.as_uri() + address)
        while not self.seen("Page.loadEventFired"):
            self.events.append(self.read())

    def seen(self, *methods: str) -> list[dict[str, Any]]:
        """What it has told of these kinds since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def value(self, expression: str) -> Any:
        """What JavaScript says of the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Everything on the console, and every error."""
        told = self.seen(
            "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"
        )
        return [json.dumps(event) for event in told]

    def requests(self) -> list[str]:
        """Every address it asked for."""
        return [event["request"]["url"] for event in self.seen("Network.requestWillBeSent")]

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])

    def screenshot(self) -> bytes:
        """All of the page as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"])


@contextmanager
def run_browser(home: Path) -> Iterator[Browser]:
    """A browser that begins in an empty directory and ends with the block."""
    program = find_chromium()
    assert program, "there is no Chromium"
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    # It reads from 3 and writes to 4; sh would not know descriptors of two digits.
    command = [
        "bash",
        "-c",
        f'exec "$@" 3<&{to_read} 4>&{back_write}',
        "bash",
        program,
        *FLAGS,
        f"--user-data-dir={home}",
        "about:blank",
    ]
    with (home / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            command, pass_fds=(to_read, back_write), stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr
        )
    os.close(to_read)
    os.close(back_write)
    try:
        yield Browser(to_write, back_read)
    finally:
        os.close(to_write)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(back_read)
