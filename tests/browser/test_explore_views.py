"""The start, the table of all models and the view of one model in a browser, as people use them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import paramcount as pc
from tests.browser.chromium import Browser
from tests.browser.exploring import MODELS, go, open_page, press, wait, wait_until

pytestmark = pytest.mark.browser


def type_text(browser: Browser, text: str) -> None:
    browser.ask("Input.insertText", text=text)
    wait(browser)


def test_a_name_and_enter_open_the_model(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    browser.value("document.querySelector('#search input').focus(); 1")
    type_text(browser, "Qwen/Qwen3-8B")
    press(browser, "Enter")
    wait_until(browser, "location.hash === '#model/qwen3-8b'")
    wait(browser)
    assert browser.value("document.querySelector('main h1').checkVisibility()") is False  # that of the start
    assert browser.value("document.querySelector('#app h1').innerText") == "Qwen3 8B"


def test_the_arrow_keys_choose_among_what_a_search_finds(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    browser.value("document.querySelector('#search input').focus(); 1")
    type_text(browser, "qwen")
    options = browser.value("[...document.querySelectorAll('#search [role=option]')].map((one) => one.innerText)")
    assert [text.partition(" (")[0].rsplit(" ", 1)[0] for text in options] == ["Qwen3 8B", "Qwen2-VL 2B", "Qwen2 7B"]
    press(browser, "ArrowDown")
    press(browser, "Enter")
    wait_until(browser, "location.hash === '#model/qwen2-vl-2b'")


def test_a_mistyped_name_finds_the_nearest_and_an_unknown_one_says_so(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    browser.value("document.querySelector('#search input').focus(); 1")
    type_text(browser, "depseek-v3")
    assert browser.value("document.querySelector('#search [role=option]').innerText").startswith("DeepSeek-V3")
    type_text(browser, "zzzzzzzzzzzz")
    assert browser.value("document.querySelector('#search .hint').innerText") == "No model has this name."


def test_the_newest_model_is_first_and_the_longest_context_below_a_size_is_found(
    browser: Browser, explored: Path
) -> None:
    open_page(browser, explored)
    names = "[...document.querySelectorAll('.models tbody th a')].map((link) => link.innerText)"
    go(browser, "#browse")
    dates = browser.value("[...document.querySelectorAll('.models tbody td:last-child')].map((cell) => cell.innerText)")
    assert [date for date in dates if date] == sorted((date for date in dates if date), reverse=True)
    go(browser, "#browse?to=8B&sort=-context")
    below = [id for id in MODELS if pc.count(id).total <= 8 * 10**9 and pc.load(id).context_length]
    longest = max(below, key=lambda id: pc.load(id).context_length or 0)
    assert browser.value(names)[0] == pc.load(longest).name


def test_a_copied_number_has_all_of_its_digits(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    copied = browser.value("""(() => {
      const number = [...document.querySelectorAll("#start [data-copy]")].find((one) => one.innerText === "8.03B");
      getSelection().selectAllChildren(number);
      const event = new ClipboardEvent("copy", { bubbles: true, cancelable: true, clipboardData: new DataTransfer() });
      number.dispatchEvent(event);
      return event.clipboardData.getData("text/plain");
    })()""")
    assert copied == "8030261248"


def test_the_theme_that_is_chosen_is_remembered(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert browser.value(paper) == "rgb(255, 255, 255)"
    browser.value("document.getElementById('theme').click(); document.getElementById('theme').click(); 1")
    assert browser.value(paper) == "rgb(15, 19, 24)"
    open_page(browser, explored)
    assert browser.value(paper) == "rgb(15, 19, 24)"
    assert browser.value("document.getElementById('theme').innerText") == "Theme: dark"
    browser.value("document.getElementById('theme').click(); 1")
    assert browser.value(paper) == "rgb(255, 255, 255)"


def test_a_model_says_how_large_it_is_and_why_others_say_685b_and_prints_on_two_pages(
    browser: Browser, explored: Path
) -> None:
    open_page(browser, explored)
    go(browser, "#model/deepseek-v3")
    text = browser.value("document.querySelector('#app').innerText")
    # "671B total parameters with 37B activated", "The total size of DeepSeek-V3 models on Hugging Face is 685B, which
    # includes 671B of the Main Model weights and 14B of the Multi-Token Prediction (MTP) Module weights." Its README.
    for expected in ("671B", "37.6B", "671,026,404,352", "685B", "MTP"):
        assert expected in text
    assert browser.value("document.querySelectorAll('#app .map rect.active').length") > 0
    links = browser.value("[...document.querySelectorAll('#app .actions a')].map((link) => link.hash)")
    assert links == [f"#{view}/deepseek-v3" for view in ("fit", "change", "inside", "compare")]
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", browser.printed())) <= 2


# Notes whether all data have been read when the article appears, the place it keeps for the map, and what moves.
WATCH = """
window.shifts = 0;
new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => (shifts += value)))
  .observe({ type: "layout-shift", buffered: true });
new MutationObserver(() => {
  const place = document.querySelector("#app .whole-map");
  if (place) window.first ??= { early: !window.paramcount, height: place.offsetHeight };
}).observe(document, { childList: true, subtree: true });
"""


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("address", ["", "#model/deepseek-v3"])
def test_an_article_is_there_before_its_map_and_nothing_moves_while_the_page_opens(
    browser: Browser, explored: Path, address: str, width: int
) -> None:
    browser.ask("Page.navigate", url="about:blank")
    script = browser.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    open_page(browser, explored, width=width, address=address)
    if address:
        wait_until(browser, "document.querySelector('#app .whole-map svg')")
    wait(browser)
    browser.ask("Page.removeScriptToEvaluateOnNewDocument", **script)
    assert browser.value("shifts") < 0.01
    if address:
        height = browser.value("document.querySelector('#app .whole-map').offsetHeight")
        assert browser.value("first") == {"early": True, "height": height}
