"""Maps and drawings in a real Chromium: they fit the window, and every cell of a map has its colour."""

from __future__ import annotations

from pathlib import Path

import pytest

import paramcount as pc
from tests.browser.chromium import Browser, find_chromium

pytestmark = [pytest.mark.browser, pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")]

SVG = "document.querySelector('svg')"
PAGE = "<!doctype html><meta name=viewport content='width=device-width'><body style='margin:0'>"


def test_a_map_and_a_drawing_fit_the_page_that_contains_them(browser: Browser, tmp_path: Path) -> None:
    pages = {
        "map.html": PAGE + pc.draw_map("deepseek-v3").svg(),
        "layer.html": PAGE + pc.draw("deepseek-v3", layer=0).svg(),
        "drawing.html": pc.draw("llama-3.1-8b").html(),
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        for width in (1280, 800, 360):
            browser.open(tmp_path / name, width=width)
            assert browser.complaints() == []
            assert browser.value("document.documentElement.scrollWidth") == width, name
            box = browser.value(
                "(box => [box.width, box.height])(document.querySelector('svg').getBoundingClientRect())"
            )
            view = browser.value(f"{SVG}.getAttribute('viewBox')").split()
            _, _, natural, height = map(float, view)
            assert box[0] == pytest.approx(min(natural, width), abs=1), name
            assert box[1] / box[0] == pytest.approx(height / natural, rel=0.01), name
    wide = "document.querySelector('.wide').scrollWidth"
    assert browser.value(wide) == 360
    browser.value("document.querySelector('.zoom label').click()")  # to its actual size, in which it scrolls
    assert browser.value(wide) > 1300
    assert browser.value("document.documentElement.scrollWidth") == 360


def test_the_cells_of_experts_are_painted(browser: Browser, tmp_path: Path) -> None:
    """What <use> repeats has the colours of the original."""
    path = tmp_path / "map.svg"
    path.write_text(pc.draw_map("mixtral-8x7b").svg(), encoding="utf-8")
    browser.open(path)
    style = "getComputedStyle(document.querySelector('defs {}'))"
    assert browser.value(style.format(".grid") + ".stroke") == "rgb(255, 255, 255)"
    uses = "document.querySelector('use')"
    assert browser.value(f"{uses}.getBoundingClientRect().width") > 10
    attributes = "[...document.querySelectorAll('defs path')].every(path => path.hasAttribute('fill'))"
    assert browser.value(attributes) is True
