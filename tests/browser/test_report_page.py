"""The report in a real browser: `pytest -m browser tests/browser`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import paramcount.zoo as zoo
from paramcount.api import report
from paramcount.drawing.bars import plot_rows
from paramcount.drawing.report import render_page
from tests.browser.chromium import Browser
from tests.browser.exploring import list_wide, press_at_once
from tests.test_bars import hostile_row
from tests.test_report import MARKUP, fill_entry

pytestmark = pytest.mark.browser

SCREENS = [(360, False), (360, True), (800, False), (1280, False), (1280, True)]

# Every text with less contrast than 4.5 against what is painted behind it (WCAG 2.2, 1.4.3), pictures left out.
FAINT = """(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const c = parts(getComputedStyle(node).backgroundColor);
      if (c.length < 4 || c[3]) return c;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let text; text = walk.nextNode();) {
    const node = text.parentElement;
    if (!text.data.trim() || node.closest('svg') || !node.checkVisibility()) continue;
    const [a, b] = [light(parts(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(text.data.trim());
  }
  return found;
})()"""


# Tables and drawings that do not fit the screen.
CUT = """[...document.querySelectorAll('.scroll')].filter(node => node.scrollWidth > node.clientWidth + 1)
  .map(node => node.getAttribute('aria-label') + ' ' + node.scrollWidth + ' > ' + node.clientWidth)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports, and the bars alone."""
    folder = tmp_path_factory.mktemp("pages")
    evil = zoo.make_model(zoo.parse_entry(fill_entry(MARKUP)))
    texts = {
        "one.html": report(["deepseek-v3"]),
        "several.html": report(["deepseek-v3", "llama-3.1-8b", "jamba-v0.1", "t5-small", "gpt-4"], estimates=True),
        "config.html": report([{"model_type": "qwen3_next"}]),
        "hostile.html": render_page([evil, replace(evil, id="b")]),
        "bars.svg": plot_rows([hostile_row(MARKUP), hostile_row("b")]).decode(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in texts}


def open_page(browser: Browser, path: Path, **screen: Any) -> Browser:
    """The page, which has asked for nothing but itself and has not complained."""
    browser.open(path, **screen)
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []
    return browser


@pytest.mark.parametrize("name", ["one.html", "several.html", "config.html", "hostile.html"])
@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_a_page_fits_every_screen_reads_well_on_it_and_asks_for_nothing(
    browser: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    open_page(browser, pages[name], width=width, dark=dark)
    assert browser.value("document.documentElement.scrollWidth") == width
    assert list_wide(browser, ".scroll, .skip") == []
    assert browser.value(FAINT) == []
    if name != "hostile.html":  # whose words are long
        assert browser.value(CUT) == []
    red, green, blue = browser.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red + green + blue < 120) is dark


def test_a_cell_on_a_phone_has_the_heading_of_its_column(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["one.html"], width=360)
    cell = "document.querySelector('tbody td')"
    assert browser.value(f"getComputedStyle({cell}, '::before').content") == '"parameters"'
    assert browser.value(f"{cell}.textContent") == "926,679,040"
    open_page(browser, pages["one.html"], width=1280)
    assert browser.value(f"getComputedStyle({cell}, '::before').content") == "none"


@pytest.mark.parametrize("width", [360, 800])
def test_a_drawing_in_its_actual_size_scrolls_in_place(browser: Browser, pages: dict[str, Path], width: int) -> None:
    open_page(browser, pages["several.html"], width=width)
    browser.value("document.querySelectorAll('.zoom label').forEach(label => label.click())")
    assert "Drawing to scale" in {" ".join(text.split()[:3]) for text in browser.value(CUT)}
    assert browser.value("document.documentElement.scrollWidth") == width
    styles = "[...new Set([...document.querySelectorAll('.scroll')].map(node => getComputedStyle(node).overflowX))]"
    assert browser.value(styles) == ["auto"]
    assert (
        browser.value(
            "Math.max(...[...document.querySelectorAll('.scroll')].map(node => node.getBoundingClientRect().right))"
        )
        <= width
    )
    heights = (
        "[...document.querySelectorAll('.drawing svg text.shape')].map(node => node.getBoundingClientRect().height)"
    )
    smallest = f"Math.min(...{heights})"
    assert browser.value(smallest) > 5


@pytest.mark.parametrize("name", ["hostile.html", "bars.svg"])
def test_hostile_names_do_nothing(browser: Browser, pages: dict[str, Path], name: str) -> None:
    open_page(browser, pages[name])
    assert browser.seen("Page.javascriptDialogOpening") == []
    assert browser.value("document.querySelectorAll('script, img, iframe, object, embed, link').length") == 0
    words = "[...document.querySelectorAll('h2, text')].map(node => node.textContent)"
    assert [text for text in browser.value(words) if "<script>" in text]


def test_even_a_script_in_the_page_would_not_run(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    html = pages["one.html"].read_text(encoding="utf-8")
    path = tmp_path / "injected.html"
    path.write_text(
        html.replace("<main", "<script>window.hit = 1</script><img src='https://example.org/x.png'><main"),
        encoding="utf-8",
    )
    browser.open(path)
    assert browser.value("window.hit") is None
    blocked = {event["requestId"]: event.get("blockedReason") for event in browser.seen("Network.loadingFailed")}
    assert [
        (event["request"]["url"], blocked.get(event["requestId"]))
        for event in browser.seen("Network.requestWillBeSent")
    ] == [
        (path.as_uri(), None),
        ("https://example.org/x.png", "csp"),
    ]


def test_the_keyboard_reaches_the_content_and_what_scrolls(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["one.html"], width=360)
    press_at_once(browser, "Tab")
    assert browser.value("document.activeElement.className") == "skip"
    box = browser.value("JSON.parse(JSON.stringify(document.activeElement.getBoundingClientRect()))")
    assert box["left"] >= 0 and box["top"] >= 0 and box["width"] > 40
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press_at_once(browser, "Enter")
    assert browser.value("document.activeElement.id") == "content"
    reached = set()
    for _ in range(40):
        press_at_once(browser, "Tab")
        reached.add(
            browser.value("document.activeElement.getAttribute('aria-label') || document.activeElement.tagName")
        )
    assert {
        "Parameters by component",
        "Drawing to scale",
        "The operations of the forward pass",
        "SUMMARY",
        "Published figures",
    } <= reached


def test_elements_have_names_for_screen_readers(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["several.html"])
    browser.ask("Accessibility.enable")
    nodes = [node for node in browser.ask("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
    named: dict[str, list[str]] = {}
    for node in nodes:
        named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("main", "banner", "contentinfo"):
        assert len(named[role]) == 1
    assert named["navigation"] == ["Contents"]
    for role in ("table", "article", "region", "image", "link"):
        assert all(named[role]), role
    assert named["group"].count("") == browser.value("document.querySelectorAll('details').length")
    assert len(named["image"]) == 1 + 4
    assert "rowheader" in named and "columnheader" in named


def test_on_paper_everything_is_open_and_nothing_is_cut_off(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["several.html"], dark=True)
    assert browser.value("document.querySelectorAll('details:not([open])').length") >= 4
    closed = "[...document.querySelectorAll('table')].filter(table => !table.checkVisibility()).length"
    assert browser.value(closed) >= 4
    sheets = [
        (float(width), float(height))
        for width, height in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", browser.printed())
    ]
    lying = [width > height for width, height in sheets]
    assert lying == sorted(lying, reverse=True)
    assert 1 <= sum(lying) <= 2 < len(lying)  # the comparison, and nothing else
    width, length = 688, 1016  # CSS pixels between the margins of A4
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=length, deviceScaleFactor=1, mobile=False)
    browser.ask(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "light"}]
    )
    assert browser.value(closed) == 0
    wide = (
        "[...document.querySelectorAll('{}')].filter(node => node.getBoundingClientRect().right > {})"
        ".map(node => node.textContent.slice(0, 80))"
    )
    assert browser.value(wide.format("article table, article svg, figure svg", width + 1)) == []
    assert (
        browser.value(
            "Math.max(...[...document.querySelectorAll('article svg')].map(svg => svg.getBoundingClientRect().height))"
        )
        < 0.85 * length
    )
    assert browser.value(wide.format(".compared table", length + 1)) == []
    assert browser.value("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
