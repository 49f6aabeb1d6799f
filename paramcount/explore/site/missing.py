"""The page for addresses that do not exist. A server shows it at any address, so it needs no other file."""

from __future__ import annotations

from paramcount.explore.article.elements import Html, element
from paramcount.explore.page import hash_script

# Links begin at the folder of the site: the nearest one that has a file of the site. Until that is known, and if there
# is no server to ask, it is whatever is before a folder of the site in the address.
SCRIPT = """
const paths = [...document.links].map((link) => link.getAttribute("href").slice(1));
const use = (root) => [...document.links].forEach((link, i) => (link.href = root + paths[i]));
use(location.pathname.replace(/(?<=[/])((explore|families|guides|models)([/].*)?|[^/]*[/]?)$/, ""));
(async () => {
  if (location.protocol === "file:") return;
  for (let root = location.pathname; (root = root.replace(/[^/]*[/]?$/, "")); ) {
    if ((await fetch(root + "models.js", { method: "HEAD" })).ok) return use(root);
  }
})();
"""


def render_missing(url: str, style: str) -> str:
    """The page. Its links are absolute if the address of the site is known; otherwise its script finds the site, and
    without scripts they are those of a site at the root of its server."""
    home, script = url or "/", "" if url else SCRIPT
    main = element(
        "main",
        element("h1", "Page not found"),
        element("p", "The address may have changed. ", element("a", "Find the model", href=f"{home}models/"), "."),
        id="content",
    )
    run = f" script-src '{hash_script(script)}'; connect-src 'self';" if script else ""
    policy = f"default-src 'none';{run} style-src '{hash_script(style)}'; img-src data:; base-uri 'none'"
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
        element("script", Html(script)) if script else "",
        "</html>\n",
    ]
    return "\n".join(lines)
