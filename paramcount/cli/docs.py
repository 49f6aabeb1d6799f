"""paramcount docs [TOPIC]"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from textwrap import dedent, indent

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import is_terminal
from paramcount.errors import ParamcountError, find_nearest, join_words, quote
from paramcount.output.tables import Column, Table, render
from paramcount.output.terminal import get_terminal_width, paint, wrap

INDEX = "index"  # lists the other guides
ALIASES = {
    **dict.fromkeys(("mha", "mqa", "gqa", "mla", "latent", "heads"), "attention"),
    **dict.fromkeys(("experts", "active", "router"), "moe"),
    **dict.fromkeys(("kv", "cache"), "kv-cache"),
    **dict.fromkeys(("dtype", "quantisation", "quantization", "fp8", "int4"), "precision"),
    **dict.fromkeys(("positions", "alibi", "yarn"), "rope"),
    **dict.fromkeys(("glossary", "total"), "terms"),
}
LINK = re.compile(r"!?\[([^]]*)\]\(([^)]*)\)")
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^ *```.*$", re.MULTILINE)
BULLET = re.compile(r"(\s*)([-*]|\d+\.) ")


@click.command("docs", cls=Command, epilog="Example: paramcount docs terms")
@click.argument("topic", required=False, metavar="[TOPIC]")
def command(topic: str | None) -> None:
    """Read the guides. Without TOPIC, list the topics."""
    names = list_topics()
    topic = ALIASES.get(topic, topic) if topic else None
    if topic is None:
        for name in names:
            title = next((line.lstrip("# ") for line in read_guide(name).splitlines() if line.startswith("#")), "")
            click.echo(f"{name:{max(map(len, names))}}  {title}")
        return
    if topic not in names:
        raise ParamcountError(
            f"unknown topic {quote(topic)}", expected=join_words(names), nearest=find_nearest(topic, names)
        )
    text = "".join(f"{line}\n" for line in render_markdown(read_guide(topic), get_terminal_width(), bold=is_terminal()))
    if is_terminal():
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def list_topics() -> list[str]:
    guides = files("paramcount").joinpath("docs").iterdir()
    names = (guide.name.removesuffix(".md") for guide in guides if guide.name.endswith(".md"))
    return sorted(name for name in names if name != INDEX)


def read_guide(topic: str) -> str:
    return files("paramcount").joinpath("docs", f"{topic}.md").read_text(encoding="utf-8")


def render_markdown(text: str, width: int, *, bold: bool = False) -> Iterator[str]:
    """Markdown as lines of plain text: paragraphs and tables fitted to `width`, code indented, headings in bold."""
    text = COMMENT.sub("", text)
    for i, passage in enumerate(FENCE.split(text)):
        lines = passage.strip("\n").splitlines()
        if i % 2:  # between two fences
            yield from indent(dedent("\n".join(lines)), "    ").splitlines()
            continue
        if i:
            yield ""
        for kind, block in groupby(join_paragraphs(lines), key=lambda line: line[:1] if line[:1] in "#|" else ""):
            if kind == "|":
                yield from render_table(list(block), width)
            elif kind == "#":
                yield from (paint(plain_text(line.lstrip("# ")), "bold" if bold else "") for line in block)
            else:
                yield from (piece for line in block for piece in wrap_paragraph(plain_text(line), width))
        if i + 1 < len(FENCE.findall(text)):
            yield ""


def join_paragraphs(lines: list[str]) -> Iterator[str]:
    """Each paragraph and list item on one line. Headings, rows of tables and empty lines are unchanged."""
    paragraph = ""
    for line in lines:
        is_separate = not line.strip() or line[:1] in "#|"
        if paragraph and not is_separate and not BULLET.match(line):
            paragraph += f" {line.strip()}"
            continue
        if paragraph:
            yield paragraph
        paragraph = "" if is_separate else line
        if is_separate:
            yield line
    if paragraph:
        yield paragraph


def plain_text(text: str) -> str:
    """Text without the markup of links and bold words. The address of a web page follows the text of its link."""

    def replace_link(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        return f"{text} ({target})" if target.startswith("http") and target != text else text

    return LINK.sub(replace_link, text).replace("**", "")


def wrap_paragraph(text: str, width: int) -> list[str]:
    bullet = BULLET.match(text)
    return wrap(text, width, indent=" " * len(bullet[0])) if bullet else wrap(text, width) or [""]


def trim_row(line: str) -> str:
    """A row without its outer bars; the last cell may be empty.

    >>> trim_row("| a |  |")
    ' a |  '
    """
    return line.strip().removeprefix("|").removesuffix("|")


def render_table(lines: list[str], width: int) -> list[str]:
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", trim_row(line))] for line in lines]
    headings = [Column(plain_text(cell), plain_text(cell), right=False, show=str) for cell in cells[0]]
    rows = [[plain_text(cell) for cell in row] for row in cells[2:]]
    return render(Table(headings, rows, None, wraps=True), "table", width).splitlines()
