"""What the page to explore shows before its data are read: the rows of all models, and the start."""

from __future__ import annotations

import json
import re

import pytest

import paramcount as pc
from paramcount.counting.tree import group_tensors
from paramcount.drawing.colours import ON_DARK, measure_luminance
from paramcount.explore.maps import WIDTH, draw_small_map, list_blocks
from paramcount.explore.page import compress, expand
from paramcount.explore.rows import FAMOUS, export_rows, list_rows, read_rows, sort_by_fame, sort_by_release
from paramcount.explore.start import build_start, choose_examples
from paramcount.zoo import list_ids
from tests.test_explore import build_small_page

DARK_PAPER = "#0f1318"


def test_the_rows_of_built_in_models_are_those_that_are_computed() -> None:
    ids = ["gpt2-small", "deepseek-v3", "t5-small", "mamba-130m", "qwen2-vl-2b"]
    rows = {row["id"]: row for row in read_rows()}
    assert [rows[id] for id in ids] == list(list_rows(map(pc.load, ids)))


def test_the_famous_models_are_in_the_zoo_and_first_and_then_the_newest() -> None:
    assert set(FAMOUS) <= set(list_ids(own=False))
    rows = list(read_rows())
    ids = [row["id"] for row in sort_by_fame(rows)]
    assert ids[: len(FAMOUS)] == list(FAMOUS)
    rest = [row for row in sort_by_fame(rows) if row["id"] not in FAMOUS]
    assert rest == [row for row in sort_by_release(rows) if row["id"] not in FAMOUS]
    dates = [row["released"] or "" for row in sort_by_release(rows)]
    assert dates == sorted(dates, reverse=True)


def test_integers_that_javascript_cannot_hold_are_trees() -> None:
    (row,) = export_rows([next(read_rows()) | {"total": 2**60, "active": 7, "own": False}])
    assert (row["total"], row["active"], row["own"]) == (["integer", "1152921504606846976"], 7, False)


def test_the_data_of_a_page_are_the_same_after_compression() -> None:
    lists = {"structures": [{"a": 1}, {"b": [2]}], "parts": [{"n": n} for n in range(9001)], "drawings": []}
    plain = {"expressions": ["x", 1], "packings": [], "words": ["ü\n", "\u2028"]}
    data = {
        "blocks": {"ids": 1},
        "ids": 2,
        "layout": 3,
        "models": [{"id": f"m{n}", "article": f"<p>{n}</p>"} for n in range(201)],
        **lists,
        **plain,
    }
    assert expand(compress(data)) == data


def test_the_start_names_each_number_with_all_of_its_digits() -> None:
    ids = ["gpt2-small", "deepseek-v3", "llama-3.1-8b"]
    models = {id: pc.load(id) for id in ids}
    rows = list(list_rows(models.values()))
    assert choose_examples(rows) == ("llama-3.1-8b", ["deepseek-v3", "gpt2-small"])
    html = build_start(rows, models)
    for total, short in (("671026404352", "671B"), ("8030261248", "8.03B"), ("124439808", "124M")):
        assert f'<span title="{int(total):,}" data-copy="{total}">{short}</span>' in html
    terms = re.search(r'class="sum">(.*?)</figcaption>', html)
    assert terms is not None
    whole_sum, *parts = map(int, re.findall(r'data-copy="(\d+)"', terms[1]))
    assert sum(parts) == whole_sum == 8_030_261_248  # Llama 3.1's README: 8.03B
    assert set(re.findall(r'href="#(\w+)/', html)) == {"model", "fit", "inside"}


def test_the_start_of_one_model_is_about_it_alone() -> None:
    model = pc.load("t5-small")
    html = build_start(list(list_rows([model])), {"t5-small": model})
    assert "Exact parameter counts of one language model" in html
    assert set(re.findall(r'href="#\w+/([^"]*)"', html)) == {"t5-small"}


@pytest.mark.parametrize("id", ["deepseek-v3", "gpt-oss-20b"])
def test_the_small_map_has_the_experts_of_one_token_in_dark(id: str) -> None:
    count = pc.count(id)
    blocks = list(list_blocks(group_tensors(count)))
    assert sum(block.parameters for block in blocks) == count.total
    idle = sum(b.parameters * (b.cells - b.active) // b.cells for b in blocks if b.component == "experts")
    assert count.total - idle == count.active
    html = draw_small_map(count, id, 100.0)
    areas = [float(w) * float(h) for w, h in re.findall(r'width="([\d.]+)" height="([\d.]+)"', html)]
    assert sum(areas) == pytest.approx(WIDTH * 100.0, rel=1e-2)
    assert html.count('class="active"') == sum(block.active < block.cells for block in blocks)


def test_colours_that_are_dark_are_lighter_on_a_dark_ground() -> None:
    rules = build_small_page().partition("<style>")[2].partition("</style>")[0]
    pairs = dict(re.findall(r"--c-(\w+):light-dark\((?:[^,]*),(#\w+)\)", rules))
    assert ON_DARK.items() <= pairs.items()
    paper = measure_luminance(DARK_PAPER)
    for name, colour in pairs.items():
        assert (measure_luminance(colour) + 0.05) / (paper + 0.05) >= 3, name


def test_rows_are_json() -> None:
    assert json.loads(json.dumps(export_rows(read_rows())))[0]["id"] == FAMOUS[0]
