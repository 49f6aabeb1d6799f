"""Pages of HTML as trees."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

VOID = re.compile(r"<(meta|br|hr|img|link|input|base)\b([^>]*?)/?>")
WITHOUT_VALUE = re.compile(r"(?<= )(hidden|defer|open)(?=[ >])")
SCRIPT = re.compile(r"(<script\b[^>]*>).*?(</script>)", re.DOTALL)


def parse_html(html: str) -> ET.Element:
    """A page as a tree. Every element has a closing tag in the right place, and no attribute twice."""
    assert "<!--" not in html
    xml = SCRIPT.sub(r"\1\2", html.removeprefix("<!doctype html>"))
    root = ET.fromstring(VOID.sub(r"<\1\2/>", WITHOUT_VALUE.sub(r'\1=""', xml)))  # noqa: S314 our own
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2].lower()
    return root


def find_all(page: ET.Element, *tags: str, **attributes: str) -> list[ET.Element]:
    """The elements with one of these tags and these attributes."""
    return [node for node in page.iter() if node.tag in tags and attributes.items() <= node.attrib.items()]


def read_text(node: ET.Element) -> str:
    return "".join(node.itertext())
