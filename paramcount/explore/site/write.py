"""Writes a site."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from paramcount.drawing.map_svg import render_map
from paramcount.drawing.parameter_map import make_map
from paramcount.errors import ParamcountError
from paramcount.explore.maps import write_colour_rules
from paramcount.explore.page import FOLDER, build_page, build_zoo_page
from paramcount.explore.site.folder import open_site_folder
from paramcount.explore.site.frame import WebPage, render_document
from paramcount.explore.site.guides import copy_images, list_guides, load_markdown, make_guide_page
from paramcount.explore.site.listing import ListedModel, describe_model, list_zoo_models
from paramcount.explore.site.missing import render_missing
from paramcount.explore.site.models import (
    PREVIEW,
    make_families_page,
    make_family_page,
    make_model_page,
    make_table_page,
)
from paramcount.explore.site.previews import draw_preview, has_previews
from paramcount.explore.site.start import make_start_page
from paramcount.output.numbers import format_count
from paramcount.zoo import Model, load_entry

HERE = Path(__file__).parent
STYLES = (FOLDER / "style.css", FOLDER / "article.css", HERE / "site.css")
WORKFLOW = ".github/workflows/pages.yml"
Report = Callable[[int, int], None]


def write_site(
    directory: str, models: Sequence[Model] = (), *, url: str = "", report: Report | None = None
) -> tuple[str, ...]:
    """Write a site about models, or about the zoo, into a directory.

    Args:
        directory: New, empty, or a site that is replaced.
        models: Those with pages; all of the zoo if empty.
        url: The address of the site, for sitemap.xml and the addresses of preview pictures.
        report: Called with the number of models whose pages are written, and their total.

    Returns: Notes.
    Raises: ParamcountError if the directory is neither, or if the [site] extra is missing.
    """
    address = check_url(url)
    with open_site_folder(directory) as folder:
        load_markdown()
        listed = list(map(describe_model, models) if models else list_zoo_models())
        loaded = {model.id: model for model in models}
        previews = has_previews()
        pages = list(write_models(folder, listed, loaded, address, previews=previews, report=report))
        pages += [*make_overviews(listed, previews=previews), *make_guides()]
        for page in pages[len(listed) :]:
            write_page(folder, page, address)
        copy_images(folder / "guides" / "images")
        write_rest(folder, listed, build_page(models) if models else build_zoo_page(), address)
        if address:
            write_file(folder / "sitemap.xml", make_sitemap([page.path for page in pages], address))
    return () if previews else ("without preview pictures, which need paramcount[plot]",)


def check_url(url: str) -> str:
    """The address with a slash at its end. Raises: ParamcountError if it is no address of a site."""
    if not url:
        return ""
    from urllib.parse import urlsplit

    expected = "an address such as https://example.org/models/"
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ParamcountError("invalid address", where="--url", expected=expected) from None
    is_web = parts.scheme in ("http", "https") and parts.hostname
    if not is_web or parts.query or parts.fragment or not url.isascii() or not url.isprintable():
        raise ParamcountError("invalid address", where="--url", expected=expected)
    return url.rstrip("/") + "/"


def write_models(
    folder: Path,
    listed: Sequence[ListedModel],
    loaded: dict[str, Model],
    url: str,
    *,
    previews: bool,
    report: Report | None,
) -> Iterable[WebPage]:
    places = {model.id: model.place for model in listed}
    if len(set(places.values())) < len(listed):
        raise ParamcountError("two models have the same name", expected="models with different names")
    for number, model in enumerate(listed, 1):
        page = make_model_page(model, places, preview=previews)
        write_page(folder, page, url)
        map = render_map(make_map(loaded.get(model.id) or load_entry(model.id), social=True))
        write_file(folder / page.path / "map.svg", map)
        if previews:
            (folder / page.path / PREVIEW).write_bytes(draw_preview(map))
        if report:
            report(number, len(listed))
        yield page


def make_overviews(listed: Sequence[ListedModel], *, previews: bool) -> Iterable[WebPage]:
    families: dict[str, list[ListedModel]] = {}
    for model in listed:
        if model.family:
            families.setdefault(model.family, []).append(model)
    yield make_start_page(listed, preview=previews)
    yield make_table_page(listed)
    yield make_families_page(families)
    for family, models in families.items():
        yield make_family_page(family, models)


def make_guides() -> Iterable[WebPage]:
    markdown = load_markdown()
    for topic, text in list_guides():
        yield make_guide_page(topic, text, markdown)


def write_rest(folder: Path, listed: Sequence[ListedModel], app: str, url: str) -> None:
    """The page to explore, the style, the script and the files that servers look for."""
    write_file(folder / "explore" / "index.html", app)
    style = "\n".join([write_colour_rules(), *(path.read_text(encoding="utf-8") for path in STYLES)])
    write_file(folder / "site.css", style)
    write_file(folder / "site.js", (HERE / "site.js").read_text(encoding="utf-8"))
    names = [[model.name, model.id, model.place, format_count(model.total)] for model in listed]
    data = json.dumps(names, ensure_ascii=True, separators=(",", ":"))
    write_file(folder / "models.js", f"showModels({data});\n")
    write_file(folder / "404.html", render_missing(url, style))
    write_file(folder / ".nojekyll", "")
    write_file(folder / WORKFLOW, (HERE / "pages.yml").read_text(encoding="utf-8"))


def make_sitemap(paths: Iterable[str], url: str) -> str:
    lines = "\n".join(f"<url><loc>{escape(url + path)}</loc></url>" for path in paths)
    start = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f"{start}\n{lines}\n</urlset>\n"


def write_page(folder: Path, page: WebPage, url: str) -> None:
    write_file(folder / page.path / "index.html", render_document(page, url))


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
