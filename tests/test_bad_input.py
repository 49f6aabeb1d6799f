"""Bad sizes, fields, mappings and options: each one line that names the place, exit code 2, nothing printed and nothing written."""

from __future__ import annotations

import datetime
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

import paramcount as pc
from paramcount import zoo
from paramcount.architectures import ARCHITECTURES
from paramcount.cli import main
from tests.refusing import assert_one_line, command_refusal, refusal

RUN = (sys.executable, "-c", "from paramcount.cli import main; main()")
MOST = 2**31
OPTIONAL_PARTS = {"n_dense_layers", "n_shared_experts", "n_mtp_layers"}  # a model may have none of these

LLAMA: dict[str, Any] = {
    "vocab_size": 1000, "d_model": 256, "n_layers": 2, "n_heads": 32, "n_kv_heads": 8, "d_head": 8, "d_ff": 512,
    "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
}  # fmt: skip
MODELS = {model.architecture: model for model in map(zoo.entry, zoo.ids()) if model.architecture}
PAPER = {"id": "paper", "kind": "paper", "ref": "arXiv:2302.13971", "accessed": "2026-11-20"}


def entry(architecture: str = "llama", **changes: Any) -> dict[str, Any]:
    """A mapping with the config of some model of that architecture, and these sizes changed; None leaves one out."""
    config = LLAMA if architecture == "llama" else MODELS[architecture].sizes.model_dump()
    config = {name: value for name, value in {**config, **changes}.items() if name not in changes or value is not None}
    return {"architecture": architecture, "config": config}


def vision(**changes: Any) -> dict[str, Any]:
    return entry("mllama", vision={**MODELS["mllama"].sizes.model_dump()["vision"], **changes})


def plain(document: Any) -> Any:
    """Tuples as lists, as a file has them."""
    if isinstance(document, Mapping):
        return {key: plain(value) for key, value in document.items()}
    return [plain(value) for value in document] if isinstance(document, (list, tuple)) else document


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- sizes


def test_the_models_that_the_cases_start_from_are_counted() -> None:
    assert set(MODELS) == set(ARCHITECTURES)
    for architecture in MODELS:
        assert pc.count(plain(entry(architecture))).total > 0


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_every_size_of_every_architecture_is_a_whole_number_in_its_range(architecture: str) -> None:
    sizes = {name: value for name, value in entry(architecture)["config"].items() if type(value) is int}
    assert {"vocab_size", "d_model", "n_layers"} <= set(sizes)
    for name, size in sizes.items():
        least = 0 if name in OPTIONAL_PARTS else 1
        wrong = {
            least - 1: f"= {least - 1} (accepted: a whole number from {least})",
            -(10**40): f"= a number of more than 30 digits (accepted: a whole number from {least})",
            MOST + 1: "= 2147483649 (accepted: a whole number up to 2,147,483,648)",
            10**5000: "= a number of more than 30 digits (accepted: a whole number up to 2,147,483,648)",
            1.5: "= 1.5 (accepted: a whole number)",
            size * 1.0 + 0.5 - 0.5: f"= {size}.0 (accepted: a whole number)",
            float("nan"): "= nan (accepted: a whole number)",
            float("inf"): "= inf (accepted: a whole number)",
        }
        odd = ((True, "true"), (str(size), f"the text '{size}'"), ([size], "a list"), ({}, "a mapping"), (b"1", "a value of type bytes"))
        cases = [*wrong.items(), *((value, f"= {said} (accepted: a whole number)") for value, said in odd)]
        for value, message in cases:
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(entry(architecture, **{name: value}))
            assert str(caught.value) == f"config.{name} {message}"


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_every_field_of_every_architecture_is_required_and_no_other_is_known(architecture: str) -> None:
    fields = list(entry(architecture)["config"])
    for name in fields:
        with pytest.raises(pc.ParamcountError) as caught:
            pc.load(entry(architecture, **{name: None}))
        assert str(caught.value) == f"config.{name}: is missing (accepted: every field written out)"
    message = refusal(entry(architecture, n_layesr=3))
    assert message.startswith(f"config.n_layesr: is not a field (accepted: {', '.join(fields)}); did you mean n_layers")


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_every_flag_of_every_architecture_is_true_or_false(architecture: str) -> None:
    flags = [name for name, value in entry(architecture)["config"].items() if isinstance(value, bool)]
    assert "tie_word_embeddings" in flags
    for name in flags:
        for value, said in ((0, "0"), (1, "1"), ("no", "the text 'no'"), ("true", "the text 'true'"), ([], "a list")):
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(entry(architecture, **{name: value}))
            assert str(caught.value) == f"config.{name} = {said} (accepted: true or false)"


def test_the_largest_size_is_counted_and_stays_exact() -> None:
    assert pc.count(entry(vocab_size=MOST)).embedding == MOST * 256


