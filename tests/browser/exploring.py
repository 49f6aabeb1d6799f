"""How tests use the page of `paramcount explore` in a browser."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import paramcount as pc
from tests.browser.chromium import Browser

MODELS = (
    "gpt2-small", "deepseek-v3", "gemma-3-27b", "t5-small", "mamba-130m", "qwen2-vl-2b", "qwen3-8b", "llama-3.1-8b",
    "qwen2-7b", "gpt-oss-20b",
)  # fmt: skip
LONGEST_WAIT = 30  # seconds
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 10, 1))))"
CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "Home": 36, "ArrowRight": 39, "ArrowDown": 40}
AXE = Path(pc.__file__).parent / "explore" / "node_modules" / "axe-core" / "axe.min.js"


def open_page(browser: Browser, path: Path, **options: Any) -> None:
    """Open the page, and wait until it has its data."""
    browser.open(path, **options)
    wait_until(browser, "!!window.paramcount")


def go(browser: Browser, address: str, view: str = "") -> None:
    """Follow an address in the page, and wait until its view is shown."""
    browser.value(f"location.hash = {json.dumps(address)}")
    view = view or address[1:].partition("/")[0].partition("?")[0]
    wait_until(browser, f"document.querySelector('main').dataset.view === {json.dumps(view)}")
    wait_until(browser, "!document.querySelector('main .waiting')")
    wait(browser)


def wait(browser: Browser) -> None:
    """Wait until what has changed is shown."""
    await_value(browser, PAINTED)


def wait_until(browser: Browser, condition: str) -> None:
    """Wait until something is true of the page."""
    deadline = time.monotonic() + LONGEST_WAIT
    while not browser.value(f"!!({condition})"):
        assert time.monotonic() < deadline, (condition, browser.complaints())
        time.sleep(0.01)


def await_value(browser: Browser, promise: str) -> Any:
    """What a promise resolves to."""
    answer = browser.ask("Runtime.evaluate", expression=promise, awaitPromise=True, returnByValue=True)
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


def press(browser: Browser, key: str) -> None:
    """Press a key, and wait until what it has changed is shown."""
    press_at_once(browser, key)
    wait(browser)


def press_at_once(browser: Browser, key: str) -> None:
    code = CODES.get(key, ord(key[0]))
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)


def list_wide(browser: Browser, scrolling: str) -> Any:
    """What stands out to the right of the screen, unless it is inside of something that scrolls or is out of sight."""
    return browser.value(f"""[...document.body.querySelectorAll("*")]
      .filter((node) => !node.closest({json.dumps(scrolling)}))
      .filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5)
      .map((node) => node.outerHTML.slice(0, 120))""")


def find_violations(browser: Browser, *, rules: tuple[str, ...] = ()) -> Any:
    """What axe-core finds wrong on the page that is shown: [rule, some of the elements]; by default of all rules."""
    if not browser.value("!!window.axe"):
        browser.value(AXE.read_text(encoding="utf-8") + ";1")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = await_value(
        browser,
        f"""axe.run(document, {json.dumps(options)}).then(({{ violations }}) => JSON.stringify(violations.map(
          ({{ id, nodes }}) => [id, nodes.slice(0, 3).map(({{ html }}) => html.slice(0, 200))])))""",
    )
    return json.loads(found)
