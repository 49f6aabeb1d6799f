"""Maps and drawings in a real Chromium: they fit the window, and every cell of a map has its colour."""

from __future__ import annotations

from pathlib import Path

import pytest

import paramcount as pc
from tests.browser.chromium import Browser, find_chromium

pytestmark = [pytest.mark.browser, pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")]

PAGE = "<!doctype html><meta name=viewport content='width=device-width'><body style='margin:0'>"


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_a_map_and_a_drawing_fit_the_page_that_contains_them(browser: Browser, tmp_path: Path, width: int) -> None:
    pages = {
        "map.html": PAGE + pc.draw_map("deepseek-v3").svg(),
        "layer.html": PAGE + pc.draw("deepseek-v3", layer=0).svg(),
        "drawing.html": pc.draw("llama-3.1-8b").html(),
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        browser.open(tmp_path / name, width=width)
        assert browser.complaints() == []
        assert browser.value("document.documentElement.scrollWidth") == width, name
        sides = browser.value("(box => [box.width, box.height])(document.querySelector('svg').getBoundingClientRect())")
        _, _, *natural = map(float, browser.value("document.querySelector('svg').getAttribute('viewBox')").split())
        assert sides[0] == pytest.approx(min(natural[0], width), abs=1), name
        assert sides[1] / sides[0] == pytest.approx(natural[1] / natural[0], rel=0.01), name


def test_a_drawing_in_its_actual_size_scrolls(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "drawing.html"
    path.write_text(pc.draw("llama-3.1-8b").html(), encoding="utf-8")
    browser.open(path, width=360)
    wide = "document.querySelector('.wide').scrollWidth"
    assert browser.value(wide) == 360
    browser.value("document.querySelector('.zoom label').click()")
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
