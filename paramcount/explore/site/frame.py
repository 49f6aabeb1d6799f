"""The document around the content of a page: its head, the navigation and the footer."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from paramcount.explore.article.elements import Content, Html, element, join
from paramcount.version import __version__

NAVIGATION = {
    "models/": "Models",
    "families/": "Families",
    "guides/terms/": "Terms",
    "guides/": "Guides",
    "explore/": "Explore",
}
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'"
)
SQUARES = {"#487db3": "M1 1h6v14H1z", "#e56e28": "M8 1h7v6H8z", "#11753f": "M8 8h7v7H8z"}  # {colour: path}
PREVIEW_SIZE = (800, 420)  # pixels of a preview picture


class WebPage(NamedTuple):
    """A page of the site."""

    path: str  # of its folder, "models/gpt2-small/"; "" for the start page
    title: str
    description: str
    content: Html
    preview: str = ""  # path of the picture that a link to it shows; "" without one


def get_root(path: str) -> str:
    """The way from a page to the start page.

    >>> get_root("models/gpt2-small/"), get_root("")
    ('../../', './')
    """
    return "../" * path.count("/") or "./"


def make_meta(**attributes: str) -> Html:
    return element("meta", **attributes)


def render_document(page: WebPage, url: str = "") -> str:
    """The HTML of a page. `url`: the address of the site, for what has to be absolute."""
    root = get_root(page.path)
    preview = []
    if page.preview:
        width, height = map(str, PREVIEW_SIZE)
        preview = [
            make_meta(property="og:image", content=(url or root) + page.preview),
            make_meta(property="og:image:width", content=width),
            make_meta(property="og:image:height", content=height),
            make_meta(name="twitter:card", content="summary_large_image"),
        ]
    head = [
        make_meta(charset="utf-8"),
        make_meta(name="viewport", content="width=device-width, initial-scale=1"),
        make_meta(http_equiv="Content-Security-Policy", content=POLICY),
        make_meta(name="color-scheme", content="light dark"),
        make_meta(name="generator", content=f"paramcount {__version__}"),
        element("title", page.title),
        make_meta(name="description", content=page.description),
        make_meta(property="og:title", content=page.title),
        make_meta(property="og:description", content=page.description),
        make_meta(property="og:type", content="website"),
        *([make_meta(property="og:url", content=url + page.path)] if url else []),
        *preview,
        element("link", rel="icon", href=make_icon()),
        element("link", rel="stylesheet", href=f"{root}site.css"),
        element("script", src=f"{root}site.js", defer=True),
    ]
    return assemble(head, page, root)


def assemble(head: list[Html], page: WebPage, root: str) -> str:
    lines = "\n".join(head)
    body = join(
        (
            element("a", "Skip to the content", class_="skip", href="#content"),
            make_header(page, root),
            element("main", page.content, id="content"),
            make_footer(root),
        )
    )
    start = f'<!doctype html>\n<html lang="en">\n<head>\n{lines}\n</head>\n'
    return f'{start}<body class="site">\n{body}\n</body>\n</html>\n'


def make_header(page: WebPage, root: str) -> Html:
    links: list[Content] = []
    current = max((path for path in NAVIGATION if page.path.startswith(path)), key=len, default="")
    for path, name in NAVIGATION.items():
        links.append(element("a", name, href=root + path, aria_current="true" if path == current else None))
    home = element("a", make_logo(), "paramcount", class_="home", href=root)
    return element("header", home, element("nav", *links, aria_label="Site"))


def make_logo() -> Html:
    paths = (element("path", fill=colour, d=path) for colour, path in SQUARES.items())
    return element("svg", *paths, viewBox="0 0 16 16", width=16, height=16, aria_hidden="true")


def make_icon() -> str:
    paths = (element("path", fill=colour, d=path) for colour, path in SQUARES.items())
    svg = element("svg", *paths, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 16 16")
    return f"data:image/svg+xml,{quote(svg)}"


def make_footer(root: str) -> Html:
    return element(
        "footer",
        f"paramcount {__version__}. Counts are exact and follow the reference implementation; ",
        element("a", "how they are tested", href=f"{root}guides/accuracy/"),
        ".",
    )
