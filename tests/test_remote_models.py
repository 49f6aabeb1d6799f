"""Architectures with modeling code outside transformers: released models against published or independent totals.

tests/data/remote_models.json: config.json (without keys that no weight depends on), and the sources of the numbers.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import architecture
from paramcount.flow import given, sum_parameters
from paramcount.huggingface.config import read_config
from tests.batches import in_batches
from tests.comparison import count_shapes
from tests.refusing import model_error
from tests.symbolic import make_symbolic
from tests.type_files import load_facts

DATA = Path(__file__).parent / "data"
MODELS: dict[str, dict[str, Any]] = json.loads((DATA / "remote_models.json").read_text(encoding="utf-8"))


def edit_config(name: str, **changes: Any) -> dict[str, Any]:
    """A released config.json with these keys changed; ... leaves one out."""
    return {key: value for key, value in {**MODELS[name]["config"], **changes}.items() if value is not ...}


def count_difference(name: str, **changes: Any) -> int:
    """How many more parameters a released model has with these keys changed."""
    return pc.count(edit_config(name, **changes)).total - int(MODELS[name]["total"])


def read_variants(file: str) -> list[tuple[str, dict[str, Any], str]]:
    """The lines of a table: name, changed keys and what follows from them."""
    lines = (DATA / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.partition("  # ")[0].split(" | ") for line in lines if not line.startswith("#")]
    return [(name, ast.literal_eval(changes), expected) for name, changes, expected in rows]


@pytest.mark.parametrize("name", MODELS)
def test_a_released_model_has_the_independent_total_and_every_tensor_shape(name: str) -> None:
    expected = MODELS[name]
    count = pc.count(expected["config"])
    assert (count.total, count.embedding, count.lm_head, count.buffers) == (
        expected["total"],
        expected["embedding"],
        expected["lm_head"],
        expected.get("buffers", 0),
    )
    assert sum(count.unreachable.values()) == expected.get("unreachable", 0)
    assert count_shapes(count) == expected["shapes"]
    assert (count.warnings, count.notes) == ((), ())
    assert expected["source"]


@pytest.mark.parametrize("name", MODELS)
def test_the_lm_head_is_counted_and_the_publisher_is_named(name: str) -> None:
    model = read_config(MODELS[name]["config"])
    assert model.reading.head
    assert " of " in architecture(str(model.architecture)).reference


@pytest.mark.parametrize("name", MODELS)
def test_the_declaration_runs_on_symbols(name: str) -> None:
    model = read_config(MODELS[name]["config"])
    c, values = make_symbolic(model.sizes)
    total = sum_parameters(architecture(str(model.architecture)).forward(c, given("tokens", "tokens")))
    assert total.evaluate(**{size: values[size] for size in total.names}) == MODELS[name]["total"]


@pytest.mark.parametrize(
    ("name", "cls", "total"),
    [
        # n_parameters in mteb/models/model_implementations of github embeddings-benchmark/mteb@a905523d0111
        ("jina-embeddings-v2-base-en", "JinaBertModel", 137_368_320),
        ("gte-multilingual-mlm-base", "NewModel", 305_368_320),
        ("nomic-embed-text-v1", "NomicBertModel", 136_731_648),
        ("nomic-embed-text-v2-moe", "NomicBertModel", 475_292_928),
    ],
)
def test_a_class_without_a_head_has_the_published_total(name: str, cls: str, total: int) -> None:
    count = pc.count(edit_config(name, architectures=[cls]))
    assert (count.total, count.reference, count.not_counted) == (total, cls, ("lm_head",))


@pytest.mark.parametrize(
    ("name", "cls", "keys", "more"),
    [
        ("internlm2-7b", "InternLM2ForRewardModel", {}, 4096 - 92544 * 4096),
        ("internlm2-7b", "InternLM2ForSequenceClassification", {"num_labels": 3}, 3 * 4096 - 92544 * 4096),
        ("MiniCPM4-8B", "MiniCPMForSequenceClassification", {"num_labels": 1}, 4096 - 73448 * 4096),
        ("chatglm2-6b", "ChatGLMForSequenceClassification", {"num_labels": 5}, 5 * 4097 - 65024 * 4096),
    ],
)
def test_a_published_head_replaces_the_lm_head(name: str, cls: str, keys: dict[str, Any], more: int) -> None:
    assert count_difference(name, architectures=[cls], **keys) == more
    count = pc.count(edit_config(name, architectures=[cls], **keys))
    assert (count.reference, count.lm_head, count.not_counted, count.warnings) == (cls, 0, (), ())


def test_jinas_reranker_has_the_published_total() -> None:
    """n_parameters in mteb/models/model_implementations/jina_models.py of github embeddings-benchmark/mteb@a905523d."""
    config = load_facts("qwen3")["zoo_configs"]["qwen3-0.6b"]
    count = pc.count({**config, "architectures": ["JinaForRanking"]})
    assert (count.total, count.components["other"]) == (596_836_352, 1024 * 512 + 512 * 512)


# ---- variants that no released model has


@in_batches(("name", "changes", "more"), read_variants("remote_changes"))
def test_a_changed_key_changes_the_total_by_the_expected_number(name: str, changes: dict[str, Any], more: str) -> None:
    assert count_difference(name, **changes) == eval(more)  # noqa: S307  # arithmetic


def deepseek_vl2_config(**changes: Any) -> dict[str, Any]:
    """DeepSeek-VL2 small with these keys of its language model changed."""
    return edit_config(
        "deepseek-vl2-small", language_config={**MODELS["deepseek-vl2-small"]["config"]["language_config"], **changes}
    )


def test_the_router_of_deepseek_vl2_has_a_learned_bias_with_noaux_tc() -> None:
    more = pc.count(deepseek_vl2_config(topk_method="noaux_tc")).total - MODELS["deepseek-vl2-small"]["total"]
    assert more == 26 * 64


@pytest.mark.parametrize(
    ("name", "published"), [("deepseek-vl2-tiny", 3_370_501_440), ("deepseek-vl2-small", 16_148_349_504)]
)
def test_total_plus_unreachable_of_deepseek_vl2_is_the_safetensors_total(name: str, published: int) -> None:
    count = pc.count(edit_config(name))
    assert count.total + sum(count.unreachable.values()) == published


def searched_config(*blocks: tuple[dict[str, Any], dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A small config of layers from an architecture search."""
    sizes = {"vocab_size": 100, "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": len(blocks)}
    return {
        "model_type": "nemotron-nas",
        **sizes,
        "block_configs": [{"attention": attention, "ffn": ffn} for attention, ffn in blocks],
        **more,
    }


