"""What a prompt shows of the results of the API: one short line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import paramcount as pc

TINY = {
    "model_type": "llama", "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 12,
}  # fmt: skip
LONGEST = 200
LARGE = "deepseek-v3"
CLAIM = {"model": "gpt2", "params": "1B", "layers": "12"}
LAYOUT = {"wte.weight": {"dtype": "F32", "shape": [50257, 768], "data_offsets": [0, 154389504]}}


def run_tiny() -> pc.Run:
    draw = np.random.default_rng(0).normal
    weights = {t.name.replace("{layer}", "0"): draw(size=t.shape) for t in pc.count(TINY).tensors}
    return pc.run(TINY, weights, [1, 2], watch=True)


def write_header(folder: Path) -> Path:
    path = folder / "header.json"
    path.write_text(json.dumps(LAYOUT), encoding="utf-8")
    return path


RESULTS: dict[str, Callable[[Path], object]] = {
    "AdapterSearch": lambda _: pc.find_adapters("llama-2-7b", 39976960),
    "Audit": lambda _: pc.audit([CLAIM]),
    "Count": lambda _: pc.count(LARGE),
    "Difference": lambda _: pc.diff("gpt2-small", LARGE),
    "Drawing": lambda _: pc.draw("gpt2-small"),
    "Explanation": lambda _: pc.explain(LARGE),
    "Flops": lambda _: pc.flops(LARGE, gpu="8xh100"),
    "Lora": lambda _: pc.lora("llama-3.1-8b"),
    "Memory": lambda _: pc.memory(LARGE, gpu="8xh100"),
    "Model": lambda _: pc.load(LARGE),
    "ParameterMap": lambda _: pc.draw_map(LARGE),
    "Run": lambda _: run_tiny(),
    "ServingPlan": lambda _: pc.plan("llama-3.1-8b", gpu="h100"),
    "Sizing": lambda _: pc.size("llama-3.1-8b", total=3 * 10**9, limit=2),
    "StoredCount": lambda folder: pc.stored_in(write_header(folder)),
    "Sweep": lambda _: pc.sweep(LARGE, {"n_layers": list(range(62, 200))}),
    "TensorRow": lambda _: pc.count(LARGE).tensors[3],
    "Trace": lambda _: pc.trace("gpt2-small"),
    "Training": lambda _: pc.training("llama-3.1-8b", gpu="8xh100", fsdp=8),
    "Verification": lambda folder: pc.verify("gpt2-small", write_header(folder)),
    "Why": lambda _: pc.why(LARGE)[0],
}
# What the others contain, which a prompt shows as often.
PARTS: dict[str, Callable[[], object]] = {
    "AuditRow": lambda: pc.audit([CLAIM]).rows[0],
    "Candidate": lambda: pc.size("llama-3.1-8b", total=3 * 10**9, limit=2).candidates[0],
    "Cell": lambda: pc.audit([CLAIM]).cells[0],
    "Fit": lambda: pc.memory(LARGE, gpu="8xh100").fit,
    "PlannedDeployment": lambda: pc.plan("llama-3.1-8b", gpu="h100").deployments[0],
    "Step": lambda: pc.trace("gpt2-small").steps[5],
}


def test_every_type_of_the_api_is_here() -> None:
    """A polynomial is its formula, and the others are no results."""
    others = {"ConfigWarning", "ModelLike", "ParamcountError", "Polynomial"}
    assert set(RESULTS) | others == {name for name in pc.__all__ if name[0].isupper()}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_short_line_with_its_type(name: str, tmp_path: Path) -> None:
    result = RESULTS[name](tmp_path)
    assert type(result).__name__ == name
    text = repr(result)
    assert name in text or name == "Run"
    assert len(text) <= LONGEST
    assert text.isprintable()


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_result_is_one_short_line_with_its_type(name: str) -> None:
    text = repr(PARTS[name]())
    assert text.startswith(f"{name}(")
    assert len(text) <= LONGEST


def test_a_hostile_name_is_shortened_and_escaped() -> None:
    text = repr(pc.audit([{"model": "\x1b[31m" + "x" * 1000, "params": "1B"}]).rows[0])
    assert text.isprintable()
    assert len(text) <= LONGEST


def test_completion_shows_the_api_and_nothing_else() -> None:
    pc.count("gpt2-small")
    assert sorted(dir(pc)) == sorted(pc.__all__)
