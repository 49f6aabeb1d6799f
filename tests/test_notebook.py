"""What a notebook shows of the objects that the API returns."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc


def read_cells(result: Any) -> list[str]:
    """The cells of the table that a notebook shows."""
    return re.findall(r">\s*([^<>]*[^<>\s])\s*</td>", result._repr_html_())


def test_a_notebook_shows_a_count_as_a_table() -> None:
    html = pc.count("deepseek-v3")._repr_html_()
    assert "deepseek-v3: 671,026,404,352 parameters" in html
    numbers = [int(n.replace(",", "")) for n in re.findall(r">\s*([\d,]+)</td>", html)]
    assert numbers[-2:] == [671_026_404_352, 37_552_282_624]
    assert sum(numbers[:-2:2]) == 671_026_404_352
    assert sum(numbers[1:-2:2]) == 37_552_282_624


def test_a_notebook_shows_an_explanation_as_a_table() -> None:
    html = pc.explain("gpt2-small")._repr_html_()
    assert re.search(r">50,257 · 768 *<", html)
    assert "total 124,439,808" in html


def test_a_notebook_shows_a_difference_as_a_table() -> None:
    difference = pc.diff("llama-2-7b", "llama-3.1-8b")
    assert "llama-2-7b → llama-3.1-8b" in difference._repr_html_()
    assert read_cells(difference)[-4:] == ["total", "6,738,415,616", "8,030,261,248", "+1,291,845,632"]


def test_two_drawings_on_one_page_have_different_ids() -> None:
    first, second = (pc.draw("gpt2-small", layer=layer)._repr_svg_() for layer in (0, None))
    assert first.startswith("<svg ")
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<svg "), ("a.html", b"<!doctype html>"), ("a.png", b"\x89PNG")]
)
def test_the_extension_selects_the_format_of_a_saved_drawing(tmp_path: Path, name: str, start: bytes) -> None:
    pc.draw("gpt2-small", layer=0).save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_drawing_is_not_saved_under_an_unknown_extension(tmp_path: Path) -> None:
    with pytest.raises(pc.ParamcountError, match=r"unknown extension '.gif'"):
        pc.draw("gpt2-small", layer=0).save(tmp_path / "a.gif")


def test_equal_counts_have_equal_hashes() -> None:
    one, other = pc.count("mixtral-8x7b"), pc.count("mixtral-8x7b")
    assert one == other
    assert len({one, other, pc.count("gpt2-small")}) == 2


def test_a_notebook_shows_memory_flops_and_training_as_tables() -> None:
    memory = read_cells(pc.memory("llama-3.1-8b", context=4096))
    assert memory[:3] == ["4,096", "537 MB", "16.6 GB"]  # 131,072 bytes per token
    assert read_cells(pc.flops("gpt2-small"))[-3:] == ["total", "285 MFLOPs", "213 GFLOPs"]
    assert "weights" in read_cells(pc.training("gpt2-small", context=1024))


RESULTS: dict[str, Callable[[], Any]] = {
    "count": lambda: pc.count("deepseek-v3"),
    "load": lambda: pc.load("deepseek-v3"),
    "explain": lambda: pc.explain("gpt2-small"),
    "trace": lambda: pc.trace("gpt2-small"),
    "draw": lambda: pc.draw("gpt2-small"),
    "draw_map": lambda: pc.draw_map("gpt2-small"),
    "diff": lambda: pc.diff("gpt2-small", "gpt2-xl"),
    "why": lambda: pc.why("gpt2-small", "137M")[0],
    "memory": lambda: pc.memory("llama-3.1-8b", gpu="h100", context=8192),
    "plan": lambda: pc.plan("llama-3.1-8b", users=4, context=8192, gpu="h100"),
    "flops": lambda: pc.flops("llama-3.1-8b"),
    "lora": lambda: pc.lora("llama-3.1-8b"),
    "training": lambda: pc.training("gpt2-small"),
    "size": lambda: pc.size("gpt2-small", total=300_000_000),
    "audit": lambda: pc.audit([{"model": "gpt2-small", "params": "124M"}]),
    "find_adapters": lambda: pc.find_adapters("llama-3.1-8b", "41.9M"),
}  # fmt: skip
TABLES = RESULTS.keys() - {"load", "draw", "draw_map", "why"}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_short_at_a_prompt_and_a_table_in_a_notebook(name: str) -> None:
    result = RESULTS[name]()
    assert repr(result).startswith(f"{type(result).__name__}(")
    assert len(repr(result)) < 250
    if name in TABLES:
        assert "<table>" in result._repr_html_()


def test_completion_offers_the_api_alone() -> None:
    assert sorted(dir(pc)) == sorted(pc.__all__)


def test_a_notebook_shows_why_a_figure_differs_as_a_sum() -> None:
    (answer,) = pc.why("gpt-oss-20b", "3.6B")
    numbers = [cell for cell in read_cells(answer) if cell[-1].isdigit()]
    assert numbers == ["4,187,440,704", "−579,133,440", "201,088 × 2,880"]
    assert "matches when rounded" in answer._repr_html_()


def read_text(result: Any) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", result._repr_html_()))


@pytest.mark.parametrize(
    ("measure", "model", "arguments"),
    [
        (pc.memory, "llama-3.1-70b", {"gpu": "1xH100"}),
        (pc.memory, "mixtral-8x7b", {"gpu": "RTX 4090", "engine": "llama.cpp", "dtype": "q4_k_m"}),
        (pc.training, "llama-3.1-8b", {"gpu": "1xH100"}),
    ],
)
def test_a_notebook_suggests_arguments_with_which_it_fits(
    measure: Callable[..., Any], model: str, arguments: dict[str, Any]
) -> None:
    (suggestions,) = re.findall(r"fits with (.*?)(?: · | *\n)", read_text(measure(model, **arguments)))
    assert "--" not in suggestions
    first = re.split(" or |, dtype", suggestions)[0]
    changes = eval(f"dict({first})")  # noqa: S307
    assert measure(model, **arguments | changes).fit.fits


def test_a_notebook_shows_the_call_that_checks_a_plan() -> None:
    text = read_text(pc.plan("llama-3.1-70b", gpu="h100", users=20))
    (call,) = re.findall(r"paramcount\.memory\(.*\)", text)
    assert eval(call, {"paramcount": pc}).fit.fits  # noqa: S307
    assert "paramcount memory" not in text