NO_OP, LINEAR = {"no_op": True, "n_heads_in_group": None, "ffn_mult": None}, {"replace_with_linear": True}
OUTSIDE_LAYERS = 2 * 100 * 64 + 64  # embeddings and the last norm


@pytest.mark.parametrize(
    ("block", "parameters"),
    [
        ((NO_OP, NO_OP), 0),
        ((LINEAR, NO_OP), 64 * 64 + 64),
        ((NO_OP, LINEAR), 64 * 64 + 64),
        (({"n_heads_in_group": 4}, NO_OP), 64 + 2 * 64 * 64 + 2 * 16 * 64),
        (({"n_heads_in_group": 8, "window_length": 7}, NO_OP), 64 + 2 * 64 * 64 + 2 * 8 * 64),
        ((NO_OP, {"ffn_mult": 0.5}), 64 + 3 * 64 * 256),
        ((NO_OP, {"ffn_mult": 6}), 64 + 3 * 64 * 256),  # 4 · 64, a multiple of 256 as it is
        ((NO_OP, {"ffn_mult": 6.03}), 64 + 3 * 64 * 512),
    ],
)
def test_a_layer_of_an_architecture_search_has_only_its_configured_parts(
    block: tuple[dict[str, Any], dict[str, Any]], parameters: int
) -> None:
    assert pc.count(searched_config(block)).total == OUTSIDE_LAYERS + parameters
    other = ({"n_heads_in_group": 1}, {"ffn_mult": 2.625})
    both = pc.count(searched_config(block, other, block)).total
    assert both - pc.count(searched_config(other)).total == 2 * parameters


