"""Architectures with modeling code outside transformers: released models against published or independent totals.

tests/data/remote_models.json: config.json (without keys that no weight depends on), and the sources of the numbers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import architecture
from paramcount.flow import given, sum_parameters
from paramcount.huggingface.config import read_config
from tests.comparison import count_shapes
from tests.refusing import model_error
from tests.symbolic import make_symbolic
from tests.type_files import load_facts

MODELS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "remote_models.json").read_text(encoding="utf-8")
)


def edit_config(name: str, **changes: Any) -> dict[str, Any]:
    """A released config.json with these keys changed; ... leaves one out."""
    return {key: value for key, value in {**MODELS[name]["config"], **changes}.items() if value is not ...}


def count_difference(name: str, **changes: Any) -> int:
    """How many more parameters a released model has with these keys changed."""
    return pc.count(edit_config(name, **changes)).total - int(MODELS[name]["total"])


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


@pytest.mark.parametrize(
    ("name", "changes", "more"),
    [
        ("chatglm-6b", {"tie_word_embeddings": False}, 130528 * 4096),
        ("chatglm-6b", {"inner_hidden_size": ...}, 0),
        ("chatglm2-6b", {"add_qkv_bias": False}, -28 * (4096 + 512)),
        ("chatglm2-6b", {"add_bias_linear": True}, 28 * (4096 + 2 * 13696 + 4096)),  # q, k and v have theirs already
        ("chatglm2-6b", {"multi_query_attention": False}, 28 * (4096 + 1) * (8192 - 512)),
        ("chatglm2-6b", {"rmsnorm": False}, 57 * 4096),
        ("chatglm2-6b", {"post_layer_norm": False}, -4096),
        ("chatglm2-6b", {"apply_residual_connection_post_layernorm": True}, 0),
        ("chatglm2-6b", {"tie_word_embeddings": True}, 0),  # no code reads it
        ("Baichuan2-7B-Base", {"max_position_embeddings": ...}, 0),
        ("internlm-20b", {"bias": ...}, 60 * 4 * 5120),
        ("internlm2-7b", {"bias": True}, 32 * (4096 + 2 * 1024 + 4096)),
        ("MiMo-7B-Base", {"num_nextn_predict_layers": 2}, 0),  # beside the total
        ("MiMo-7B-Base", {"tie_word_embeddings": True}, -151680 * 4096),
        ("MiniCPM4-8B", {"tie_word_embeddings": ...}, -73448 * 4096),
        ("MiniCPM4-8B", {"attention_bias": True}, 32 * (4096 + 2 * 256 + 4096)),
        ("Orion-14B-Base", {"attention_bias": True}, 40 * 4 * 5120),
        ("Aquila2-34B", {"attention_bias": True}, 60 * (6144 + 2 * 1024 + 6144)),
        ("Aquila2-34B", {"num_key_value_heads": ...}, 60 * 2 * (6144 - 1024) * 6144),
        ("Skywork-13B-base", {"num_key_value_heads": 12}, -52 * 2 * 24 * 128 * 4608),
        ("grok-1", {"tie_word_embeddings": False}, 131072 * 6144),
        ("snowflake-arctic-instruct", {"parallel_attn_mlp_res": False}, -35 * (3 * 7168 * 7168 + 7168)),
        # 17 layers stay experts; the other 18 lose 127 of 128, the router, the small MLP and its norm
        (
            "snowflake-arctic-instruct",
            {"moe_layer_frequency": 2},
            -18 * (127 * 3 * 7168 * 4864 + 128 * 7168 + 3 * 7168 * 7168 + 7168),
        ),
        ("Hunyuan-A50B-Pretrain", {"use_cla": False}, 32 * 2 * 640 * 6400),
        (
            "Hunyuan-A50B-Pretrain",
            {"cla_share_factor": 3},
            -10 * 2 * 640 * 6400,
        ),  # 22 layers own keys and values instead of 32
        ("Hunyuan-A50B-Pretrain", {"use_qk_norm": False}, -64 * 2 * 80),
        ("Hunyuan-A50B-Pretrain", {"use_mixed_mlp_moe": False}, -64 * 3 * 6400 * 18304),
        ("Hunyuan-A50B-Pretrain", {"num_shared_expert": 2}, 64 * 3 * 6400 * 18304),
        ("Hunyuan-A50B-Pretrain", {"num_experts": 1}, -64 * 16 * (3 * 6400 * 18304 + 6400)),  # one MLP and no router
        ("Hunyuan-A50B-Pretrain", {"attention_bias": True}, 64 * 2 * 6400 + 32 * 2 * 640),
        ("InternVL3-1B", {"tie_word_embeddings": True}, 0),  # the published config class unties the language model
        ("InternVL3-1B", {"downsample_ratio": 1.0}, -3 * 1024 * (896 + 2)),
        # InternViT-6B: 48 layers on 16 × 16 patches and a class token, in the place of the one of 304,012,288
        (
            "InternVL3-1B",
            {"vision_config": ...},
            48 * (12 * 3200**2 + 12800 + 8 * 3200) + (588 + 259) * 3200 + 4 * 2176 * 898 - 304012288,
        ),
        ("MiniCPM-MoE-8x2B", {"num_experts": 0}, -40 * (7 * 3 * 2304 * 5760 + 8 * 2304)),
        ("EXAONE-3.5-32B-Instruct", {"intermediate_size": None}, -64 * 3 * 5120 * (27392 - 4 * 5120)),
        ("EXAONE-3.5-32B-Instruct", {"tie_word_embeddings": ...}, -102400 * 5120),
        ("Ling-lite", {"use_qkv_bias": True, "use_bias": True}, 28 * (24 * 128 + 2048)),
        ("Ling-lite", {"head_dim": None}, 0),
        ("Ling-lite", {"num_shared_experts": None}, -28 * 2 * 3 * 2048 * 1408),
        ("Ling-lite", {"first_k_dense_replace": 1}, 3 * 2048 * 5632 - 66 * 3 * 2048 * 1408 - 64 * 2048),
        ("Ling-mini-2.0", {"use_qk_norm": False}, -20 * 2 * 128),
        ("Ling-mini-2.0", {"head_dim": ...}, 0),
        ("step3", {"projector_bias": ...}, 7168),
        ("step3", {"tie_word_embeddings": True}, 0),  # the published code unties the language model
        ("step3-text", {"moe_layers_enum": ...}, 0),
        ("step3-text", {"moe_layers_enum": list(range(5, 60))}, 3 * 7168 * (18432 - 49 * 5120) - 48 * 7168),
        ("step3-text", {"tie_word_embeddings": True}, -128815 * 7168),
        ("MiniCPM-V-4_5", {"query_num": 96}, 32 * 4096),
        ("MiniCPM-V-4_5", {"drop_vision_last_layer": ...}, -(4 * 1152**2 + 2 * 1152 * 4304 + 4304 + 9 * 1152)),
        ("Kimi-VL-A3B-Instruct", {"tie_word_embeddings": True}, 0),  # the language model's own section decides
        (
            "MiniMax-M1-80k",
            {"shared_intermediate_size": 5},
            80 * (3 * 6144 * 9216 + 6144),
        ),  # the other width is read, but for its sign
        ("MiniMax-M1-80k", {"postnorm": False}, 0),
        ("falcon-40b", {"n_head_kv": 128}, 60 * 2 * 120 * 64 * 8192),
        ("falcon-40b", {"bias": True}, 60 * (9216 + 8192 + 32768 + 8192)),
        ("falcon-40b", {"alibi": True}, 0),
        ("falcon-40b", {"multi_query": True}, 0),  # its code does not read it
        ("falcon-40b", {"ffn_hidden_size": 8192}, 0),  # nor this
        ("falcon-40b", {"tie_word_embeddings": False}, 65024 * 8192),
        ("falcon-40b", {"n_layer": ..., "num_hidden_layers": 60, "hidden_size": ..., "n_embed": 8192}, 0),
        ("falcon-40b", {"architectures": ["FalconForCausalLM"], "new_decoder_architecture": True}, 0),
        ("falcon-7b", {"multi_query": ...}, 32 * 2 * 70 * 64 * 4544),
        ("falcon-7b", {"parallel_attn": ...}, 32 * 2 * 4544),
        ("falcon-7b", {"bias": True}, 32 * (4672 + 4544 + 18176 + 4544)),
        ("falcon-7b", {"model_type": ...}, 0),
        ("TeleChat-12B", {"num_key_value_heads": 8}, -38 * 2 * 24 * 160 * 5120),
        ("TeleChat-12B", {"embed_layernorm": True}, 5120),
        ("TeleChat-12B", {"tie_word_embeddings": ...}, -120000 * 5120),
        ("TeleChat-12B", {"intermediate_size": 8192}, 0),  # ffn_hidden_size is read instead
        (
            "Telechat-7B",
            dict.fromkeys(
                ("hidden_size", "n_head", "n_layer", "vocab_size", "ffn_hidden_size", "embed_layernorm"), ...
            ),
            0,
        ),
        ("Yi-34B", {"num_key_value_heads": None}, 60 * 2 * (7168 - 1024) * 7168),
        ("Yi-34B", {"tie_word_embeddings": True}, -64000 * 7168),
        ("stable-code-3b", {"use_qkv_bias": True}, 32 * 3 * 2560),  # StableLM 2 1.6B
        ("stable-code-3b", {"num_key_value_heads": 8}, -32 * 2 * 24 * 80 * 2560),
        ("stable-code-3b", {"rope_pct": 1.0}, 0),
        (
            "jina-embeddings-v2-base-en",  # jina-embeddings-v2-base-code
            {"auto_map": {"AutoModel": "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.X"}, "_name_or_path": ...},
            12 * 6 * 768,
        ),
        ("jina-embeddings-v2-base-en", {"feed_forward_type": "reglu"}, 0),
        ("jina-embeddings-v2-base-en", {"position_embedding_type": ..., "max_position_embeddings": 512}, 512 * 768),
        ("gte-multilingual-mlm-base", {"type_vocab_size": 0}, -768),
        ("jina-embeddings-v3", {"lora_adaptations": ["one"]}, -4 * 2_589_260),
        ("jina-embeddings-v3", {"lora_rank": 5}, 3_236_575),
        (
            "jina-embeddings-v3",
            {"auto_map": {"AutoModel": "jinaai/xlm-roberta-flash-implementation--modeling_xlm_roberta.X"}},
            -4 * 3_236_575,
        ),
        ("gte-multilingual-mlm-base", {"tie_word_embeddings": False}, 250048 * 768),
        ("nomic-embed-text-v1", {"vocab_size": 30522}, 0),
        ("OLMo-7B", {"weight_tying": True}, -50304 * 4096),
        ("OLMo-7B", {"embedding_size": None}, -2 * 24 * 4096),
        ("OLMo-7B", {"layer_norm_with_affine": True}, 65 * 4096),
        ("OLMo-7B", {"layer_norm_with_affine": True, "bias_for_layer_norm": True}, 65 * 2 * 4096),
        ("OLMo-7B", {"n_kv_heads": 8, "multi_query_attention": None}, -32 * 2 * 24 * 128 * 4096),
        ("OLMo-7B", {"multi_query_attention": True}, -32 * 2 * 31 * 128 * 4096),
        ("OLMo-7B", {"activation_type": "gelu"}, 32 * 11008 * 4096),
        ("OLMo-7B", {"mlp_hidden_size": ..., "mlp_ratio": 8}, 32 * 3 * (16384 - 11008) * 4096),
        ("OLMo-7B", {"attention_layer_norm": True, "attention_layer_norm_with_affine": True}, 32 * 2 * 4096),
        ("moss-default", {"rotary_dim": None}, 0),
        ("moss-default", {"n_inner": 16383}, -28 * (2 * 4096 + 1)),
        ("phi-1_5-mixformer", {"architecture": [{"mlp": {"mlp_cls": "fused_mlp"}}] * 24}, 0),
        ("phi-1_5-mixformer", {"tie_word_embeddings": True}, -51200 * 2048),
        ("Phi-3-small-8k-instruct", {"num_key_value_heads": 32}, 32 * 2 * 24 * 128 * 4097),
        ("Phi-3-small-8k-instruct", {"dense_attention_every_n_layers": None}, 0),
        ("Yuan2-2B-hf", {"tie_word_embeddings": ...}, 0),
        ("openPangu-Embedded-7B", {"bias": False}, -34 * (2 * 4096 + 2 * 1024)),
        ("openPangu-Embedded-7B", {"qkv_bias": False}, -34 * (4096 + 2 * 1024)),
        ("nomic-embed-text-v1", {"n_inner": 3071}, 0),  # rounded up to a multiple of 256
        ("nomic-embed-text-v1", {"n_inner": None}, -12 * 3 * 1024 * 768),
        ("nomic-embed-text-v1", {"activation_function": "gelu", "n_inner": None}, -12 * 3072 * 768),
        ("nomic-embed-text-v2-moe", {"moe_every_n_layers": 0}, -6 * (14 * 3072 * 768 + 8 * 768 - 3072)),
        ("MiniMax-M1-80k", {"attn_type_list": [1] * 80}, -70 * (5 * 8192 * 6144 + 8192 - 2 * (8192 + 1024) * 6144)),
    ],
)
def test_a_changed_key_changes_the_total_by_the_expected_number(name: str, changes: dict[str, Any], more: int) -> None:
    assert count_difference(name, **changes) == more


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


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (edit_config("chatglm-6b", position_encoding_2d=False), "position_encoding_2d"),
        (edit_config("chatglm-6b", pre_seq_len=128), "pre_seq_len"),
        (edit_config("chatglm-6b", hidden_size=4100), "hidden_size"),
        (edit_config("glm-4-9b-chat", vision_config={"hidden_size": 1792}), "vision_config.num_hidden_layers"),
        (edit_config("cogvlm2-llama3-chat-19B", num_multi_query_heads=...), "num_multi_query_heads"),
        (edit_config("Molmo-7B-D-0924", intermediate_size=37887), "intermediate_size"),
        (edit_config("Molmo-7B-D-0924", vocab_size=152065), "embedding_size"),
        (edit_config("DeepSeek-OCR", hidden_size=2560), "hidden_size"),
        (edit_config("Qwen-VL-Chat", hidden_size=5120, num_attention_heads=40), "visual.output_dim"),
        (edit_config("Phi-4-multimodal-instruct", vision_lora={"r": 256, "layer": ".*"}), "vision_lora.layer"),
        (edit_config("Phi-4-multimodal-instruct", speech_lora=...), "speech_lora.r"),
        (edit_config("Janus-Pro-7B", gen_vision_config=...), "gen_vision_config.cls"),
        (edit_config("MiniCPM-V-2", vision_encoder="eva02_enormous_patch14_clip_224"), "vision_encoder"),
        (edit_config("chatglm2-6b", pre_seq_len=128), "pre_seq_len"),
        (edit_config("chatglm2-6b", multi_query_group_num=3), "number of KV heads"),
        (edit_config("Baichuan2-7B-Base", vocab_size=...), "vocab_size"),
        (edit_config("Baichuan2-7B-Base", num_attention_heads=24), "hidden_size"),
        (edit_config("MiniCPM4-8B", num_experts=8), "num_experts_per_tok"),
        (edit_config("MiniCPM-MoE-8x2B", num_experts_per_tok=0), "num_experts_per_tok"),
        (edit_config("MiniCPM-MoE-8x2B", num_experts_per_tok=9), "num_experts_per_tok"),
        (edit_config("Phi-3-vision-128k-instruct", embd_layer="default"), "embd_layer.embedding_cls"),
        (edit_config("Phi-3-vision-128k-instruct", img_processor={"name": "siglip"}), "img_processor.name"),
        (edit_config("step3-text", num_attention_groups=8), "num_attention_groups"),
        (edit_config("step3-text", moe_layers_enum="4,x"), "moe_layers_enum"),
        (edit_config("deepseek-vl2-small", tile_tag="1D"), "tile_tag"),
        (
            edit_config("deepseek-vl2-small", projector_config={"projector_type": "linear"}),
            "projector_config.projector_type",
        ),
        (
            edit_config("deepseek-vl2-small", vision_config={"width": {"clip-l-14-224": {}}}),
            "vision_config.width",
        ),  # DeepSeek-OCR
        (deepseek_vl2_config(kv_lora_rank=None), "use_mla"),
        (deepseek_vl2_config(num_experts_per_tok=None), "num_experts_per_tok"),
        (deepseek_vl2_config(topk_method="best"), "topk_method"),
        (deepseek_vl2_config(moe_layer_freq=2), "moe_layer_freq"),
        (edit_config("MiniCPM-V-4_5", version=...), "version"),
        (edit_config("MiniCPM-V-4_5", version="2.0"), "version"),
        (edit_config("MiniCPM-V-4_5", vision_config=...), "vision_config"),
        (edit_config("MiniCPM-V-4_5", hidden_size=4000), "hidden_size"),
        (
            edit_config("Kimi-VL-A3B-Instruct", vision_config={"merge_kernel_size": 2}),
            "vision_config.merge_kernel_size",
        ),
        (edit_config("EXAONE-3.5-2.4B-Instruct", head_dim=128), "head_dim"),
        (edit_config("Ling-lite", num_key_value_heads=...), "num_key_value_heads"),
        (edit_config("Ling-lite", vocab_size=126080), "pad_token_id"),
        (edit_config("Ling-mini-2.0", num_nextn_predict_layers=1), "num_nextn_predict_layers"),
        (edit_config("Ling-mini-2.0", n_group=3), "n_group"),
        (edit_config("InternVL2-8B", llm_config=...), "llm_config"),
        (
            edit_config("InternVL2-8B", llm_config={"architectures": ["InternLM2VEForCausalLM"]}),
            "llm_config.architectures.0",
        ),
        (edit_config("InternVL2-8B", llm_config={"model_type": "internlm2"}), "llm_config.architectures.0"),
        (edit_config("InternVL2-8B", use_llm_lora=16), "use_llm_lora"),
        (edit_config("InternVL2-8B", use_backbone_lora=16), "use_backbone_lora"),
        (edit_config("InternVL2-8B", vision_config={"norm_type": "batch_norm"}), "norm_type"),
        (
            edit_config("h2ovl-mississippi-2b", llm_config={"architectures": ["Qwen2ForCausalLM"]}),
            "llm_config.architectures.0",
        ),
        (edit_config("Kimi-K2-Instruct", moe_layer_freq=2), "moe_layer_freq"),
        (edit_config("Kimi-K2-Instruct", topk_method="greedy"), "topk_method"),
        (edit_config("Kimi-K2-Instruct", n_group=5), "n_group"),
        (edit_config("Orion-14B-Base", num_local_experts=8), "num_local_experts"),
        (edit_config("XVERSE-7B", num_experts=64), "num_experts"),
        (edit_config("Aquila2-34B", vocab_size=...), "vocab_size"),
        (edit_config("Hunyuan-A50B-Pretrain", use_mla=True), "use_mla"),
        (edit_config("Hunyuan-A50B-Pretrain", moe_intermediate_size=[3072] * 64), "moe_intermediate_size"),
        (edit_config("Hunyuan-A50B-Pretrain", attention_head_dim=128), "attention_head_dim"),
        (edit_config("Hunyuan-A50B-Pretrain", cla_share_factor=0), "use_cla"),
        (edit_config("MiniMax-M1-80k", attn_type_list=...), "attn_type_list"),
        (edit_config("falcon-40b", n_head_kv=...), "n_head_kv"),  # a smaller model with the code of 7B
        (edit_config("falcon-40b", n_head_kv=24), "n_head_kv"),
        (edit_config("falcon-40b", parallel_attn=False), "parallel_attn"),
        (edit_config("falcon-40b", n_head=64), "head size"),  # 128, and the code says 64
        (edit_config("falcon-40b", model_type="RefinedWebModel"), "n_head_kv"),
        (edit_config("falcon-40b", model_type=...), "n_head_kv"),  # its class has two model types
        (edit_config("falcon-7b", new_decoder_architecture=True), "new_decoder_architecture"),
        (edit_config("falcon-7b", n_head=70), "hidden_size"),
        (edit_config("TeleChat-12B", n_head=30), "hidden_size"),
        (edit_config("TeleChat-12B", num_key_value_heads=5), "num_key_value_heads"),
        (edit_config("Yi-34B", pad_token_id=64000), "pad_token_id"),
        (edit_config("Yi-34B", num_key_value_heads=5), "num_key_value_heads"),
        (edit_config("stable-code-3b", num_key_value_heads=None), "num_key_value_heads"),
        (edit_config("stable-code-3b", rope_pct=0.1125), "rotary dimension"),
        (edit_config("stable-code-3b", rope_pct=1.5), "rotary dimension"),
        (edit_config("stable-code-3b", rope_pct="0.25"), "rope_pct"),
        (edit_config("MiniMax-M1-80k", attn_type_list=[0, 1]), "attn_type_list"),
        (edit_config("MiniMax-M1-80k", num_hidden_layers=1), "num_hidden_layers"),
        (edit_config("jina-embeddings-v2-base-en", auto_map={}, _name_or_path=...), "auto_map"),
        (edit_config("jina-embeddings-v2-base-en", feed_forward_type=...), "feed_forward_type"),
        (edit_config("jina-embeddings-v2-base-en", feed_forward_type="original"), "feed_forward_type"),
        (edit_config("jina-embeddings-v2-base-en", position_embedding_type="rotary"), "position_embedding_type"),
        (edit_config("gte-multilingual-mlm-base", position_embedding_type="absolute"), "position_embedding_type"),
        (edit_config("gte-multilingual-mlm-base", pack_qkv=False), "pack_qkv"),
        (edit_config("gte-multilingual-mlm-base", layer_norm_type="rms_norm"), "layer_norm_type"),
        (edit_config("jina-embeddings-v3", lora_adaptations=...), "lora_adaptations"),
        (edit_config("jina-embeddings-v3", position_embedding_type="absolute"), "position_embedding_type"),
        (edit_config("nomic-embed-text-v1", n_embd=...), "n_embd"),
        (edit_config("OLMo-7B", rope=False), "rope"),
        (edit_config("OLMo-7B", block_type="llama"), "block_type"),
        (edit_config("OLMo-7B", block_group_size=4), "block_group_size"),
        (edit_config("OLMo-7B", mlp_hidden_size=22017), "mlp_hidden_size"),
        (edit_config("OLMo-7B", mlp_hidden_size=0), "mlp_hidden_size"),
        (edit_config("OLMo-7B", n_kv_heads=8), "n_kv_heads"),
        (edit_config("OLMo-7B", attention_layer_norm=True), "attention_layer_norm_with_affine"),
        (edit_config("OLMo-7B", n_heads=24), "d_model"),
        (edit_config("phi-1_5-mixformer", architecture={"mlp": {"n_inner": 8}}), "architecture.mlp.n_inner"),
        (edit_config("phi-1_5-mixformer", architecture=[{}] * 3), "architecture"),
        (edit_config("phi-1_5-mixformer", architecture="parallel"), "architecture"),
        (edit_config("Phi-3-small-8k-instruct", hidden_act="silu"), "hidden_act"),
        (edit_config("Phi-3-small-8k-instruct", ff_intermediate_size=14335), "ff_intermediate_size"),
        (edit_config("Phi-3-small-8k-instruct", ff_dim_multiplier=4), "ff_dim_multiplier"),
        (edit_config("Phi-3-small-8k-instruct", dense_attention_every_n_layers=-1), "dense_attention_every_n_layers"),
        (edit_config("Yuan2-2B-hf", use_shareqk=True), "use_shareqk"),
        (edit_config("openPangu-Embedded-7B", bias="yes"), "bias"),
        (edit_config("nomic-embed-text-v1", n_inner="3072"), "n_inner"),
        (edit_config("nomic-embed-text-v1", pad_vocab_size_multiple=0), "pad_vocab_size_multiple"),
        (edit_config("nomic-embed-text-v1", prenorm=True), "prenorm"),
        (edit_config("nomic-embed-text-v1", rotary_emb_fraction=0.0), "rotary_emb_fraction"),
        (edit_config("nomic-embed-text-v1", activation_function="relu"), "activation_function"),
        (edit_config("nomic-embed-text-v2-moe", num_experts=...), "num_experts"),
        (edit_config("snowflake-arctic-instruct", moe_layer_frequency=0), "moe_layer_frequency"),
        (edit_config("Llama-3_3-Nemotron-Super-49B-v1", block_configs=...), "block_configs"),
        (edit_config("Llama-3_3-Nemotron-Super-49B-v1", num_hidden_layers=79), "block_configs"),
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
def test_a_config_that_the_publishers_code_would_not_build_like_this_is_an_error(
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
