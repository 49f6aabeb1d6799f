"""Pictures as PDF files: their text can be selected, and it lies where the SVG has it."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

from paramcount.drawing.pdf import convert_to_pdf
from paramcount.drawing.render import FONTS
from tests.running import Runner

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100" width="200" height="100">'
    "<style>.a{font-size:10px}.k0{fill:#ff0000}</style>"
    '<text class="a" x="100" y="50">[<tspan class="k0">768</tspan>, K<tspan dy="-4">T</tspan>]</text></svg>'
)


def read_text_places(pdf: bytes) -> list[tuple[float, float, str]]:
    """(x, y, text) of each piece of text, from the content of the pages."""
    places: list[tuple[float, float, str]] = []
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, flags=re.DOTALL):
        content = decode(stream)
        for x, y, text in re.findall(r"BT 1 0 0 1 (-?[\d.]+) (-?[\d.]+) Tm .*?\((.*?)\) Tj", content, flags=re.DOTALL):
            places.append((float(x), float(y), text))
    return places


def decode(stream: bytes) -> str:
    """The content of a stream, which ReportLab writes in ASCII85 and compressed."""
    import base64

    try:
        return zlib.decompress(base64.a85decode(stream.strip().removesuffix(b"~>"))).decode("latin-1")
    except (ValueError, zlib.error):
        return stream.decode("latin-1")


@pytest.mark.parametrize("command", ["draw", "map"])
def test_a_picture_is_a_pdf_with_its_text(command: str, run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("svglib")
    path = tmp_path / "x.pdf"
    assert run(command, "gpt2-small", "-o", str(path)).err == ""
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    texts = [text for _, _, text in read_text_places(data)]
    assert "GPT-2 small" in texts
    assert any("124,439,808" in text for text in texts)


def test_the_parts_of_a_centred_text_follow_each_other() -> None:
    pytest.importorskip("svglib")
    from reportlab.pdfbase.pdfmetrics import stringWidth

    places = read_text_places(convert_to_pdf(SVG))
    texts = [text.replace("\\240", " ") for _, _, text in places]
    assert "".join(texts).replace("\xa0", " ").replace(" ", "") == "[768,KT]"
    lefts = [x for x, _, _ in places]
    assert lefts == sorted(lefts)
    assert len(set(lefts)) == len(lefts)
    width = stringWidth("[768, K]", "Helvetica", 10) + stringWidth("T", "Helvetica", 7.5)
    assert lefts[0] == pytest.approx(100 - width / 2, abs=0.05)
    assert [y for _, y, _ in places] == [-50, -50, -50, pytest.approx(-46.5), -50]  # a raised T


def test_letters_that_helvetica_lacks_come_from_a_font_in_the_file() -> None:
    pytest.importorskip("svglib")
    pytest.importorskip("matplotlib")
    svg = SVG.replace("<style>", f"<style>text{{font-family:{FONTS}}}")
    assert b"DejaVu" in convert_to_pdf(svg.replace("768", "модель"))
    assert b"DejaVu" not in convert_to_pdf(svg)
