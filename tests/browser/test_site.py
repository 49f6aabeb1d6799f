"""The site in a browser: accessible, silent, still, within the screen, and its scripts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.explore.site import write_site
from paramcount.zoo import load_entry
from tests.browser.chromium import Browser
from tests.browser.exploring import AXE, await_value, find_violations, list_wide, wait_until

pytestmark = pytest.mark.browser
pytest.importorskip("markdown_it")
MODELS = ("gpt2-small", "qwen3-8b", "deepseek-v3", "deepseek-v2", "llama-3.1-8b", "mixtral-8x7b")
PAGES = ("index", "models/index", "models/deepseek-v3/index", "families/deepseek/index", "guides/terms/index",
         "guides/gallery/index", "404")  # fmt: skip
SHIFTS = """(async () => {
  await document.fonts.ready;
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  let sum = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((shift) => (sum += shift.value)))
    .observe({ type: "layout-shift", buffered: true });
  await new Promise((done) => setTimeout(done, 30));
  return sum;
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "site"
    write_site(str(place), list(map(load_entry, MODELS)))
    return place


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(360, False), (360, True), (768, False), (1280, False), (1280, True)])
def test_a_page_is_silent_fits_the_screen_and_does_not_move(
    browser: Browser, site: Path, page: str, width: int, *, dark: bool
) -> None:
    browser.open(site / f"{page}.html", width=width, dark=dark)
    assert await_value(browser, SHIFTS) == 0
    assert browser.complaints() == []
    assert list_wide(browser, ".scroll, .skip, .search ul, pre") == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests())
    assert browser.value("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm ci in paramcount/explore")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_no_violation(browser: Browser, site: Path, page: str, *, dark: bool) -> None:
    browser.open(site / f"{page}.html", dark=dark)
    assert find_violations(browser) == []


def test_the_search_finds_a_model_and_opens_its_page(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    browser.value("document.getElementById('search').focus()")
    wait_until(browser, "!!document.querySelector('script[src=\"models.js\"]')")
    browser.ask("Input.insertText", text="Deep seek v3")
    wait_until(browser, "!document.getElementById('found').hidden")
    assert browser.value("[...document.querySelectorAll('#found a')].map((link) => link.textContent)") == [
        "DeepSeek-V3671B"
    ]
    browser.value("document.addEventListener('click', (event) => { event.preventDefault(); "
                  "window.opened = event.target.closest('a')?.getAttribute('href'); }); 0")  # fmt: skip
    browser.value("document.querySelector('.search').requestSubmit()")
    assert browser.value("opened") == "models/deepseek-v3/"


def test_the_table_sorts_and_filters(browser: Browser, site: Path) -> None:
    browser.open(site / "models" / "index.html")
    names = "[...document.querySelectorAll('tbody tr:not([hidden]) th')].map((cell) => cell.textContent)"
    browser.value("document.querySelectorAll('thead button')[1].click()")
    by_total = sorted(MODELS, key=lambda id: -int(pc.count(id).total))
    assert browser.value(names) == [load_entry(id).name for id in by_total]
    browser.value("const field = document.getElementById('filter'); field.value = 'meta 2024'; "
                  "field.dispatchEvent(new Event('input'))")  # fmt: skip
    assert browser.value(names) == ["Llama 3.1 8B"]
    assert browser.value("document.getElementById('number').textContent") == "1 model."


def test_a_number_is_copied_in_full(browser: Browser, site: Path) -> None:
    browser.open(site / "models" / "deepseek-v3" / "index.html")
    browser.value("window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text); }; 0")
    browser.value("document.querySelector('.lead [data-copy]').click()")
    browser.value("document.querySelector('.command').click()")
    assert browser.value("copied") == [str(pc.count("deepseek-v3").total), "paramcount show deepseek-v3"]


def test_the_page_that_is_not_found_links_to_the_folder_of_its_site(browser: Browser, site: Path) -> None:
    browser.open(site / "404.html")
    links = "[...document.links].map((link) => link.pathname)"
    assert browser.value(links) == [f"{site}/", f"{site}/models/"]


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    """The address of a server that has the site in the folder /some/models/ and shows its page 404 elsewhere."""

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            inside = path.startswith("/some/models/")
            return str(site / path.removeprefix("/some/models/")) if inside else str(site / "missing" / path)

        def send_error(self, code: int, *_: object) -> None:
            body = (site / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "path", ["some/models/nothing", "some/models/nothing/", "some/models/a/b/c", "some/models/models/x/y/"]
)
def test_at_any_depth_the_page_that_is_not_found_links_to_the_folder_of_its_site(
    browser: Browser, server: str, path: str
) -> None:
    browser.ask("Page.navigate", url=f"{server}/{path}")
    wait_until(browser, "document.querySelector('h1')?.textContent === 'Page not found'")
    links = "[...document.links].map((link) => link.pathname).join()"
    wait_until(browser, f"{links} === '/some/models/,/some/models/models/'")
