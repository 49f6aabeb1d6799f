"""The web address of a source, read off the notation in which the zoo's entries cite it.

`github OWNER/REPO@COMMIT:PATH`, `huggingface.co/…`, `HF OWNER/REPO`, `arXiv:ID`, `PACKAGE VERSION (wheel on PyPI)`,
`transformers VERSION` and any other address; the first page that is cited counts. Nothing else becomes a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

REPOSITORY = r"(?P<owner>[A-Za-z0-9][A-Za-z0-9_.-]*)/(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)"
COMMIT = r"(?:@(?P<commit>[0-9a-f]{7,40})\b)?"
FILE = r"(?::(?P<path>[^\s,;:()\"'<>\\`{}|^?#]*[^\s,;:()\"'<>\\`{}|^?#.]))?"
PATH = r"(?:/[A-Za-z0-9_.~%@+=&?#/-]*[A-Za-z0-9_~%+=/-])?"
DOMAINS = "ai|app|blog|cn|co|com|de|dev|edu|eu|fr|io|it|jp|kr|link|net|news|org|ru|site|tech|uk|wiki"


class SourceLink(NamedTuple):
    """Where a source is: its address, the account or site that publishes it, and the commit that is cited."""

    url: str
    owner: str
    commit: str = ""


Pattern = tuple[re.Pattern[str], Callable[[re.Match[str]], SourceLink]]


def link_source(ref: str) -> str | None:
    """The web address of a source; None if it cites none.

    >>> link_source("github openai/gpt-2@242aac8d54b7:model_card.md")
    'https://github.com/openai/gpt-2/blob/242aac8d54b7/model_card.md'
    >>> link_source("model card of Qwen/Qwen3-8B")
    'https://huggingface.co/Qwen/Qwen3-8B'
    >>> print(link_source("a public summary on GitHub"))
    None
    """
    link = find_link(ref)
    return link.url if link else None


@cache
def find_link(ref: str) -> SourceLink | None:
    """The first link that a source cites: a page rather than a whole site, a package or an identifier only if it cites
    no address."""
    for patterns in (ADDRESSES, IDENTIFIERS):
        found = [link for _, link in find_links(ref, patterns)]
        if found:
            return min(found, key=lambda link: not urlsplit(link.url).path.strip("/"))
    return None


def split_links(ref: str) -> Iterator[tuple[str, str]]:
    """The pieces of a reference, each with its address; "" for text between links.

    >>> list(split_links("github a/b@0574c57:README.md, table"))
    [('github a/b@0574c57:README.md', 'https://github.com/a/b/blob/0574c57/README.md'), (', table', '')]
    """
    end = 0
    for match, link in find_links(ref, (*ADDRESSES, *IDENTIFIERS)):
        if ref[end : match.start()]:
            yield ref[end : match.start()], ""
        yield match[0], link.url
        end = match.end()
    if ref[end:]:
        yield ref[end:], ""


def find_links(ref: str, patterns: Iterable[Pattern]) -> list[tuple[re.Match[str], SourceLink]]:
    """The links in a reference, in order; of two that overlap, the first."""
    found = sorted(
        ((match, make(match)) for pattern, make in patterns for match in pattern.finditer(ref)),
        key=lambda item: item[0].start(),
    )
    links: list[tuple[re.Match[str], SourceLink]] = []
    for match, link in found:
        if not links or match.start() >= links[-1][0].end():
            links.append((match, link))
    return links


def link_github(match: re.Match[str]) -> SourceLink:
    owner, name, commit, path = (match[key] or "" for key in ("owner", "name", "commit", "path"))
    url = f"https://github.com/{owner}/{name.removesuffix('.git')}"
    return SourceLink(url + find_place(path, commit, "HEAD"), owner, commit)


def link_hub(match: re.Match[str]) -> SourceLink:
    parts = match.groupdict()
    owner, commit, path = parts["owner"], parts.get("commit") or "", parts.get("path") or ""
    url = f"https://huggingface.co/{owner}/{parts['name']}"
    return SourceLink(url + find_place(path, commit, "main"), owner, commit)


def find_place(path: str, commit: str, latest: str) -> str:
    """A file or a commit behind the address of a repository. `latest`: what its newest commit is called."""
    if path:
        return f"/blob/{commit or latest}/{quote(path, safe='/%+@=&~')}"
    return f"/commit/{commit}" if commit else ""


def link_address(match: re.Match[str]) -> SourceLink:
    url = match[0] if match[0].startswith("http") else f"https://{match[0]}"
    parts = urlsplit(url)
    names = parts.path.strip("/").split("/")
    is_repository = parts.netloc in ("huggingface.co", "github.com") and len(names) > 1
    if not is_repository or names[0] in ("docs", "datasets", "blog", "collections", "papers"):
        return SourceLink(url, parts.netloc.rpartition("@")[2].removeprefix("www."))
    commit = re.search(r"/(?:blob|blame|commit|tree|resolve|raw)/([0-9a-f]{7,40})\b", parts.path)
    return SourceLink(url, names[0], commit[1] if commit else "")


def link_package(match: re.Match[str]) -> SourceLink:
    name = match["package"].casefold()
    return SourceLink(f"https://pypi.org/project/{name}/{match['version']}/", name)


def link_arxiv(match: re.Match[str]) -> SourceLink:
    return SourceLink(f"https://arxiv.org/abs/{match['id']}", "arXiv")


ADDRESSES: list[Pattern] = [
    (re.compile(rf"\bgithub {REPOSITORY}{COMMIT}{FILE}"), link_github),
    (re.compile(rf"\bHF(?: page| commit)? {REPOSITORY}{COMMIT}{FILE}"), link_hub),
    (re.compile(rf"\bhttps?://[A-Za-z0-9.-]+{PATH}"), link_address),
    (re.compile(rf"(?<![\w@/.-])(?:[A-Za-z0-9-]+\.)+(?:{DOMAINS})\b(?![\w-]|\.\w){PATH}"), link_address),
]
IDENTIFIERS: list[Pattern] = [
    (re.compile(rf"\bmodel card of {REPOSITORY}"), link_hub),
    (re.compile(rf"\bHF safetensors total(?: of)? {REPOSITORY}"), link_hub),
    (re.compile(r"\barXiv:(?P<id>\d{4}\.\d{4,5}(?:v\d+)?)"), link_arxiv),
    (re.compile(r"(?P<package>[A-Za-z][\w-]*) (?P<version>\d+(?:\.\d+)+) \(wheel on PyPI\)"), link_package),
    (re.compile(r"\b(?P<package>transformers) (?P<version>\d+(?:\.\d+)+)\b"), link_package),
]
