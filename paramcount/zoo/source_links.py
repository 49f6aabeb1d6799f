"""The web addresses in the reference of a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

REPOSITORY = r"github (?P<repo>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{7,40})\b(?::(?P<path>[^\s,;:()\[\]\"']+))?"
PAPER = r"arXiv:(?P<paper>\d{4}\.\d{4,5}(?:v\d+)?)"
ADDRESS = r"(?:https?://)?(?P<address>(?:[a-z0-9-]+\.)+(?:com|org|co|ai|io|net|dev|cn|me)/[^\s,;()\[\]\"'<>`]+)"
LINK = re.compile(rf"{REPOSITORY}|{PAPER}|{ADDRESS}")


def split_links(ref: str) -> Iterator[tuple[str, str]]:
    """The pieces of a reference, each with its address; "" for text between links.

    >>> list(split_links("github a/b@0574c57:README.md, table"))
    [('github a/b@0574c57:README.md', 'https://github.com/a/b/blob/0574c57/README.md'), (', table', '')]
    >>> [url for _, url in split_links("arXiv:2005.14165 Table 2.1; huggingface.co/a/b: x")]
    ['https://arxiv.org/abs/2005.14165', '', 'https://huggingface.co/a/b', '']
    """
    end = 0
    for match in LINK.finditer(ref):
        text = match[0].rstrip(".:")
        if ref[end : match.start()]:
            yield ref[end : match.start()], ""
        yield text, make_address(match)
        end = match.start() + len(text)
    if ref[end:]:
        yield ref[end:], ""


def make_address(match: re.Match[str]) -> str:
    if match["repo"]:
        page = f"https://github.com/{match['repo']}"
        path = (match["path"] or "").rstrip(".")
        return f"{page}/blob/{match['commit']}/{quote(path)}" if path else f"{page}/tree/{match['commit']}"
    return f"https://arxiv.org/abs/{match['paper']}" if match["paper"] else f"https://{match['address'].rstrip('.:')}"
