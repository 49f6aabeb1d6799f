"""The page of `paramcount explore` in a browser, as people use it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

import paramcount as pc
from paramcount.drawing.colours import measure_luminance
from paramcount.drawing.pictures import draw_body
from paramcount.explore import build_page
from paramcount.explore.drawings import CONTEXT, trace_decoding
from paramcount.tracing.run import choose_length
from tests.browser.chromium import Browser
from tests.browser.exploring import (
    AXE,
    find_violations,
    go,
    list_wide,
    open_page,
    press,
    press_at_once,
    wait,
    wait_until,
)

pytestmark = pytest.mark.browser
FEW = ["gpt2-small", "deepseek-v3", "gemma-3-27b", "t5-small", "mamba-130m", "qwen2-vl-2b"]
ADDRESSES = {
    "#": "start", "#start": "start", "#model/deepseek-v3": "model", "#model/t5-small": "model",
    "#browse": "browse", "#browse?q=deep&sort=-total&columns=name,total,cache": "browse",
    "#compare/gpt2-small,deepseek-v3,mamba-130m": "compare", "#fit/deepseek-v3": "fit",
    "#fit/deepseek-v3?n=8&users=4": "fit", "#fit/gpt2-small?gpu=h1000&n=5&context=2000": "fit",
    "#compare/gpt2-small,deepseek-v3?context=x": "compare",
    "#change/deepseek-v3?n_layers=70&context=100000": "change", "#change/gpt2-small?n_heads=7": "change",
    "#change/gemma-3-27b": "change", "#inside/deepseek-v3": "inside", "#inside/t5-small?at=decoder": "inside",
    "#run": "run", "#run/tiny-mixtral?text=paramcount&off=0.1,1.e3&step=25": "run",
    "#run/tiny-gpt2,tiny-mixtral,tiny-mamba?text=paramcount&at=13": "run",
    "#inside/gpt3-small": "missing", "#modle/gpt2": "missing", "#nothing/%E0%A4%A?x": "missing",
}  # fmt: skip


def test_a_page_is_small(explored: Path) -> None:
    assert explored.stat().st_size < 500_000 + 1_000_000  # with the weights of the tiny models
    assert len(pc.explore_page().encode()) < 5_000_000  # of the whole zoo


@pytest.mark.parametrize("width", [360, 800, 1280, 2560])
def test_every_view_fits_its_screen_and_asks_for_nothing(browser: Browser, explored: Path, width: int) -> None:
    open_page(browser, explored, width=width)
    for address, view in ADDRESSES.items():
        go(browser, address, view)
        assert list_wide(browser, ".scroll, .sheet, svg, .hidden, datalist") == [], address
        assert browser.value("document.documentElement.scrollWidth") == width, address
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm ci in paramcount/explore")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_violation(browser: Browser, explored: Path, dark: bool) -> None:
    open_page(browser, explored, dark=dark)
    for address, view in ADDRESSES.items():
        go(browser, address, view)
        rules = ("color-contrast", "link-in-text-block") if dark else ()  # the others do not depend on colours
        assert (address, find_violations(browser, rules=rules)) == (address, [])


MISSING = {
    "#inside/gpt3-small": ("This page has no model gpt3-small.", {"#inside/gpt2-small"}),
    "#compare/gpt2-small,deepseek-v4": ("This page has no model deepseek-v4.", {"#compare/gpt2-small,deepseek-v3"}),
    "#modle/gpt2": ("This page has no view modle.", {"#model/gpt2"}),
    "#deepseek-v3": ("This page has no view deepseek-v3.", {"#model/deepseek-v3"}),
    "#zzzzzzzzzzz": ("This page has no view zzzzzzzzzzz.", set()),
}


def test_an_address_that_the_page_does_not_have_says_so_with_the_nearest_ones(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    for address, (sentence, links) in MISSING.items():
        go(browser, address, "missing")
        text = browser.value("document.querySelector('main').innerText").replace("“", "").replace("”", "")
        assert sentence in text
        hashes = "[...document.querySelectorAll('main a')].filter((a) => a.offsetParent).map((a) => a.hash)"
        assert set(browser.value(hashes)) - {"#start", "#browse"} == links
        assert browser.value("document.title") == "Not found · paramcount"


def test_names_and_notes_are_inert(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>${alert(3)}{{alert(4)}}"
    model = dataclasses.replace(pc.load("gpt2-small"), id=evil, name=evil)
    path = tmp_path / "evil.html"
    path.write_text(build_page([model]), encoding="utf-8")
    open_page(browser, path)
    for view in ("browse", "model/", "compare/", "change/", "inside/"):
        go(browser, f"#{view}{quote(evil) if view.endswith('/') else ''}")
        assert evil in browser.value("document.body.textContent"), view
    assert browser.value("document.querySelectorAll('main img, main script').length") == 0
    assert browser.complaints() == []


def test_without_scripts_the_page_is_a_table(browser: Browser, explored: Path) -> None:
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(explored)
        text = browser.ask("DOM.getOuterHTML", nodeId=browser.ask("DOM.getDocument", depth=-1)["root"]["nodeId"])
        table = text["outerHTML"].partition("<noscript>")[2].partition("</noscript>")[0]
        assert "<td>671,026,404,352</td>" in table.replace("&lt;", "<").replace("&gt;", ">")
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)


def test_the_keyboard_reaches_every_control(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    for address in ("#browse", "#change/gpt2-small", "#inside/gpt2-small"):
        go(browser, address)
        browser.value("document.activeElement.blur(); window.reached = new Set(); 1")
        controls = "document.querySelectorAll('a[href], button:not(:disabled), input, select, summary, [tabindex]')"
        visible = f"[...{controls}].filter((node) => node.checkVisibility() && node.tabIndex >= 0)"
        for _ in range(browser.value(f"{visible}.length") + 5):
            press_at_once(browser, "Tab")
            browser.value("reached.add(document.activeElement); 1")
        missed = browser.value(
            f"{visible}.filter((node) => !reached.has(node)).map((node) => node.outerHTML.slice(0, 100))"
        )
        assert (address, missed) == (address, [])


STEP = "[...document.querySelectorAll('.drawing [role=button]')].find((step) => step.ariaLabel.startsWith({}))"
DETAILS = "document.querySelector('.details').innerText"


def test_a_step_of_the_drawing_shows_its_shapes_and_its_sentence(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    go(browser, "#inside/gpt2-small")
    browser.value(
        f"{STEP.format(json.dumps('attention: keys'))}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }})); 1"
    )
    wait(browser)
    details = browser.value(DETAILS)
    assert "Takes the keys out of the q, k and v." in details
    assert "Computes a key for each token and KV head: what this token offers to others." in details
    assert "Why: Heads may share keys" in details
    (link,) = browser.value("[...document.querySelectorAll('.details a')].map(({ href }) => href)")
    assert link == "https://arxiv.org/abs/2305.13245"
    assert "1 × 12 × 64" in details
    pressed = "[...document.querySelectorAll('.drawing [aria-pressed=true]')].map((step) => step.ariaLabel)"
    assert browser.value(pressed) == ["attention: keys, 1 × 12 × 64"]
    browser.value(f"{STEP.format(json.dumps('MLP: up'))}.focus(); 1")
    press(browser, "Enter")
    details = browser.value(DETAILS)
    assert "Multiplies the output of norm by a weight matrix and adds a bias." in details
    assert f"up: 768 × 3,072 = {768 * 3072:,} parameters × 12 copies = {12 * 768 * 3072:,}" in details
    assert "h.{layer}.mlp.c_fc.weight" in details
    assert f"2 · {768 * 3072:,} · 12 layers = {24 * 768 * 3072:,}" in details
    browser.value(
        "[...document.querySelectorAll('.details button')].find((b) => b.innerText === 'Previous step').click()"
    )
    wait(browser)
    assert browser.value(pressed) == ["norm, 1 × 768"]
    assert browser.complaints() == []


VIEW = "document.querySelector('.drawing').getAttribute('viewBox').split(' ').map(Number)"


def test_a_step_is_in_the_address_and_arrows_go_from_step_to_step(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    go(browser, "#inside/gpt2-small?step=8")
    heading = "document.querySelector('.details h3').innerText.trim()"
    assert browser.value(heading) == "attention: keys"
    browser.value("document.querySelector('.drawing [tabindex=\"0\"]').focus(); 1")
    press(browser, "ArrowDown")
    assert browser.value(heading) != "attention: keys"
    assert browser.value("document.activeElement.getAttribute('aria-pressed')") == "true"
    wait_until(browser, "location.hash !== '#inside/gpt2-small?step=8'")
    press(browser, "Home")
    wait_until(browser, "location.hash === '#inside/gpt2-small?step=1'")
    assert browser.complaints() == []


def test_a_drawing_is_zoomed_and_moved_by_buttons_keys_and_wheel(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    go(browser, "#inside/gpt2-small")
    before = browser.value(VIEW)
    browser.value("document.querySelector('[aria-label=\"Zoom in\"]').click(); 1")
    wait(browser)
    near = browser.value(VIEW)
    assert near[2] == pytest.approx(before[2] / 1.3)
    browser.value("document.querySelector('.drawing [tabindex=\"0\"]').focus(); 1")
    press(browser, "-")
    assert browser.value(VIEW)[2] == pytest.approx(before[2])
    wheel = "document.querySelector('.sheet').dispatchEvent(new WheelEvent('wheel', {}))"
    assert browser.value(wheel.format("{ deltaY: 100, cancelable: true }")) is False  # the page does not scroll as well
    wait(browser)
    assert browser.value(VIEW)[1] == pytest.approx(
        before[1] + 100 * before[2] / browser.value("document.querySelector('.drawing').clientWidth")
    )
    assert browser.value(wheel.format("{ deltaY: -1e6, cancelable: true }")) is False
    wait(browser)
    assert browser.value(wheel.format("{ deltaY: -100, cancelable: true }")) is True  # at the edge it does
    press(browser, "0")
    width, height = pc_size(browser)
    assert browser.value(VIEW)[2] >= width
    assert browser.value(VIEW)[3] >= height


def pc_size(browser: Browser) -> list[float]:
    return list(browser.value("paramcount.data.byId.get('gpt2-small').drawing.size"))


@pytest.mark.parametrize("dark", [False, True])
def test_the_map_has_labels_that_people_read_in_colours_that_they_see(
    browser: Browser, explored: Path, dark: bool
) -> None:
    browser.open(explored, dark=dark)
    for id in FEW:
        go(browser, f"#inside/{id}")
        labels = browser.value("""[...document.querySelectorAll('.map .label')].map((label) =>
          [label.textContent, ...['rect', 'text'].map((name) => getComputedStyle(label.querySelector(name)).fill)])""")
        assert labels
        for text, ground, ink in labels:
            assert not re.search(r"_|\.weight|[{}]", text)
            light, deep = sorted((measure_luminance(read_colour(fill)) for fill in (ground, ink)), reverse=True)
            assert (light + 0.05) / (deep + 0.05) >= 4.3, (text, ground)  # white on the blue of embeddings
    titles = browser.value("[...document.querySelectorAll('.map .leaf title')].map((title) => title.textContent)")
    assert any(title.endswith(".weight") for title in titles)


def read_colour(fill: str) -> str:
    """The colour "rgb(1, 2, 3)" in hexadecimal."""
    return "#" + "".join(f"{int(n):02x}" for n in re.findall("[0-9]+", fill))


def test_enter_opens_a_group_of_the_map_and_escape_closes_it(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    go(browser, "#inside/gpt2-small")
    name = "ariaLabel.replace(/: [0-9,]+ parameters.*/, '')"
    groups = f"[...document.querySelectorAll('.map [tabindex]')].map((group) => group.{name})"
    top = browser.value(groups)
    assert {"token embedding", "layers × 12"} <= set(top)
    browser.value("document.querySelectorAll('.map [tabindex]')[0].focus(); 1")
    press(browser, "ArrowRight")
    focused = f"document.activeElement.{name}"
    assert browser.value(focused) != top[0]
    while browser.value(focused) != "layers × 12":
        press(browser, "ArrowDown")
    press(browser, "Enter")
    assert {"attention: q, k, v", "MLP"} <= set(browser.value(groups))
    wait_until(browser, "location.hash.startsWith('#inside/gpt2-small?at=')")
    press(browser, "Escape")
    assert browser.value(groups) == top
    assert browser.complaints() == []


def test_the_steps_are_where_the_drawing_of_python_has_them(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    for id in FEW:
        model = pc.load(id)
        go(browser, f"#inside/{id}")
        group = draw_body(trace_decoding(model, choose_length(model, CONTEXT)), id).group
        left, top, *_ = group.box
        found = browser.value("""[...document.querySelectorAll(".drawing [role=button]")].map((step) => {
          const { x, y, width, height } = step.getBBox();
          return [x, y, width, height];
        })""")
        margin = 12 - 4  # around the drawing, and of the area around a step
        expected = [[p.x - left + margin, p.y - top + margin, p.width + 8, p.height + 8] for p in group.places]
        assert len(found) == len(expected)
        for area, place in zip(found, expected):
            assert area == pytest.approx(place, abs=1), id


def test_an_arrow_key_moves_a_slider_and_the_address_follows(browser: Browser, explored: Path) -> None:
    open_page(browser, explored)
    go(browser, "#change/gpt2-small")
    browser.value("document.querySelector('[aria-label^=\"n_layers, slider\"]').focus(); 1")
    press(browser, "ArrowRight")
    n = int(browser.value("document.getElementById('size-n_layers').value"))
    assert n == 13
    wait_until(browser, "location.hash === '#change/gpt2-small?n_layers=13'")
    total = pc.count("gpt2-small", set={"n_layers": n}).total
    assert f"{total:,}" in browser.value("document.querySelector('.answer').textContent")
