"""llama.cpp's quantisation mixes: the type of every tensor against llama.cpp's own snapshots, and the sizes of files.

tests/data/gguf_types.csv has llama.cpp's tests/snapshots/*.schema, commit 0c1e57098: the tensors that differ from the
type of their mix, without an importance matrix. Step-3.5-Flash is left out: paramcount does not know its architecture.
tests/data/gguf_quantised.csv has sizes of published files, as llama.cpp's documents and logs print them.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.checkpoints.writers.gguf_names import find_layout, list_gguf_tensors
from paramcount.costs.gguf_mixes import choose_layer_types, find_facts, is_quantised, list_layers, list_mix
from paramcount.counting.components import TOWERS
from paramcount.formats.weights.gguf import MIXES
from tests.running import Runner
from tests.test_gguf_verify import DUMPS, parse_dump

DATA = Path(__file__).parent / "data"
UNITS = {"MiB": 2**20, "GiB": 2**30}
# {model of a snapshot: zoo id, name of a config in tests/data/config_truth, or the sizes that the snapshot states}
MODELS: dict[str, Any] = {
    "deepseek-v3.1": "deepseek-v3",
    "gemma-3-4b-it": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    },
    "glm-4.6v": "glm-4.5-air",
    "gpt-oss-120b": "gpt-oss-120b",
    "meta-llama-3.1-70b-instruct": "llama-3.1-70b",
    "nvidia-nemotron-3-nano-30b-a3b": "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "qwen3-0.6b": "qwen3-0.6b",
    "qwen3-14b": "qwen3-14b",
    "qwen3-coder-next": "qwen3-next-80b-a3b",
    "qwen3.5-397b-a17b": "Qwen3.5-397B-A17B",
    "qwen3.6-27b": {
        "model_type": "qwen3_5_text",
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_hidden_layers": 64,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "linear_num_value_heads": 48,
        "vocab_size": 248320,
    },
}
UNTIED = {"qwen3-0.6b"}  # the file of the snapshot has an LM head of its own
# {dump: why its bytes differ}
DIFFERENT = {
    "Phi 4, Q4_K_M": "written before attn_qkv had the rule of attn_v",
    "dolphin-2.7-mixtral-8x7b, Q4_K_M of early 2024: experts one by one": "an older rule for experts",
}


def test_a_file_includes_the_mtp_layers_that_the_converter_writes() -> None:
    """Sizes and parameters as llama-bench prints them: "glm4moe 106B.A12B Q4_K - Small | 62.27 GiB | 110.47 B" and
    "glm4moe 355B.A32B … | 358.34 B", with a second embedding and LM head in the MTP layer."""
    for id, billions in (("glm-4.5-air", "110.47"), ("glm-4.5", "358.34")):
        assert f"{sum(row.values for row in list_mix(pc.count(id), 'Q8_0')) / 1e9:.2f}" == billions
    memory = pc.memory("glm-4.5-air", dtype="q4_k_s", context=1)
    assert f"{memory.weights_bytes / 2**30:.2f}" == "62.27"
    assert memory.total_bytes == memory.weights_bytes - memory.mtp_bytes + memory.buffers_bytes + memory.kv_cache_bytes
    plain = pc.memory("glm-4.5-air", dtype="q8_0", context=1)
    # eight bits and a scale of 16 per 32 weights; the router, norms and biases in F32
    hidden, inner, experts, table = 4096, 1408, 128, 151552
    packed = (
        2 * table * hidden + 2 * hidden**2 + 3 * (experts + 1) * hidden * inner + 2 * hidden * 12288 + 2 * hidden * 1024
    )
    float32 = experts * hidden + experts + 5 * hidden + 12288 + 2 * 1024
    assert plain.mtp_bytes == packed * 34 // 32 + 4 * float32
    assert "the MTP layers (2,375,059,456 parameters, " in "".join(plain.notes)


def test_the_converter_leaves_out_other_mtp_layers() -> None:
    """conversion/deepseek.py, DeepseekV2Model: skip_mtp."""
    assert pc.memory("deepseek-v3", dtype="q8_0").mtp_bytes == 0
    assert pc.memory("deepseek-v3.2", dtype="q8_0").mtp_bytes > 0
    assert pc.memory("glm-4.5", dtype="bf16").mtp_bytes == 0


def read_rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def list_layer_numbers(text: str) -> list[int]:
    """ "0-2 5" to [0, 1, 2, 5]; "" to [-1], outside of any layer."""
    if not text:
        return [-1]
    ranges = [part.split("-") for part in text.split(" ")]
    return [n for first, *last in ranges for n in range(int(first), int(last[0] if last else first) + 1)]


def read_snapshots() -> dict[tuple[str, str], dict[tuple[int, str], str]]:
    """{(model, mix): {(layer, tensor): type}} for the tensors that differ from the type of their mix."""
    snapshots: dict[tuple[str, str], dict[tuple[int, str], str]] = defaultdict(dict)
    for row in read_rows("gguf_types.csv"):
        snapshot = snapshots[row["model"], row["ftype"]]
        if row["tensor"]:
            snapshot |= {(layer, row["tensor"]): row["type"].upper() for layer in list_layer_numbers(row["blocks"])}
    return snapshots


SNAPSHOTS = read_snapshots()
PUBLISHED = {row["id"]: row for row in read_rows("gguf_quantised.csv")}


def find_model(name: Any) -> Any:
    """The config in tests/data/config_truth with this name; otherwise the name itself."""
    path = DATA / "config_truth" / f"{name}.json"
    if isinstance(name, str) and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))["config"]
    return name


def test_every_snapshot_is_compared() -> None:
    assert {model for model, _ in SNAPSHOTS} == set(MODELS)
    assert {mix for _, mix in SNAPSHOTS} == {*MIXES, "F32", "F16", "BF16"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS)
def test_every_tensor_has_the_type_that_llama_quantize_chooses(model: str) -> None:
    count = pc.count(find_model(MODELS[model]), set={"tie_word_embeddings": False} if model in UNTIED else None)
    layout = find_layout(count.architecture, None)
    tensors = [
        tensor
        for tensor in list_gguf_tensors(count.tensors, (), layout, count)
        if tensor.part != "mtp" and not tensor.tied_to
    ]
    order = sorted((layer, tensor.name, tensor) for tensor in tensors for layer in list_layers(tensor))
    differences, compared = [], 0
    for mix in MIXES:
        snapshot = dict(SNAPSHOTS[model, mix])
        facts = find_facts(count, tensors, mix, layout, imatrix=False)
        for (layer, name, _), (_, tensor, type) in zip(order, choose_layer_types(tensors, facts), strict=True):
            if is_quantised(tensor):
                compared += 1
                expected = snapshot.pop((layer, name.removeprefix("blk.{layer}.")), MIXES[mix])
                if type != expected:
                    differences.append((mix, layer, name, type, expected))
        differences += [(mix, layer, name, "missing", type) for (layer, name), type in snapshot.items()]
    assert differences == []
    assert compared > len(MIXES) * 150


@pytest.mark.parametrize("id", PUBLISHED)
def test_the_size_of_a_published_file_is_that_of_its_mix(id: str) -> None:
    row = PUBLISHED[id]
    if row["reproduced"] == "no":
        assert row["note"]
        return
    dtype = row["ftype"].lower() + ("-imatrix" if row["imatrix"] == "yes" else "")
    memory = pc.memory(find_model(row["zoo_or_config"]), dtype=dtype, set=json.loads(row["set"] or "null"))
    size = memory.weights_bytes  # without encoders, which are in another file
    parameters = sum(group.parameters for group in memory.weights if group.component not in TOWERS)
    digits, digits_of_bits = (len(row[name].partition(".")[2]) for name in ("size", "bits_per_weight"))
    assert f"{size / UNITS[row['size_unit']]:.{digits}f}" == row["size"]
    if row["bits_per_weight"]:
        assert f"{8 * size / parameters:.{digits_of_bits}f}" == row["bits_per_weight"]


@pytest.mark.parametrize("model", ["gemma-3-4b", "qwen2.5-vl-7b", "qwen3-vl-4b", "qwen2-audio-7b"])
def test_encoders_are_in_a_file_of_their_own_and_in_the_total(model: str) -> None:
    memory, count = pc.memory(model, dtype="q4_k_m"), pc.count(model)
    outside = count.total - count.language_model
    assert memory.mmproj_bytes == 2 * outside > 0
    [cost] = [cost for cost in memory.formats if cost.dtype == "Q4_K_M"]
    assert (cost.weights_bytes, cost.mmproj_bytes) == (memory.weights_bytes, memory.mmproj_bytes)
    rest = memory.kv_cache_bytes + memory.state_bytes + memory.buffers_bytes
    assert memory.total_bytes == memory.weights_bytes + memory.mmproj_bytes + rest
    assert pc.memory(model, dtype="bf16").mmproj_bytes == 0


def test_the_mix_of_gemma_3_4b_is_the_file_that_llama_cpp_prints(run: Runner) -> None:
    # llama.cpp prints 2.31 GiB and 5.12 BPW for gemma-3-4b-it-Q4_K_M.gguf
    lines = [" ".join(line.split()) for line in run("memory", "gemma-3-4b", "--dtype", "q4_k_m").out.splitlines()]
    assert "Q4_K_M 2.48 GB 2.31 GiB 5.12 bits per weight" in lines
    assert "+ mmproj 840 MB 801 MiB encoders in F16, a file of their own" in lines


def test_most_published_sizes_are_reproduced() -> None:
    assert sum(row["reproduced"] == "yes" for row in PUBLISHED.values()) >= 47


@pytest.mark.parametrize("name", DUMPS)
def test_the_bytes_of_a_released_file_are_those_of_its_mix(name: str) -> None:
    dump = DUMPS[name]
    mix = re.findall(r"q\d_k_m|q\d_0|mxfp4", name.lower())[0].replace("mxfp4", "mxfp4_moe")
    ending = "-imatrix" if mix == "q4_0" and "Q4_1" in dump["types"] else ""
    memory = pc.memory(dump["model"], dtype=mix + ending)
    size = sum(tensor.size or 0 for tensor in parse_dump(dump).values())
    assert (memory.weights_bytes + memory.buffers_bytes == size) == (name not in DIFFERENT)


def test_tables_of_rotary_frequencies_are_in_the_file() -> None:
    # conversion/phi.py and gemma.py: two tables of 48 factors; half of a head of 512 dimensions, and 30 layer scalars
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1.0] * 48, "rope_theta": 10000.0}
    phi3 = {"model_type": "phi3", "rope_scaling": rope, "max_position_embeddings": 131072}
    phi3 |= {"original_max_position_embeddings": 4096}
    assert pc.memory(phi3, dtype="q4_k_m").buffers_bytes == 2 * 48 * 4
    assert pc.memory({"model_type": "gemma4_text"}, dtype="q4_k_m").buffers_bytes == 256 * 4 + 30 * 4
    assert pc.memory("llama-2-7b", dtype="q4_k_m").buffers_bytes == 0


def test_the_name_of_a_mix_is_read_in_either_case(run: Runner) -> None:
    lower, upper = (pc.memory("qwen3-0.6b", dtype=name) for name in ("q4_0-imatrix", "Q4_0-IMatrix"))
    assert lower == upper
    assert upper.dtype == "Q4_0 (imatrix)"
    assert upper.weights_bytes != pc.memory("qwen3-0.6b", dtype="Q4_0").weights_bytes
    found = run("memory", "qwen3-0.6b", "--dtype", "Q4_0-imatrix", "--json")
    assert json.loads(found.out)["weights_bytes"] == upper.weights_bytes
