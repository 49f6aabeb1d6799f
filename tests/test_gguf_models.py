"""A GGUF file as a model: its sizes come from its metadata and tensors, and all of its tensors have to match.

The metadata are those that llama.cpp's converter writes from a config.json (convert_hf_to_gguf.py, TextModel).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.formats.gguf import read_gguf
from paramcount.loading.gguf import list_model_types
from tests.gguf_writing import LAYOUTS, Layout, write_gguf
from tests.refusing import error_of, model_error
from tests.running import Runner

# {metadata: the keys of a config.json of which the converter takes the first}
METADATA = {
    "embedding_length": ("hidden_size", "n_embd", "d_model"),
    "block_count": ("num_hidden_layers", "n_layer", "n_layers"),
    "attention.head_count": ("num_attention_heads", "n_head", "n_heads"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "context_length": ("max_position_embeddings", "n_positions"),
    "expert_count": ("num_local_experts", "num_experts", "n_routed_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_count": ("n_shared_experts",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
    "leading_dense_block_count": ("first_k_dense_replace",),
    "attention.q_lora_rank": ("q_lora_rank",),
    "attention.kv_lora_rank": ("kv_lora_rank",),
    "rope.dimension_count": ("qk_rope_head_dim",),
    "attention.sliding_window": ("sliding_window",),
    "attention.value_length_mla": ("v_head_dim",),
}

# Layouts whose metadata and tensors tell every size.
READ = {
    "apertus-apertus", "arcee-arcee", "cohere-command-r", "cohere2-cohere2", "deepseek-deepseek",
    "deepseek_v2-deepseek2", "deepseek_v2-deepseek2-1", "deepseek_v3-deepseek2", "ernie4_5_moe-ernie4_5-moe",
    "exaone4-exaone4", "falcon-falcon-1", "gemma-gemma", "gemma2-gemma2", "gemma2-gemma2-1", "gemma3_text-gemma3",
    "glm-chatglm", "glm4-glm4", "glm4_moe-glm4moe-no_mtp", "glm4_moe_lite-deepseek2", "gpt-sw3-gpt2", "gpt2-gpt2",
    "gpt_neox-gptneox", "gpt_oss-gpt-oss", "granite-granite", "granitemoe-granitemoe",
    "hunyuan_v1_dense-hunyuan-dense", "hunyuan_v1_moe-hunyuan-moe", "internlm2-internlm2", "internlm3-llama",
    "iquestcoder-llama", "jais2-jais2", "laguna-laguna", "llama-llama", "llama-llama-1", "llama-llama-fuse_qkv",
    "mellum-mellum", "mimo_v2_flash-mimo2", "minicpm3-minicpm3", "minimax_m2-minimax-m2", "ministral3-mistral3",
    "mistral-llama", "mistral4-mistral4", "mixtral-llama", "mpt-mpt", "nemotron-nemotron", "olmo-olmo",
    "olmo2-olmo2", "olmo3-olmo2", "olmoe-olmoe", "orion-orion", "phi-phi2", "phi3-phi3", "qwen2-qwen2",
    "qwen2-qwen2-fuse_qkv", "qwen2_moe-qwen2moe", "qwen3-qwen3", "qwen3_moe-qwen3moe", "seed_oss-seed_oss",
    "smollm3-smollm3", "stablelm-stablelm", "starcoder2-starcoder2", "xverse-xverse", "youtu-deepseek2",
    "mixtral, experts one by one", "olmoe, experts one by one", "deepseek-v2-lite, latent whole",
    "deepseek-v3, latent whole", "phi-2, qkv whole", "qwen2-moe, quantised", "llama, wide", "baichuan",
}  # fmt: skip


def complete(layout: Layout) -> dict[str, Any]:
    """The config.json of a layout, with the number of active experts, which no tensor tells."""
    has_experts = any("_exps" in name or (".0.weight" in name and "ffn" in name) for name in layout.tensors)
    return {"num_experts_per_tok": 2, **layout.config} if has_experts else layout.config


def list_metadata(layout: Layout) -> dict[str, str | int | float]:
    config = complete(layout)
    found: dict[str, int] = {}
    for name, keys in METADATA.items():
        value = next((config[key] for key in keys if config.get(key) is not None), None)
        if type(value) is int:
            found[name] = value
    if type(nope := config.get("qk_nope_head_dim")) is int:
        found["attention.key_length_mla"] = nope + int(config["qk_rope_head_dim"])
    if any(".nextn." in name for name in layout.tensors):
        found["nextn_predict_layers"] = 1
        found["block_count"] += 1
    return {f"{layout.architecture}.{name}": value for name, value in found.items()}


def write(folder: Path, name: str, **options: Any) -> Path:
    layout = LAYOUTS[name]
    return write_gguf(folder / "model.gguf", layout, metadata=list_metadata(layout), **options)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.filterwarnings("ignore::paramcount.errors.ConfigWarning")
def test_the_model_in_a_file_is_that_of_its_config_json_or_refused(name: str, tmp_path: Path) -> None:
    path, layout = write(tmp_path, name), LAYOUTS[name]
    if name not in READ:
        assert error_of(pc.load, path).endswith("(expected `paramcount PATH` counts its tensors)")
        return
    count = pc.count(path)
    rows = layout.tensors["token_embd.weight"][0]  # converters drop padding rows
    config = complete(layout)
    if layout.architecture.startswith("gemma"):  # whose LM head the converter does not write
        config = {**config, "tie_word_embeddings": True}
    expected = pc.count(config, set={"vocab_size": rows})
    assert (count.total, count.components) == (expected.total, expected.components)
    if "num_experts_per_tok" in layout.config:
        assert count.active == expected.active


def test_a_note_says_what_was_read_and_what_the_file_stores(tmp_path: Path, run: Runner) -> None:
    path = write(tmp_path, "llama, wide", types="Q8_0")
    loaded = pc.load(path)
    assert pc.count(tmp_path).total == pc.count(loaded).total
    assert (loaded.name, loaded.id) == ("model", str(path))
    first, second = loaded.reading.notes[:2]
    assert first == "read as a GGUF file of llama.cpp's architecture llama, all tensors of which match"
    assert second.startswith("the file stores the weights in ")
    for command in ("memory", "compare", "flops", "explain", "trace", "lora"):
        assert run(command, str(path)).code == 0, command


@pytest.mark.parametrize("changes", [{"feed_forward_length": 8}, {"block_count": 1}, {"embedding_length": 16}])
def test_metadata_that_contradict_the_tensors_are_refused(changes: dict[str, int], tmp_path: Path) -> None:
    layout = LAYOUTS["llama-llama"]
    metadata = list_metadata(layout) | {f"llama.{key}": value for key, value in changes.items()}
    path = write_gguf(tmp_path / "model.gguf", layout, metadata=metadata)
    assert "has tensors that no model with the architecture 'llama' of llama.cpp has" in error_of(pc.load, path)


def test_a_header_without_values_is_enough(tmp_path: Path, run: Runner) -> None:
    path = write(tmp_path, "llama-llama")
    header = read_gguf(path)
    expected = pc.count(path).total
    saved = tmp_path / "header.gguf"
    saved.write_bytes(path.read_bytes()[: header.values_start])
    assert read_gguf(saved)._replace(path=path, state=header.state, has_values=True) == header
    assert pc.count(saved).total == expected
    done = run(str(saved), "--json")
    data = json.loads(done.out)
    assert (done.code, data["total"]) == (0, expected)
    assert "header.gguf has a header and no values" in data["notes"]
    assert run("verify", "gpt2-small", str(saved)).code == 2
    saved.write_bytes(path.read_bytes()[: header.values_start + 1])
    assert "ends at byte" in model_error(saved)


def test_an_unknown_architecture_still_shows_its_tensors(tmp_path: Path, run: Runner) -> None:
    layout = LAYOUTS["llama-llama"]._replace(architecture="unheard-of")
    path = write_gguf(tmp_path / "m.gguf", layout)
    assert error_of(pc.load, path) == (
        f"{path} has the architecture 'unheard-of' of llama.cpp, which paramcount does not read (expected `paramcount "
        "PATH` counts its tensors)"
    )
    done = run(str(path), "--json")
    total = pc.count(layout.config).total
    assert (done.code, json.loads(done.out)["total"]) == (0, total)


def test_the_model_type_of_the_same_name_is_tried_first() -> None:
    assert list_model_types("llama")[0] == "llama"
    assert list_model_types("qwen3moe")[0] == "qwen3_moe"
    assert list_model_types("nothing") == []
