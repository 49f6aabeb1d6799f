"""The guides as pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from paramcount.errors import make_extra_error
from paramcount.explore.article.elements import Html, element, join
from paramcount.explore.site.frame import WebPage

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

INDEX = "index"
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
GUIDES = files("paramcount").joinpath("docs")


def load_markdown() -> MarkdownIt:
    """Raises: ParamcountError if the [site] extra is missing."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise make_extra_error("a site", "site") from None
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def list_guides() -> Iterator[tuple[str, str]]:
    """(topic, text) of each guide, the index first."""
    names = sorted(guide.name.removesuffix(".md") for guide in GUIDES.iterdir() if guide.name.endswith(".md"))
    for name in sorted(names, key=lambda name: name != INDEX):
        yield name, COMMENT.sub("", GUIDES.joinpath(f"{name}.md").read_text(encoding="utf-8"))


def make_guide_page(topic: str, text: str, markdown: MarkdownIt) -> WebPage:
    """A guide as a page, with links to pages in place of files."""
    tokens = markdown.parse(text)
    root = "" if topic == INDEX else "../"
    for token in tokens:
        if "right" in str(token.attrs.pop("style", "")):  # of a cell; the policy of the site forbids styles in pages
            token.attrs["class"] = "number"
        for child in token.children or ():
            for name in ("href", "src"):
                if isinstance(target := child.attrs.get(name), str):
                    child.attrs[name] = find_target(target, root)
                    if name == "src":
                        child.attrs |= measure_image(target)
    heading = next((tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"), topic)
    body = Html(markdown.renderer.render(tokens, markdown.options, {}))
    trail = [] if topic == INDEX else [element("p", element("a", "Guides", href="../"), class_="trail")]
    body = Html(body.replace("<pre>", '<pre tabindex="0">'))
    content = re.sub("<table>.*?</table>", r'<div class="scroll" tabindex="0">\g<0></div>', body, flags=re.DOTALL)
    return WebPage(
        path="guides/" if topic == INDEX else f"guides/{topic}/",
        title=f"{'Guides' if topic == INDEX else heading} · paramcount",
        description=find_description(text) or heading,
        content=join((*trail, element("div", Html(content), class_="guide"))),
    )


def find_target(target: str, root: str) -> str:
    """Where a link of a guide goes on the site: to the page of another guide, or to a picture.

    >>> find_target("terms.md#counts", "../"), find_target("images/a.svg", "../"), find_target("https://a.org", "../")
    ('../terms/', '../images/a.svg', 'https://a.org')
    """
    if ":" in target or target.startswith("#"):
        return target
    path = PurePosixPath(target.partition("#")[0])
    return f"{root}{path.stem}/" if path.suffix == ".md" else f"{root}{path}"


def measure_image(name: str) -> dict[str, str | int | float]:
    """The width and height of a picture of the guides, for a page that does not move when it is loaded."""
    data = GUIDES.joinpath(name).read_bytes()
    if data[8:16] == b"WEBPVP8X":
        return {"width": int.from_bytes(data[24:27], "little") + 1, "height": int.from_bytes(data[27:30], "little") + 1}
    if data.startswith(b"\x89PNG"):
        return {"width": int.from_bytes(data[16:20]), "height": int.from_bytes(data[20:24])}
    match = re.search(rb' width="(\d+)[.\d]*" height="(\d+)', data)
    return {"width": int(match[1]), "height": int(match[2])} if match else {}


def find_description(text: str) -> str:
    """The first paragraph of a guide without markup."""
    paragraphs = (paragraph for paragraph in text.split("\n\n") if paragraph[:1].isalpha())
    first = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", lambda match: match[1] or "", next(paragraphs, ""))
    return " ".join(first.split())[:300]


def copy_images(folder: Path) -> None:
    """The pictures of the guides."""
    folder.mkdir(parents=True)
    for image in GUIDES.joinpath("images").iterdir():
        (folder / image.name).write_bytes(image.read_bytes())
