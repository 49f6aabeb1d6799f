"""The page to explore in a browser, with the whole zoo and with one model: first paint and the response of sliders."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

import paramcount as pc
from tests.browser.chromium import Browser, find_chromium, run_browser
from tests.browser.exploring import await_value, go, open_page

ROUNDS = 5
MOVES = 200
EMPTY = "<!doctype html><title>empty</title><p>empty"

# The time that each move of a slider takes until the page is laid out again, in milliseconds.
MOVE = f"""(async () => {{
  const slider = document.querySelector('[aria-label^="n_layers, slider"]');
  const times = [];
  for (let i = 0; i < {MOVES}; i++) {{
    const start = performance.now();
    slider.value = String(Number(slider.min) + (i % Number(slider.max)));
    slider.dispatchEvent(new Event("input", {{ bubbles: true }}));
    await new Promise((done) => setTimeout(done));
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }}
  return times.sort((a, b) => a - b)[Math.floor(0.95 * times.length)];
}})()"""


@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium")
def test_a_page_with_the_whole_zoo(tmp_path: Path) -> None:
    pages = {"empty": EMPTY, "one model": pc.explore_page(["llama-3.1-8b"]), "the zoo": pc.explore_page()}
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
    paints: dict[str, list[float]] = {name: [] for name in pages}
    moves: dict[str, list[float]] = {name: [] for name in pages if name != "empty"}
    with run_browser(tmp_path) as browser:
        for _ in range(ROUNDS):
            for name in pages:
                path = tmp_path / f"{name}.html"
                if name == "empty":
                    browser.open(path)
                else:
                    open_page(browser, path)
                    go(browser, "#change/llama-3.1-8b")
                    moves[name].append(await_value(browser, MOVE))
                    open_page(browser, path)
                paints[name].append(read_first_paint(browser))
    for name, times in paints.items():
        print(f"first paint, {name}: {statistics.median(times):.0f} ms")
    for name, times in moves.items():
        print(f"95th percentile of {MOVES} moves of a slider, {name}: {statistics.median(times):.1f} ms")


def read_first_paint(browser: Browser) -> float:
    """Milliseconds from the start of the navigation to the first contentful paint."""
    entry = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    return float(await_value(browser, f"new Promise((done) => setTimeout(() => done({entry} ?? 0), 200))"))
