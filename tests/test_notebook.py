"""What a Jupyter kernel shows of the objects that the API returns."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
CELLS = (
    'import paramcount as pc; pc.count("deepseek-v3")',
    'pc.explain("gpt2-small")',
    'pc.diff("llama-2-7b", "llama-3.1-8b")',
    'pc.draw("gpt2-small", layer=0)',
    'pc.compare(["gpt2-small"])',
    'pc.memory("llama-3.1-8b", context=4096)',
    'pc.flops("gpt2-small")',
    'pc.training("gpt2-small", context=1024)',
    'pc.why("gpt-oss-20b", "3.6B")[0]',
    'pc.plan("gpt2-small", gpu="h100")',
)


@pytest.fixture(scope="module")
def cell_outputs() -> list[dict[str, str]]:
    """The result of each cell in a real kernel: {MIME type: text}."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(Path(pc.__file__).parents[1])}}
    executed: Any = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    return [dict(cell.outputs[-1]["data"]) for cell in executed.cells]


def test_a_notebook_shows_a_count_as_a_table(cell_outputs: list[dict[str, str]]) -> None:
    html = cell_outputs[0]["text/html"]
    assert "deepseek-v3: 671,026,404,352 parameters" in html
    numbers = [int(n.replace(",", "")) for n in re.findall(r">\s*([\d,]+)</td>", html)]
    assert numbers[-2:] == [671_026_404_352, 37_552_282_624]
    assert sum(numbers[:-2:2]) == 671_026_404_352
    assert sum(numbers[1:-2:2]) == 37_552_282_624


def test_a_notebook_shows_an_explanation_as_a_table(cell_outputs: list[dict[str, str]]) -> None:
    assert re.search(r">50,257 · 768 *<", cell_outputs[1]["text/html"])
    assert "total 124,439,808" in cell_outputs[1]["text/html"]


def test_a_notebook_shows_a_difference_as_a_table(cell_outputs: list[dict[str, str]]) -> None:
    html = re.sub(r"\s+<", "<", cell_outputs[2]["text/html"])
    assert "llama-2-7b → llama-3.1-8b" in html
    assert re.findall(r">\s*([^<>]+)</td>", html)[-4:] == ["total", "6,738,415,616", "8,030,261,248", "+1,291,845,632"]


def test_a_notebook_shows_a_drawing_as_svg(cell_outputs: list[dict[str, str]]) -> None:
    svg = cell_outputs[3]["image/svg+xml"]
    assert svg.startswith("<svg ")
    assert svg.count("<g>") == len(pc.draw("gpt2-small", layer=0).rectangles)


def test_a_notebook_shows_a_comparison_as_a_data_frame(cell_outputs: list[dict[str, str]]) -> None:
    assert "124439808" in cell_outputs[4]["text/html"]


def test_two_drawings_on_one_page_have_different_ids() -> None:
    first, second = (pc.draw("gpt2-small", layer=layer)._repr_svg_() for layer in (0, None))
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


def test_a_notebook_shows_memory_flops_and_training_as_tables(cell_outputs: list[dict[str, str]]) -> None:
    memory, flops, training = (re.sub(r"\s+<", "<", output["text/html"]) for output in cell_outputs[5:8])
    assert re.findall(r">\s*([^<>]+)</td>", memory)[:3] == ["4,096", "537 MB", "16.6 GB"]  # 131,072 bytes per token
    assert re.findall(r">\s*([^<>]+)</td>", flops)[-3:] == ["total", "285 MFLOPs", "213 GFLOPs"]
    assert "weights" in re.findall(r">\s*([^<>]+)</td>", training)


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


def test_an_audit_is_a_table_in_a_notebook(tmp_path: Path) -> None:
    table = tmp_path / "claims.csv"
    table.write_text("model,params\ngpt2-small,124M\n", encoding="utf-8")
    audit = pc.audit(table)
    assert "gpt2-small" in audit._repr_html_()
    assert len(repr(audit)) < 250


def test_completion_offers_the_api_alone() -> None:
    assert sorted(dir(pc)) == sorted(pc.__all__)


def test_a_notebook_shows_why_a_figure_differs_as_a_sum(cell_outputs: list[dict[str, str]]) -> None:
    html = re.sub(r"\s+<", "<", cell_outputs[8]["text/html"])
    cells = re.findall(r">\s*([^<>]+)</td>", html)
    assert [cell for cell in cells if cell[-1].isdigit()] == ["4,187,440,704", "−579,133,440", "201,088 × 2,880"]
    assert "matches when rounded" in html


def test_a_notebook_shows_a_plan_as_a_table(cell_outputs: list[dict[str, str]]) -> None:
    assert "1 × H100 SXM" in cell_outputs[9]["text/html"]


def test_results_write_no_html_of_their_own() -> None:
    """One function renders the tables of all results."""
    root = Path(pc.__file__).parent
    users = [path for path in root.rglob("*.py") if "render_html_fragment" in path.read_text(encoding="utf-8")]
    assert {str(path.relative_to(root)) for path in users} == {"counting/results.py", "output/markup_tables.py"}


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
