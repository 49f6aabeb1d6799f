"""HTML that is escaped where it is made: whatever is not `Html` is text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape

from paramcount.errors import make_printable
from paramcount.output.numbers import format_count

LONGEST = 4000  # characters of one text
EMPTY = ("img", "input", "link", "meta", "rect")  # elements without content
Content = object  # Html, or a text, or a number


class Html(str):
    """Markup. Only the functions of this file make it."""

    __slots__ = ()


def element(name: str, /, *content: Content, **attributes: object) -> Html:
    """An element with escaped content and attributes. `class_` is the attribute class, `data_copy` is data-copy; None
    leaves an attribute out, True gives it no value.

    >>> element("a", "<b>", Html("<i></i>"), class_="x", href='"', hidden=True, title=None)
    '<a class="x" href="&quot;" hidden>&lt;b&gt;<i></i></a>'
    """
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    start = "".join(f" {key}" if value is True else f' {key}="{escape_content(str(value))}"' for key, value in pairs)
    return Html(f"<{name}{start}/>" if name in EMPTY else f"<{name}{start}>{join(content)}</{name}>")


def join(content: Iterable[Content]) -> Html:
    return Html("".join(map(escape_content, content)))


def escape_content(content: Content) -> Html:
    """Html as it is; a number with grouped digits; anything else as text without control characters."""
    if isinstance(content, Html):
        return content
    text = f"{content:,}" if type(content) is int else make_printable(str(content), LONGEST)
    return Html(escape(text, quote=True))


def make_table(
    headings: Sequence[Content],
    rows: Iterable[Sequence[Content]],
    numbers: Iterable[int] = (),
    *,
    has_labels: bool = False,
    **attributes: object,
) -> Html:
    """A table that scrolls if it has to; the first cell of a row is its heading.

    Args:
        numbers: Columns of numbers.
        has_labels: Whether cells of numbers repeat the heading of their column, for a screen without room for columns.
    """
    right = set(numbers)

    def make_cell(i: int, cell: Content, *, heading: bool = False) -> Html:
        style = "number" if i in right else None
        if heading and cell != "":
            return element("th", cell, class_=style, scope="col")
        label = headings[i] if has_labels and i in right and not heading else None
        if i or heading:
            return element("td", cell, class_=style, data_label=label)
        return element("th", cell, class_=style, scope="row")

    head = element("tr", *(make_cell(i, heading, heading=True) for i, heading in enumerate(headings)))
    body = (element("tr", *(make_cell(i, cell) for i, cell in enumerate(row))) for row in rows)
    table = element("table", element("thead", head), element("tbody", *body), **attributes)
    return element("div", table, class_="scroll", tabindex=0)


def make_list(items: Iterable[Content], **attributes: object) -> Html:
    """A list; "" if it is empty."""
    entries = [element("li", item) for item in items]
    return element("ul", *entries, **attributes) if entries else Html("")


def make_number(n: int, text: str = "") -> Html:
    """A number in short, "671B", with all its digits on hover and to copy.

    >>> make_number(671026404352)
    '<span title="671,026,404,352" data-copy="671026404352">671B</span>'
    """
    return element("span", text or format_count(n), title=f"{n:,}", data_copy=str(n))


def make_command(*words: str) -> Html:
    """A command line of paramcount.

    >>> make_command("show", "my model")
    '<code class="command">paramcount show &#x27;my model&#x27;</code>'
    """
    return element("code", shlex.join(["paramcount", *words]), class_="command")


def make_section(title: str, commands: Iterable[Html], *content: Content) -> Html:
    """A section with its heading, and the commands that print it."""
    lines = join(commands)
    printed = element("p", lines, class_="commands") if lines else Html("")
    return element("section", element("h2", title), *content, printed)