@in_batches(("name", "changes", "key"), read_variants("remote_refusals"))
def test_a_config_that_the_publishers_code_would_not_build_like_this_is_an_error(
    name: str, changes: dict[str, Any], key: str
) -> None:
    assert key in model_error(edit_config(name, **changes)).partition(":")[0]


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (edit_config("Hunyuan-A50B-Pretrain", moe_intermediate_size=[3072] * 64), "moe_intermediate_size"),
        (deepseek_vl2_config(kv_lora_rank=None), "use_mla"),
        (deepseek_vl2_config(num_experts_per_tok=None), "num_experts_per_tok"),
        (deepseek_vl2_config(topk_method="best"), "topk_method"),
        (deepseek_vl2_config(moe_layer_freq=2), "moe_layer_freq"),
        (searched_config(({"n_heads_in_group": 3}, NO_OP)), "block_configs.0.attention.n_heads_in_group"),
        (searched_config(({}, NO_OP)), "block_configs.0.attention.n_heads_in_group"),
        (searched_config((NO_OP, {})), "block_configs.0.ffn.ffn_mult"),
        (searched_config((NO_OP, {"ffn_mult": "2"})), "block_configs.0.ffn.ffn_mult"),
        (searched_config((NO_OP, {"ffn_mult": -1.0})), "block_configs.0.ffn.ffn_mult"),
        (searched_config((NO_OP, {"no_op": True, **LINEAR})), "block_configs.0.ffn.replace_with_linear"),
        (searched_config((NO_OP, {"moe": {"num_local_experts": 8}})), "block_configs.0.ffn.moe"),
        (searched_config(({"mamba": {"state_dim": 128}}, NO_OP)), "block_configs.0.attention.mamba"),
        (searched_config((NO_OP, NO_OP)) | {"block_configs": [None]}, "block_configs"),
    ],
)
def test_layers_that_the_publishers_code_would_not_build_like_this_are_an_error(
    document: dict[str, Any], where: str
) -> None:
    assert where in model_error(document).partition(":")[0]


@pytest.mark.parametrize("model_type", ["kimi_k2", "deepseek_v3"])
def test_kimi_k2_is_counted_like_its_zoo_entry_alone_and_inside_k2_5(model_type: str) -> None:
    alone = edit_config("Kimi-K2-Instruct", model_type=model_type)
    count, entry = pc.count(alone), pc.count("kimi-k2")
    assert (count.components, count.active, count.buffers) == (entry.components, entry.active, entry.buffers)
    around = {
        "model_type": "kimi_k25",
        "architectures": ["KimiK25ForConditionalGeneration"],
        "tie_word_embeddings": False,
        "text_config": alone,
    }
    whole = pc.count(around)
    assert (whole.language_model, whole.scope, whole.not_counted) == (entry.total, "model", ())


def test_the_mtp_layers_of_mimo_account_for_the_rest_of_its_released_files() -> None:
    expected = MODELS["MiMo-7B-Base"]
    count = pc.count(expected["config"])
    assert expected["total"] + count.mtp == 7_833_409_536  # the safetensors total of XiaomiMiMo/MiMo-7B-Base
    assert {tensor.name for tensor in count.tensors if tensor.part == "mtp"} >= {
        "model.mtp_layers.{layer}.input_proj.weight",
        "model.mtp_layers.{layer}.final_layernorm.weight",
        "model.mtp_layers.{layer}.self_attn.q_proj.bias",
    }
    assert pc.count(edit_config("MiMo-7B-Base", num_nextn_predict_layers=...)).mtp == 0


def test_hunyuan_large_takes_one_number_of_active_experts() -> None:
    """HunYuanTopKGate in models/modeling_hunyuan.py of github Tencent/Tencent-Hunyuan-Large@cdc3735 hands it to
    torch.topk. A list with one value per layer belongs to another class, that of Hunyuan-A13B.
    """
    found = model_error(edit_config("Hunyuan-A50B-Pretrain", moe_topk=[2] * 64))
    assert found == "moe_topk = [2, 2, 2, …] (expected a positive integer)"
