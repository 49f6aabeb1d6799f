"""The page for addresses that do not exist. A server shows it in any folder, so it loads no other file."""

from __future__ import annotations

from paramcount.explore.article.elements import Html, element
from paramcount.explore.page import hash_script


def render_missing(url: str, style: str) -> str:
    """The page; its links are absolute if the address of the site is known."""
    home = url or "/"
    main = element(
        "main",
        element("h1", "There is no page here"),
        element("p", "The address may have changed: ", element("a", "find the model", href=f"{home}models/"), "."),
        id="content",
    )
    policy = f"default-src 'none'; style-src '{hash_script(style)}'; img-src data:; base-uri 'none'"
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        '<meta name="color-scheme" content="light dark">',
        '<meta name="robots" content="noindex">',
        element("title", "Not found · paramcount"),
        element("style", Html(style)),
        element("body", element("header", element("a", "paramcount", class_="home", href=home)), main, class_="site"),
        "</html>\n",
    ]
    return "\n".join(lines)
