"""`paramcount map`: areas are measured in the picture and compared with the counts."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.counting.tree import TensorGroup, group_tensors
from paramcount.drawing.parameter_map import ParameterMap, make_map
from paramcount.drawing.shapes import text_width
from paramcount.drawing.treemap import Area, divide_area, squarify
from tests.batches import in_batches
from tests.drawings import SVG, parse_svg
from tests.running import Runner
from tests.structures import pick_structures

LLAMA = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16}
WIDE_MOE = {"model_type": "mixtral", "num_local_experts": 100_000, "num_hidden_layers": 10_000}


def read_svg(map: ParameterMap) -> ET.Element:
    return parse_svg(map.svg())


def list_texts(svg: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]


def measure(area: Area) -> float:
    return area.width * area.height


def overlap(a: Area, b: Area) -> float:
    """The common area of two rectangles."""
    width = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
    height = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
    return max(width, 0.0) * max(height, 0.0)


def list_tensors(group: TensorGroup) -> list[TensorGroup]:
    return [leaf for child in group.children for leaf in list_tensors(child)] or [group]


@in_batches("id", pick_structures(every=10))
def test_every_tensor_is_a_rectangle_of_its_share_of_the_area(id: str) -> None:
    map = pc.draw_map(id)
    tensors = list_tensors(group_tensors(pc.count(id)))
    assert Counter(tile.tensor for tile in map.tiles) == Counter(tensors)
    for tile in map.tiles:
        share = tile.tensor.parameters / map.total
        assert measure(tile.area) == pytest.approx(measure(map.area) * share, rel=1e-6)
        assert overlap(tile.area, map.area) == pytest.approx(measure(tile.area), rel=1e-6)


@pytest.mark.parametrize(
    ("id", "kinds"),
    [
        # openai/gpt-oss, gpt_oss/torch/model.py: sliding_window in every other layer
        ("gpt-oss-20b", ["sliding-window attention", "full attention layers × 12"]),
        ("deepseek-v3", ["MoE layers × 58"]),  # arXiv:2412.19437, section 4.2: all layers but the first three
        ("llama-3.1-8b", ["layers × 32"]),
    ],
)
def test_a_social_map_says_what_each_block_is(id: str, kinds: list[str]) -> None:
    texts = [text.partition(" · ")[0] for text in list_texts(read_svg(pc.draw_map(id, social=True)))]
    assert [text for text in texts if re.search("layers × [0-9]+$|attention$", text)] == kinds


@in_batches("id", ["deepseek-v3", "gemma-3-4b", "t5-small", "gpt-oss-20b", "zamba-7b", "llama-3.1-8b"])
@pytest.mark.parametrize("social", [False, True])
def test_every_text_stays_inside_its_rectangle(id: str, social: bool) -> None:
    map = pc.draw_map(id, social=social)
    assert any(tile.lines for tile in map.tiles)
    for tile in map.tiles:
        for line in tile.lines:
            assert line.x + text_width(line.text, line.size, bold=line.bold) <= tile.area.x + tile.area.width
            assert tile.area.y <= line.y - 0.76 * line.size
            assert line.y + 0.24 * line.size <= tile.area.y + tile.area.height


def test_a_map_for_a_link_preview_has_1200_by_630_pixels(tmp_path: Path, run: Runner) -> None:
    pytest.importorskip("resvg_py")
    target = tmp_path / "out.png"
    assert run("map", "llama-3.1-8b", "--social", "-o", str(target)) == (0, "", "")
    assert struct.unpack(">II", target.read_bytes()[16:24]) == (1200, 630)
    assert run("map", "llama-3.1-8b", "-o", str(target)) == (0, "", "")
    assert struct.unpack(">II", target.read_bytes()[16:24]) == (2400, 1720)


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "]]>--><!--", 'a" onload="x & <b>\'', "\x1b[31m\u202e"])
def test_a_hostile_name_is_inert(name: str) -> None:
    map = make_map(replace(pc.load(LLAMA), name=name, id=name))
    assert "<script" not in map._repr_svg_()
    svg = parse_svg(map._repr_svg_())
    if name.isprintable():
        assert name in list_texts(svg)
    tags = {element.tag.removeprefix(SVG) for element in svg.iter()}
    assert tags <= {"svg", "title", "desc", "style", "defs", "rect", "g", "path", "text", "use"}
    assert all(not key.startswith("on") for element in svg.iter() for key in element.attrib)


def test_a_field_of_a_billion_cells_is_a_small_file() -> None:
    map = pc.draw_map(WIDE_MOE)
    assert len(map.svg()) < 100_000
    assert any("10,000 layers × 100,000 experts" in text for text in list_texts(read_svg(map)))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 32, 58, 61, 256, 384])
@pytest.mark.parametrize("area", [Area(5, 7, 300, 200), Area(0, 0, 20, 700), Area(0, 0, 900, 10)])
def test_cells_are_equal_and_fill_their_area(area: Area, n: int) -> None:
    rows = list(divide_area(area, n))
    assert sum(row.rows * row.columns for row in rows) == n
    for row in rows:
        assert row.width * row.height == pytest.approx(measure(area) / n)
    assert sum(row.area.height for row in rows) == pytest.approx(area.height)
    assert [row.area.y for row in rows] == pytest.approx([area.y, *(row.area.y + row.area.height for row in rows[:-1])])


def test_a_treemap_is_squarified() -> None:
    # Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000), figure 4: areas 6, 6, 4, 3, 2, 2, 1 in 6 × 4.
    areas = squarify([6, 6, 4, 3, 2, 2, 1], Area(0, 0, 6, 4))
    assert [(round(a.width, 2), round(a.height, 2)) for a in areas] == [
        (3, 2), (3, 2), (1.71, 2.33), (1.29, 2.33), (1.2, 1.67), (1.2, 1.67), (0.6, 1.67),
    ]  # fmt: skip


def test_a_map_can_be_saved_and_shown_in_a_notebook(tmp_path: Path) -> None:
    map = pc.draw_map("gpt2-small")
    map.save(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text(encoding="utf-8") == map.svg()
    assert isinstance(map, pc.ParameterMap)
    assert 'id="map-gpt2-small-title"' in map._repr_svg_()
    with pytest.raises(pc.ParamcountError, match=r"^save: unknown extension '.gif' \(expected .svg, .png or .pdf\)$"):
        map.save("map.gif")