def test_a_count_of_optional_parts_may_be_zero() -> None:
    count = pc.count(entry("deepseek_v3", n_dense_layers=0, n_shared_experts=0, n_mtp_layers=0))
    assert (count.components["shared_experts"], count.mtp, count.components["mlp"]) == (0, 0, 0)
    assert pc.count(entry("qwen3_moe", dense_layers=[])).components["mlp"] == 0


CONTRADICTIONS = [
    (entry(n_kv_heads=7), "config.n_kv_heads = 7 does not divide n_heads = 32 (accepted: 1, 2, 4, 8, 16, 32)"),
    (entry(n_kv_heads=64), "config.n_kv_heads = 64 does not divide n_heads = 32 (accepted: 1, 2, 4, 8, 16, 32)"),
    (entry(n_heads=MOST, n_kv_heads=3), "config.n_kv_heads = 3 does not divide n_heads = 2147483648 (accepted: 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, "
     "1024, 2048, 4096, … 2147483648)"),
    (entry("gpt2", d_head=65), "config.n_heads × d_head = 25 × 65 = 1625 is not d_model = 1600 (accepted: 1600)"),
    (entry("mixtral", n_active_experts=9), "config.n_active_experts = 9 is more than n_routed_experts = 8 (accepted: at most 8)"),
    (entry("deepseek_v3", n_dense_layers=62), "config.n_dense_layers = 62 is more than n_layers = 61 (accepted: at most 61)"),
    (entry("qwen3_moe", dense_layers=[3, 2]), "config.dense_layers = [3, 2] for n_layers = 48 (accepted: layer indices in rising order, each once, below 48)"),
    (entry("qwen3_moe", dense_layers=[2, 2]), "config.dense_layers = [2, 2] for n_layers = 48 (accepted: layer indices in rising order, each once, below 48)"),
    (entry("qwen3_moe", dense_layers=range(39, 49)), "config.dense_layers = a value of type range (accepted: a list)"),
    (entry("qwen3_moe", dense_layers=[*range(39, 49)]), "config.dense_layers = [39, 40, 41, 42, 43, 44, 45, 46, …] for n_layers = 48 (accepted: layer "
     "indices in rising order, each once, below 48)"),
    (entry("qwen3_moe", dense_layers=[-1]), "config.dense_layers.0 = -1 (accepted: a whole number from 0)"),
    (entry("qwen3_moe", dense_layers=[0, True]), "config.dense_layers.1 = true (accepted: a whole number)"),
    (entry("qwen3_moe", dense_layers="0"), "config.dense_layers = the text '0' (accepted: a list)"),
    (entry("qwen3_moe", dense_layers=[*range(10_001)]), "config.dense_layers = a list (accepted: a list of at most 10,000)"),
    (entry("qwen3_moe", dense_layers=[0], n_layers=MOST), "config.n_layers = 2147483648 beside dense_layers (accepted: at most 10,000 layers where they are "
     "named one by one)"),
    (entry("mllama", n_layers=MOST), "config.n_layers = 2147483648 beside cross_attention_layers (accepted: at most 10,000 layers where they are "
     "named one by one)"),
    (entry("mllama", cross_attention_layers=[99, 100]), "config.cross_attention_layers = [99, 100] for n_layers = 100 (accepted: layer indices in rising "
     "order, each once, below 100)"),
    (entry("mllama", vision=3), "config.vision = 3 (accepted: a mapping)"),
    (vision(n_heads=0), "config.vision.n_heads = 0 (accepted: a whole number from 1)"),
    (vision(n_kv_heads=7), "config.vision.n_kv_heads = 7 does not divide n_heads = 16 (accepted: 1, 2, 4, 8, 16)"),
    (entry("gpt_oss", n_layers=2, layer_types=["full_attention", "ful_attention"]), "config.layer_types.1 = the text 'ful_attention' (accepted: "
     "sliding_attention, full_attention); did you mean full_attention or sliding_attention?"),
    (entry("gpt_oss", n_layers=2, layer_types=["full_attention"]), "config.layer_types: names 1 layers, n_layers = 2 (accepted: one word a layer)"),
    (entry("gpt_oss", layer_types=[""]), "config.layer_types.0 = the text '' (accepted: a text of 1 or more characters)"),
    (entry("gpt_oss", layer_types=["x" * 41]), f"config.layer_types.0 = the text '{'x' * 28}…{'x' * 10}' (accepted: a text of at most 40 characters)"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), CONTRADICTIONS)
def test_sizes_that_contradict_each_other_are_refused(spec: dict[str, Any], message: str) -> None:
    assert refusal(spec) == message


@pytest.mark.parametrize(("spec", "message"), [case for case in CONTRADICTIONS if "range" not in case[1]][:12:3])
def test_the_command_line_puts_the_file_before_the_field(spec: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("configs/llama/x.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(plain(spec)), encoding="utf-8")
    for command in ("show", "compare", "verify", "list"):
        assert command_refusal(capsys, command, "configs/llama/x.yaml", "-o", "out.csv") == f"configs/llama/x.yaml: {message}"
    assert refusal(path) == f"configs/llama/x.yaml: {message}"
