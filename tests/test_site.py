"""The site of `paramcount explore --site`: its pages, their links, and where it may be written."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import paramcount as pc
from paramcount.explore.site import write_site
from paramcount.explore.site.folder import MARKER
from paramcount.explore.site.listing import make_place
from paramcount.zoo import load_entry
from tests.html_pages import find_all, parse_html
from tests.running import Runner

pytest.importorskip("markdown_it")
MODELS = ("gpt2-small", "deepseek-v3", "deepseek-v2")
URL = "https://example.org/models"
LOADED = {
    "img": "src",
    "script": "src",
    "link": "href",
    "a": "href",
    "form": "action",
    "iframe": "src",
    "object": "data",
}
HOSTILE = {"id": "../../evil", "name": '<script>alert("x")</script>', "publisher": "</title><img src=x onerror=y>"}


def list_attributes(page: ET.Element, tag: str, **attributes: str) -> list[dict[str, str]]:
    return [node.attrib for node in find_all(page, tag, **attributes)]


@pytest.fixture(scope="module", autouse=True)
def _without_data() -> Iterator[None]:
    """The page to explore, whose data take longest to export, is empty: tests/test_explore.py has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paramcount.explore.site.write.build_page", lambda models: f"{len(models)} models")
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "site"
    write_site(str(place), list(map(load_entry, MODELS)), url=URL)
    return place


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, ET.Element]:
    """{path of a folder: its page}, without the page to explore, which is a program."""
    found = {path.parent.relative_to(site).as_posix(): path for path in site.rglob("index.html")}
    return {name: parse_html(path.read_text()) for name, path in found.items() if name != "explore"}


def test_there_is_a_page_per_model_family_and_guide(pages: dict[str, ET.Element], site: Path) -> None:
    assert {f"models/{id}" for id in MODELS} <= set(pages)
    assert {"families/gpt", "families/deepseek"} <= set(pages)
    assert {".", "models", "families", "guides", "guides/terms", "guides/moe"} <= set(pages)
    for name in ("404.html", ".nojekyll", "sitemap.xml", ".github/workflows/pages.yml", "explore/index.html"):
        assert (site / name).is_file(), name
    assert (site / "explore/index.html").read_text() == f"{len(MODELS)} models"


def test_all_links_lead_to_files_of_the_site(pages: dict[str, ET.Element], site: Path) -> None:
    number = 0
    for name, page in pages.items():
        for node in page.iter():
            address = urlsplit(node.get(LOADED.get(node.tag, ""), ""))
            if address.scheme or not address.path:
                continue
            target = (site / name / unquote(address.path)).resolve()
            assert target.is_relative_to(site.resolve()), (name, address)
            assert (target / "index.html" if address.path.endswith("/") else target).is_file(), (name, address)
            number += 1
    assert number > 10 * len(pages)


def test_no_page_loads_anything_from_another_server(pages: dict[str, ET.Element]) -> None:
    for name, page in pages.items():
        (policy,) = list_attributes(page, "meta", **{"http-equiv": "Content-Security-Policy"})
        assert "http" not in policy["content"] and "unsafe" not in policy["content"]
        for tag in ("img", "script", "link", "iframe", "form"):
            for attributes in list_attributes(page, tag):
                scheme = urlsplit(attributes.get(LOADED[tag], "")).scheme
                assert scheme in ("", "data"), (name, tag, attributes)
        assert not [n.tag for n in page.iter() if "style" in n.attrib or any(key[:2] == "on" for key in n.attrib)]


def test_titles_and_descriptions_are_unique(pages: dict[str, ET.Element]) -> None:
    titles = [find_all(page, "title")[0].text for page in pages.values()]
    descriptions = [list_attributes(page, "meta", name="description")[0]["content"] for page in pages.values()]
    assert len(set(titles)) == len(titles) == len(set(descriptions))
    assert all(titles) and all(descriptions)


def test_the_numbers_are_those_of_the_command_line(pages: dict[str, ET.Element]) -> None:
    cells = {row["title"] for row in list_attributes(pages["models"], "span") if "data-copy" in row}
    for id in MODELS:
        count = pc.count(id)
        assert f"{count.total:,}" in cells
        page = pages[f"models/{id}"]
        assert f"{count.total:,} parameters" in list_attributes(page, "meta", name="description")[0]["content"]
        assert str(count.active) in {span.get("data-copy") for span in list_attributes(page, "span")}


def test_a_model_without_a_page_is_not_a_link(pages: dict[str, ET.Element]) -> None:
    links = {link["href"] for link in list_attributes(pages["models/deepseek-v3"], "a")}
    assert "../deepseek-v2/" in links
    assert not [href for href in links if href.startswith("#model")]
    assert "../../explore/#fit/deepseek-v3" in links


