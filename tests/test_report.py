"""`paramcount report`: one self-contained, accessible page without scripts."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import paramcount.zoo as zoo
from tests.html_pages import find_all, parse_html, read_text
from tests.running import Runner

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from paramcount.api import report
from paramcount.drawing.report import render_page

PASSIVE = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "footer", "main", "nav", "section", "article",
    "h1", "h2", "h3", "p", "b", "span", "div",
    "ol", "ul", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary",
    "figure", "figcaption", "input", "label",
    "svg", "g", "defs", "path", "rect", "line", "polyline", "polygon", "circle", "text", "tspan", "use", "clippath",
    "marker", "pattern", "desc",
}  # fmt: skip
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;{{ 7*7 }}{% raw %}"


@pytest.fixture(scope="module")
def deepseek_page() -> ET.Element:
    return parse_html(report(["deepseek-v3"]))


@pytest.fixture(scope="module")
def several_models_page() -> ET.Element:
    return parse_html(report(["gpt2-small", "mixtral-8x7b", "gpt-4"], estimates=True))


@pytest.fixture(scope="module")
def minimal_page() -> ET.Element:
    return parse_html(report([{"model_type": "llama", "num_hidden_layers": 2}]))


@pytest.fixture(scope="module")
def many_kinds_page() -> ET.Element:
    """An encoder, an encoder-decoder, vision and audio models, a state space model and linear attention."""
    return parse_html(
        report([{"model_type": name} for name in ("bert", "bart", "llava", "whisper", "mamba2", "xlstm")])
    )


@pytest.fixture(params=["deepseek_page", "several_models_page", "minimal_page", "many_kinds_page"])
def any_page(request: pytest.FixtureRequest) -> ET.Element:
    found: ET.Element = request.getfixturevalue(request.param)
    return found


# ---- self-contained and passive


def test_a_page_loads_nothing_and_runs_no_script(any_page: ET.Element) -> None:
    for node in any_page.iter():
        assert node.tag in PASSIVE
        for name, value in node.attrib.items():
            assert not name.startswith("on") and name not in (
                "src",
                "srcset",
                "data",
                "action",
                "formaction",
                "background",
                "ping",
            )
            if name in ("href", "xlink:href"):
                assert value.startswith("#") or (node.tag == "a" and value.startswith("https://huggingface.co/"))
            assert "javascript:" not in value.casefold()
            assert not re.search(r"url\((?!#)", value)
    for style in find_all(any_page, "style"):
        assert not re.search(r"@import|url\(|expression|</", read_text(style))
    policies = [
        node.attrib["content"]
        for node in find_all(any_page, "meta")
        if node.attrib.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def fill_entry(text: str) -> dict[str, Any]:
    """An entry in which every string is `text`."""
    entry = zoo.load_entry("mixtral-8x7b")
    return {
        "id": text, "name": text, "family": text, "publisher": text, "hf": text, "aliases": [text],
        "architecture": entry.architecture,
        "config": entry.sizes.to_dict(), "checked": {"reference": text, "total": 1},
        "sources": [{"id": text, "kind": "paper", "ref": text, "accessed": "2026-01-01"}],
        "published": [{"what": "active", "value": "13B", "exact": False, "source": text}], "notes": [text],
    }  # fmt: skip


def add_notes(model: zoo.Model, *notes: str) -> zoo.Model:
    assert model.entry is not None
    return replace(model, entry=model.entry.model_copy(update={"notes": notes}))


def test_a_hostile_entry_is_escaped() -> None:
    hostile, usual = (
        zoo.make_model(zoo.parse_entry(fill_entry(MARKUP))),
        zoo.make_model(zoo.parse_entry(fill_entry("usual"))),
    )
    both = parse_html(render_page([hostile, replace(hostile, id="b")]))
    expected = parse_html(render_page([usual, replace(usual, id="b")]))
    for found, plain in ((parse_html(render_page([hostile])), parse_html(render_page([usual]))), (both, expected)):
        assert [node.tag for node in found.iter()] == [node.tag for node in plain.iter()]
        assert [list(node.attrib) for node in found.iter()] == [list(node.attrib) for node in plain.iter()]
    texts = {read_text(node) for node in find_all(both, "h2", "dd", "th", "td", "li", "a")}
    assert MARKUP in texts
    assert "49" not in texts
    for link in find_all(both, "a"):
        assert link.attrib["href"].startswith(("#", "https://huggingface.co/%3Cscript%3E"))


def test_control_characters_in_a_folder_name_are_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "evil\x1b[2J\u202e<b>"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    html = report([folder, "gpt2-small"])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    assert "evil\\x1b[2J\\u202e<b>" in {read_text(node) for node in find_all(parse_html(html), "h2")}
    model = add_notes(zoo.load_entry("gpt2-small"), "a\x00b\u2028c")
    assert [read_text(node) for node in find_all(parse_html(render_page([model])), "li")][-1] == "a\\x00b\\u2028c"


# ---- in order for those who listen


def test_heading_levels_are_consecutive_and_there_is_one_title(any_page: ET.Element) -> None:
    levels = [int(node.tag[1]) for node in find_all(any_page, "h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_every_link_has_a_target_and_ids_are_unique(any_page: ET.Element) -> None:
    ids = [node.attrib["id"] for node in any_page.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    for node in any_page.iter():
        targets = node.attrib.get("aria-labelledby", "").split()
        targets += [value[1:] for name, value in node.attrib.items() if name == "href" and value[0] == "#"]
        targets += [target for value in node.attrib.values() for target in re.findall(r"url\(#([^)]+)\)", value)]
        assert set(targets) <= set(ids)


def test_tables_have_captions_and_header_cells_have_scopes(any_page: ET.Element) -> None:
    tables = find_all(any_page, "table")
    assert tables
    parents = {child: parent for parent in any_page.iter() for child in parent}
    for table in tables:
        assert read_text(find_all(table, "caption")[0]).strip()
        assert all(heading.attrib.get("scope") in ("col", "row", "rowgroup") for heading in find_all(table, "th"))
        assert parents[table].attrib["class"] == "scroll"
        widths = {
            sum(int(cell.attrib.get("colspan", 1)) for cell in find_all(row, "th", "td"))
            for row in find_all(table, "tr")
        }
        assert len(widths) == 1


def test_pictures_and_scrolling_areas_have_labels_and_the_page_has_landmarks(any_page: ET.Element) -> None:
    for node in any_page.iter():
        if node.tag == "svg":
            assert node.attrib["role"] == "img" and ("aria-label" in node.attrib) != ("aria-labelledby" in node.attrib)
        if node.attrib.get("class") == "scroll":
            assert node.attrib["tabindex"] == "0" and node.attrib["aria-label"].strip()
    (html,) = find_all(any_page, "html")
    assert html.attrib["lang"] == "en"
    drawn = {node for svg in find_all(any_page, "svg") for node in svg.iter()}
    for tag in ("main", "header", "nav", "footer", "h1", "title"):
        assert sum(node not in drawn for node in find_all(any_page, tag)) == 1
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [
        node.attrib for node in find_all(any_page, "meta")
    ]
    first = find_all(any_page, "a")[0]
    assert (first.attrib["class"], first.attrib["href"]) == ("skip", "#content")


# ---- what it says


def find_table(node: ET.Element, caption: str) -> list[list[str]]:
    (found,) = [
        table for table in find_all(node, "table") if read_text(find_all(table, "caption")[0]).startswith(caption)
    ]
    return [[read_text(cell).strip() for cell in find_all(row, "th", "td")] for row in find_all(found, "tr")]


def parse_number(text: str) -> int:
    return int(text.replace(",", "").replace("− ", "-"))


def test_components_equal_the_count_and_sum_to_the_total(deepseek_page: ET.Element) -> None:
    heading, *rows, total = find_table(deepseek_page, "Parameters by component")
    assert heading == ["component", "parameters", "share", "active", "arithmetic"]
    assert (parse_number(total[1]), parse_number(total[3])) == (671_026_404_352, 37_552_282_624)
    assert (sum(parse_number(row[1]) for row in rows), sum(parse_number(row[3]) for row in rows)) == (
        671_026_404_352,
        37_552_282_624,
    )
    assert ["router", "106,430,464", "0.0%", "106,430,464", "58 × 256 × 7,168"] in rows


def test_the_trace_highlights_inner_dimensions_and_names_weights(deepseek_page: ET.Element) -> None:
    rows = find_table(deepseek_page, "The forward pass in shapes")
    assert ["LM head", "[7168] · [7168, 129280] = [129280]", "lm_head.weight"] in rows
    assert ["58 × MoE layer model.layers.{layer}   3–60"] in rows
    (head,) = [row for row in find_all(deepseek_page, "tr") if read_text(row).strip().startswith("LM head")]
    assert [read_text(mark) for mark in find_all(head, "b")] == ["7168", "7168"]
    assert "‹" not in read_text(deepseek_page)


def test_published_figures_have_a_verdict_a_source_and_an_explanation(deepseek_page: ET.Element) -> None:
    rows = find_table(deepseek_page, "Published figures")
    assert [
        "reference",
        "671,026,404,352",
        "671,026,404,352",
        "exact",
        "",
        "transformers 5.23.0 DeepseekV3ForCausalLM",
    ] in rows
    assert ["active", "36.7B", "37,552,282,624", "differs", "unexplained, 852M less than active", "card-2"] in rows
    (without,) = [row for row in rows if row[0] == "active without input embedding"]
    assert without[1:4] == ["36.6B", "36,625,603,584", "matches when rounded"]
    assert re.fullmatch("active 37,552,282,624 minus .* 926,679,040 = 36,625,603,584", without[4])
    sources = find_table(deepseek_page, "Sources")
    assert {row[0] for row in sources[1:]} >= {row[5] for row in rows[2:]}
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", row[3]) for row in sources[1:])


def test_every_model_has_a_drawing_and_several_models_have_bars(
    deepseek_page: ET.Element, several_models_page: ET.Element
) -> None:
    assert len(find_all(deepseek_page, "svg")) == 1
    assert len(find_all(several_models_page, "svg")) == 1 + 2
    (bars,) = [node for node in find_all(several_models_page, "figure") if node.attrib.get("class") == "bars"]
    assert "124M" in read_text(bars) and "active 12.9B" in read_text(bars)


def test_every_kind_of_model_is_drawn_and_traced(many_kinds_page: ET.Element) -> None:
    assert len(find_all(many_kinds_page, "svg")) == 1 + 6
    assert (
        sum(
            read_text(find_all(table, "caption")[0]) == "The forward pass in shapes"
            for table in find_all(many_kinds_page, "table")
        )
        == 6
    )


def test_several_models_are_compared_first_and_an_estimate_has_no_count(several_models_page: ET.Element) -> None:
    rows = find_table(several_models_page, "Totals and sizes")
    assert [row[0] for row in rows] == ["model", "gpt2-small", "mixtral-8x7b", "gpt-4"]
    assert rows[2][1] == "46,702,792,704" and rows[3][1].startswith("~")
    articles = find_all(several_models_page, "article")
    assert [read_text(find_all(article, "h2")[0]) for article in articles] == [
        "GPT-2 small",
        "Mixtral 8x7B",
        zoo.load_entry("gpt-4").name,
    ]
    assert "third-party estimates, not counts" in read_text(articles[2]) and "1.8T" in read_text(articles[2])
    assert "Drawing" not in read_text(articles[2])


def test_a_what_if_states_the_changes_and_no_verification(run: Runner) -> None:
    done = run("report", "gpt2-small", "--set", "n_layers=40", "-o", "-")
    assert done.code == 0
    text = read_text(parse_html(done.out))
    assert "322,900,224" in text and "n_layers 12 → 40" in text
    assert "= published" not in text and "unverified" not in text and "No published figures." in text


def test_a_model_with_few_positions_is_traced_with_fewer_tokens() -> None:
    text = read_text(parse_html(report([{"model_type": "gpt2", "n_positions": 3}])))
    assert "The forward pass of 3 tokens" in text and "not traced" not in text


# ---- the command


def test_the_page_is_written_to_a_file_or_to_stdout(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("report", "gpt2-small", "-o", "out.HTML") == (0, "", "")
    html = Path("out.HTML").read_text(encoding="utf-8")
    assert run("report", "gpt2-small", "-o", "-").out == html == report(["gpt2-small"])
