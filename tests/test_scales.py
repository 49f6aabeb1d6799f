"""Quantisation scales, from the declaration: block by block as the releases store them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.counting.quantisation.scales import count_scales, get_scales, make_scales
from paramcount.flow import TensorRow
from paramcount.formats.quantization_config import PackedGroup, Selection
from tests.running import Runner

DATA = Path(__file__).parent / "data"
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
NO_BLOCKS: list[Any] = [None, [128], [128, 0], [True, 128], [-1, 1], "128", [128, 1e2], [2**40, 1], {}]
QWEN = {"model_type": "qwen3_moe", "num_hidden_layers": 4}


def load_config(name: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((DATA / "config_truth" / f"{name}.json").read_text(encoding="utf-8"))["config"]
    return config


def get_group(method: str, excluded: tuple[str, ...] = ()) -> PackedGroup:
    group = get_scales(method, {})
    assert group is not None
    return group._replace(selection=group.selection._replace(excluded=excluded))


def group_scales(count: pc.Count, group: PackedGroup) -> dict[str, TensorRow]:
    """{name of a tensor: its scales}"""
    return {tensor.name: found for tensor in count.tensors if (found := make_scales(tensor, group))}


# ---- whole releases


@pytest.mark.parametrize(
    ("id", "items"),
    [  # tests/data/published_totals.csv; of Kimi K2 by hand, as below
        ("deepseek-v3", {"scales": 40_838_232, "mtp_scales": 702_264}),
        ("deepseek-r1", {"scales": 40_838_232, "mtp_scales": 702_264}),
        ("gpt-oss-20b", {"scales": 597_196_800}),
        ("gpt-oss-120b", {"scales": 3_583_180_800}),
        ("kimi-k2", {"scales": 62_495_192}),
        ("llama-3.1-8b", {}),
    ],
)
def test_a_release_has_the_number_of_scales_that_its_publisher_states(id: str, items: dict[str, int]) -> None:
    assert {name: n for name, n in pc.count(id).release.items() if name.endswith("scales")} == items


def test_the_scales_of_deepseek_v3_and_kimi_k2_equal_the_blocks_counted_by_hand() -> None:
    def attention(heads: int) -> int:  # q down, q up, kv down (576 rows, the last block half full), kv up, output
        return 12 * 56 + heads * 192 // 128 * 12 + 5 * 56 + heads * 256 // 128 * 4 + 56 * heads

    dense, expert = 3 * 144 * 56, 3 * 16 * 56
    assert 61 * attention(128) + 3 * dense + 58 * 257 * expert == pc.count("deepseek-v3").release["scales"]
    assert attention(128) + 257 * expert == pc.count("deepseek-v3").release["mtp_scales"]
    assert 61 * attention(64) + 1 * dense + 60 * 385 * expert == pc.count("kimi-k2").release["scales"]


@pytest.mark.parametrize(
    ("name", "published"),
    [  # safetensors totals of the hub: github sammcj/llmfit hf_models.json
        ("DeepSeek-V3.2", 685_396_921_376),
        ("MiniMax-M2.5", 228_703_644_928),
    ],
)
def test_a_config_json_with_fp8_has_the_scales_of_its_release(name: str, published: int) -> None:
    model = pc.load(load_config(name))
    count, scheme = (
        pc.count(model),
        get_scales(model.release.quantisation if model.release else None, model.reading.unread),
    )
    assert scheme is not None
    assert (
        count.total
        + count.buffers
        + (count.mtp or 0)
        + count.mtp_buffers
        + count.mtp_copies
        + sum(count_scales(count.tensors, scheme).values())
        == published
    )


def test_the_values_of_a_release_are_exact_with_its_scales(run: Runner) -> None:
    v3 = pc.count("deepseek-v3")
    assert v3.checkpoint == sum(v3.release.values()) == v3.to_dict()["checkpoint"] == 684_531_386_000
    assert pc.count("gpt-oss-20b").checkpoint == 21_511_953_984
    lines = run("verify", "deepseek-v3").out.splitlines()
    assert [line.split() for line in lines if line.startswith("checkpoint")] == [
        ["checkpoint", "684,531,386,000", "684,531,386,000", "[5]", "exact"],
        ["checkpoint", "685B", "684,531,386,000", "[2]", "matches", "when"],
    ]


def test_the_overview_names_the_scales(run: Runner) -> None:
    text = " ".join(run("deepseek-v3").out.split())
    assert "released files: 684,531,386,000 = total 671,026,404,352 + buffers 14,848 + MTP 11,610,067,968" in text
    assert "+ FP8 scales 40,838,232 + MTP FP8 scales 702,264" in text
    assert "= total 20,914,757,184 + MXFP4 scales 597,196,800" in " ".join(run("gpt-oss-20b").out.split())


# ---- tensor by tensor


def test_an_incomplete_block_at_the_edge_has_a_scale() -> None:
    rows = [found for tensor in pc.count("deepseek-v3").tensors if (found := make_scales(tensor, get_group("fp8")))]
    narrow = [found for found in rows if "kv_a_proj" in found.name]  # 576 × 7,168
    assert {found.name for found in narrow} == {"model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight_scale_inv"}
    assert [(found.shape, found.copies, found.elements) for found in narrow] == [
        ((5, 56), n, n * 5 * 56) for n in (3, 58, 1)
    ]
    assert {(found.role, found.parameters) for found in rows} == {("scale", 0)}
    assert {found.copies for found in rows if ".experts." in found.name} == {58 * 256, 256}


def test_embeddings_lm_head_router_norms_and_the_mtp_projection_are_not_quantised() -> None:
    count = pc.count("deepseek-v3")
    kept = {tensor.name.rpartition("}.")[2] for tensor in count.tensors} - {
        name.rpartition("}.")[2] for name in group_scales(count, get_group("fp8"))
    }
    assert kept == {
        "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "input_layernorm.weight",
        "post_attention_layernorm.weight",
        "self_attn.q_a_layernorm.weight", "self_attn.kv_a_layernorm.weight", "mlp.gate.weight",
        "mlp.gate.e_score_correction_bias",
        "embed_tokens.weight", "enorm.weight", "hnorm.weight", "eh_proj.weight", "shared_head.norm.weight",
        "shared_head.head.weight",
        "self_attn.rotary_emb.inv_freq",
    }  # fmt: skip


def test_two_matrices_of_an_indexer_are_quantised_and_its_head_weights_are_not() -> None:
    names = [
        name.rpartition("indexer.")[2]
        for name in group_scales(pc.count(load_config("DeepSeek-V3.2")), get_group("fp8"))
        if "indexer" in name
    ]
    assert sorted(set(names)) == ["wk.weight", "wq_b.weight"]


def test_mxfp4_quantises_only_experts_along_their_inputs() -> None:
    scales = group_scales(pc.count("gpt-oss-20b"), get_group("mxfp4"))
    assert {(found.name.rpartition(".")[2], found.shape, found.copies) for found in scales.values()} == {
        ("gate_up_proj_scales", (32, 5760, 90), 12),
        ("down_proj_scales", (32, 2880, 90), 12),
    }


def test_encoders_and_vectors_have_no_scales() -> None:
    for document in ({"model_type": "qwen3_vl"}, {"model_type": "mamba"}, {"model_type": "qwen3_next"}):
        for name in group_scales(pc.count(document), get_group("fp8")):
            assert not any(word in name for word in ("visual", "bias", "conv1d", "A_log", "norm", "embed"))
            assert name.endswith(".weight")


# ---- what a config.json says


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (FP8, ((128, 128), Selection())),
        (FP8 | {"weight_block_size": [64, 256]}, ((64, 256), Selection())),
        (FP8 | {"modules_to_not_convert": ["lm_head", 7, None, ""]}, ((128, 128), Selection(("lm_head",)))),
        (FP8 | {"modules_to_not_convert": "lm_head"}, ((128, 128), Selection())),
        (
            {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
            ((1, 32), Selection(experts="stacked")),
        ),
        *[(FP8 | {"weight_block_size": block}, None) for block in NO_BLOCKS],
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, None),
        ({"quant_method": ["fp8"]}, None),
        ({}, None),
        ("fp8", None),
        (None, None),
    ],
)
def test_a_scheme_is_read_from_a_config_json_only_if_it_is_complete(said: Any, expected: Any) -> None:
    document = QWEN | {"quantization_config": said}
    group = get_scales(None, document)
    assert (group and (group.packing.block, group.selection)) == expected
    assert pc.count(document).total == pc.count(QWEN).total
    assert pc.count(document).warnings == pc.count(QWEN).warnings
    assert pc.count(document).release == {}  # only a zoo entry states the contents of the files


@pytest.mark.parametrize(
    ("kept", "layers"),
    [
        ([], 4),
        (["lm_head", "model.embed_tokens"], 4),
        (["model.layers.1.self_attn.q_proj"], 3),
        (["model.layers.0", "model.layers.3.self_attn"], 2),
        (["q_proj"], 0),
        (["model.layers.*.self_attn"], 0),
        (["model.layers.*.self_attn.k_proj"], 4),
        ([f"model.layers.{i}.self_attn.q_proj" for i in range(4)], 0),
        (["model.layers.1"] * 2, 3),
        (["model.layers.1*"], 3),
        (["("], 4),
    ],
)
def test_modules_that_are_not_converted_have_no_scales(kept: list[str], layers: int) -> None:
    count = pc.count(QWEN)
    found = group_scales(count, get_group("fp8", tuple(kept))).get("model.layers.{layer}.self_attn.q_proj.weight")
    assert (found.copies if found else 0) == layers


def test_scales_list_the_converted_layers() -> None:
    group = get_group("fp8", ("model.layers.1.mlp", "model.layers.3"))
    found = group_scales(pc.count(QWEN), group)
    assert found["model.layers.{layer}.self_attn.q_proj.weight"].repeats[0].indices == (0, 1, 2)
    experts = found["model.layers.{layer}.mlp.experts.{expert}.up_proj.weight"]
    assert (experts.repeats[0].indices, experts.copies) == ((0, 2), 2 * 128)