def test_preview_pictures_and_the_sitemap_have_absolute_addresses(pages: dict[str, ET.Element], site: Path) -> None:
    root = ET.fromstring((site / "sitemap.xml").read_text())  # noqa: S314 our own
    addresses = {element.text for element in root.iter() if element.tag.endswith("}loc")}
    assert addresses == {f"{URL}/{'' if name == '.' else name + '/'}" for name in pages}
    (image,) = list_attributes(pages["models/deepseek-v3"], "meta", property="og:image")
    assert image["content"] == f"{URL}/models/deepseek-v3/preview.png"
    png = (site / "models/deepseek-v3/preview.png").read_bytes()
    width, height = (
        int(list_attributes(pages["."], "meta", property=f"og:image:{side}")[0]["content"])
        for side in ("width", "height")
    )
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (width, height)


def test_without_the_libraries_of_pictures_a_note_says_so(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paramcount.explore.site.previews.find_spec", lambda name: None)
    result = run("explore", "gpt2-small", "--site", str(tmp_path / "site"))
    assert "note: without preview pictures, which need paramcount[plot]" in result.err
    page = parse_html((tmp_path / "site/models/gpt2-small/index.html").read_text())
    assert not list_attributes(page, "meta", property="og:image")
    assert not list((tmp_path / "site/models").rglob("*.png"))


def test_without_the_library_of_guides_the_error_names_the_extra(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "markdown_it", None)
    result = run("explore", "gpt2-small", "--site", str(tmp_path / "site"))
    assert result.code == 2
    assert "a site needs the [site] extra: pip install 'paramcount[site]'" in result.err
    assert not list(tmp_path.iterdir())
    file = tmp_path / "file"
    file.touch()
    result = run("explore", "gpt2-small", "--site", str(file))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert f"--site {file} is not a directory" in result.err


def test_hostile_names_stay_in_a_site_without_an_address_and_are_escaped(run: Runner, tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "_name_or_path": HOSTILE["name"], "architectures": ["GPT2LMHeadModel"]}
    folder = tmp_path / HOSTILE["publisher"].replace("/", "")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    result = run("explore", str(folder), "--site", str(tmp_path / "site"))
    assert result.code == 0, result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["site", folder.name])
    (page,) = (tmp_path / "site" / "models").glob("*/index.html")
    assert page.parent.name == make_place(page.parent.name)
    reader = parse_html(page.read_text())
    (picture,) = list_attributes(reader, "meta", property="og:image")
    assert picture["content"] == f"../../models/{page.parent.name}/preview.png"
    assert not (tmp_path / "site" / "sitemap.xml").exists()
    assert not [attributes for attributes in list_attributes(reader, "img") if attributes["src"] != "map.svg"]
    assert list_attributes(reader, "script") == [{"src": "../../site.js", "defer": ""}]


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "..", "", "a/../b", "\x00", "C:\\x", "x" * 1000])
def test_a_place_is_one_folder_whatever_the_name(name: str) -> None:
    place = make_place(name)
    assert place and place.isascii() and len(place) <= 100
    assert not {"/", "\\", "\x00"} & set(place) and not place.startswith(".")


def test_what_paramcount_did_not_write_is_refused_or_stays(run: Runner, tmp_path: Path) -> None:
    place = tmp_path / "site"
    place.mkdir()
    (place / "thesis.tex").write_text("mine")
    refused = run("explore", "gpt2-small", "--site", str(place))
    assert refused.code == 2
    assert "is not empty (expected a new or empty directory" in refused.err
    assert [path.name for path in place.iterdir()] == ["thesis.tex"]
    (place / "thesis.tex").unlink()
    assert run("explore", "gpt2-small", "--site", str(place)).code == 0
    (place / ".git").mkdir()
    (place / ".git" / "HEAD").write_text("ref")
    (place / "CNAME").write_text("example.org")
    assert run("explore", "qwen3-0.6b", "--site", str(place)).code == 0
    assert (place / ".git" / "HEAD").read_text() == "ref"
    assert (place / "CNAME").read_text() == "example.org"
    assert not (place / "models" / "gpt2-small").exists()
    assert (place / "models" / "qwen3-0.6b" / "index.html").is_file()
    assert (place / MARKER).is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_nothing_is_left_of_a_site_that_fails(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    place = tmp_path / "site"
    assert run("explore", "gpt2-small", "--site", str(place)).code == 0
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    monkeypatch.setattr("paramcount.explore.site.write.copy_images", fail)
    result = run("explore", "qwen3-0.6b", "--site", str(place))
    assert result.code == 2
    assert "cannot be written: No space left on device" in result.err
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
