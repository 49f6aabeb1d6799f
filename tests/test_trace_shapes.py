"""Traces compared with shapes derived by hand from the papers; what a token may see; invalid inputs."""

from __future__ import annotations

from typing import Any

import pytest

from paramcount import flow, loading
from paramcount.api import trace
from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.tracing.render import describe_flops
from paramcount.tracing.run import trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Step, Trace
from tests import cases
from tests.structures import keep_every
from tests.test_mutants import replace_everywhere

CASES = cases.load_cases()


# ---- what a person works out by hand


def steps_with_text(found: Trace, text: str) -> list[Step]:
    return [step for step in found.steps if step.text == text]


def steps_with_op(found: Trace, op: str) -> list[Step]:
    return [step for step in found.steps if step.op == op]


def test_keys_and_values_are_computed_from_the_latents_of_all_tokens() -> None:
    """DeepSeek-V2, arXiv:2405.04434, section 2.1: 128 heads of size 128, computed from a cached latent of size 512,
    and a rotated key of size 64.
    """
    found = trace("deepseek-v3", past=99)
    assert {step.out for step in steps_with_op(found, "KV cache")} == {(100, 512), (100, 64)}
    assert {(step.inputs, step.out) for step in steps_with_text(found, "keys and values")} == {
        (((100, 512),), (100, 128, 128 + 128))
    }
    assert {(step.inputs, step.out) for step in steps_with_op(found, "QKᵀ")} == {
        (((1, 128, 192), (100, 128, 192)), (128, 1, 100))
    }
    assert found.attention_scores == 61 * 128 * 100


def test_several_decoded_tokens_have_their_own_windows() -> None:
    """Three tokens after nine with a window of five: the keys of the three tokens and of the four before them."""
    found = trace({"model_type": "mistral", "num_hidden_layers": 1, "sliding_window": 5}, tokens=3, past=9)
    assert [step.out for step in steps_with_op(found, "QKᵀ")] == [(32, 3, 4 + 3)]
    assert [step.note for step in steps_with_op(found, "mask")] == [
        "each token attends to itself and at most 4 earlier tokens"
    ]
    assert [kept.shapes for kept in found.cache] == [((4, 8, 128), (4, 8, 128))]


def test_steps_after_a_stack_read_its_last_layer() -> None:
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    found = trace({"model_type": "gemma3_text", "num_hidden_layers": 3, "layer_types": kinds})
    (last,) = [step for step in found.steps if step.name == "model.norm"]
    first = {kind: next(step for step in found.steps if step.scopes and step.scopes[0].kind == kind) for kind in kinds}
    assert found.steps[last.reads[0]].under[0].kind == "sliding_attention"
    assert found.steps[first["full_attention"].reads[0]].under[0].kind == "sliding_attention"
    assert not found.steps[first["sliding_attention"].reads[0]].under


def test_a_kind_of_layer_reads_the_layer_before_its_first() -> None:
    """Of eight layers of Jamba, the fifth has attention and every second has experts. Layers 0 to 3 alternate between
    two kinds; layer 4 reads the kind of 1 and 3.
    """
    found = trace("jamba-v0.1")
    first = {step.scopes[0].kind: i for i, step in reversed(list(enumerate(found.steps))) if step.scopes}
    read = {kind: found.steps[found.steps[i].reads[0]] for kind, i in first.items()}
    assert {kind: step.scopes[0].kind if step.scopes else step.text for kind, step in read.items()} == {
        "mamba dense": "token embedding",
        "mamba moe": "mamba dense",
        "attention dense": "mamba moe",
    }


def test_relative_distances_have_no_batch_axis() -> None:
    found = trace("t5-small", tokens=3, source=4, batch=2)
    assert {step.out for step in steps_with_op(found, "relative positions")} == {(3, 3), (4, 4)}
    assert {step.inputs for step in steps_with_op(found, "add bias")} == {
        ((2, 8, 3, 3), (3, 3, 8)),
        ((2, 8, 4, 4), (4, 4, 8)),
    }


# ---- what a token may see


MASKED_PARTS = {
    "gemma3n": "audio",
    "gemma4": "audio",
    "deepseek_ocr2": "vision",
}  # a frame or a query reads those before it


@pytest.mark.parametrize(
    "name",
    keep_every(
        4, [name for name, of_type in CASES.items() if any("vision_config" in case["config"] for case in of_type)]
    ),
)
def test_vision_encoders_have_no_mask_and_no_cache(name: str) -> None:
    """Only text that attends to the image by cross-attention caches the image's keys. Decoding computes nothing for
    images.
    """
    for config in [case["config"] for case in CASES[name] if "total" in case]:
        model = loading.load(config)
        found = trace_model(model, TraceOptions(5))
        masked = {step.part for step in steps_with_op(found, "mask")} & {"vision", "audio"}
        part = MASKED_PARTS.get(name)
        assert masked == ({part} if part and getattr(model.sizes, part) else set())
        has_image_cache = any(entry.shapes[0][0] in ("patches", "frames") for entry in found.cache)
        assert has_image_cache == attends_to_images(name, config)
        if name.partition(".")[0] in NO_PAST:
            with pytest.raises(ParamcountError, match="is not autoregressive"):
                trace_model(model, TraceOptions(1, past=9))
            continue
        after = trace_model(model, TraceOptions(1, past=9))
        assert [
            step
            for step in after.steps
            if step.part in ("vision", "audio")
            or step.op in ("insert", "add view")
            or (step.part == "projector" and name != "gemma3n")  # which has further tokens that go through it
        ] == []


# The text model gives an embedding, or is ModernBERT, which is not autoregressive; DiffusionGemma rewrites a canvas of
# tokens again and again.
NO_PAST = ("clip", "siglip", "siglip2", "diffusion_gemma", "modernvbert", "ultravbert")


def attends_to_images(name: str, config: dict[str, Any]) -> bool:
    """BlipTextModel and Pix2StructTextModel attend to the image in each layer, mllama in the layers that its config
    lists. Idefics attends to it in front of some layers and keeps none of its keys.
    """
    if name.startswith("mllama"):
        return bool(config.get("text_config", {}).get("cross_attention_layers"))
    return name in ("blip", "pix2struct")


@pytest.mark.parametrize("name", ["bert", "roberta", "t5.T5EncoderModel", "distilbert", "electra"])
def test_an_encoder_has_no_mask_and_an_output_for_every_token(name: str) -> None:
    configs = [case["config"] for case in CASES[name] if "total" in case and not case["config"].get("is_decoder")]
    assert configs
    for config in configs:
        found = trace_model(loading.load(config), TraceOptions(5))
        assert [step.op for step in found.steps if step.op in ("mask", "last position")] == []
        assert found.steps[-1].out[0] == 5
        assert found.cache == ()


def test_a_bidirectional_window_extends_in_both_directions() -> None:
    """T5Gemma's encoder: sliding_window positions each way.

    Source: create_bidirectional_sliding_window_mask of transformers.
    """
    config = next(case["config"] for case in CASES["t5gemma"] if "total" in case)
    notes = {
        step.note
        for step in steps_with_op(trace_model(loading.load(config), TraceOptions(5)), "mask")
        if step.part == "encoder"
    }
    assert notes == {f"each token attends to tokens up to {config['encoder']['sliding_window']} positions away"}


def test_tokens_of_embeddinggemma_see_half_a_window_on_either_side() -> None:
    """sliding_window = 512. Source: configuration_gemma3.py of transformers, where 512 // 2 + 1 is the distance that is
    too far.
    """
    found = trace("embeddinggemma", tokens=5)
    assert {step.note for step in steps_with_op(found, "mask")} == {
        "each token attends to tokens up to 256 positions away"
    }
    assert found.cache == ()


def test_biases_are_added_to_the_scores_before_the_mask() -> None:
    """T5, arXiv:1910.10683, section 2.1: a scalar per head is added to the logit of the attention weights."""
    found = trace("t5-small", tokens=3, source=4)
    inside = [step.op for step in found.steps if step.part == "decoder" and step.heads == 8 and step.out == (8, 3, 3)]
    assert inside == ["QKᵀ", "add bias", "mask", "softmax"] * 2  # the first layer, and the five others
    biases = [step for step in steps_with_op(found, "add bias") if step.part == "decoder"]
    assert {step.inputs for step in biases} == {((8, 3, 3), (3, 3, 8))}
    (table,) = {found.steps[step.reads[1]].name for step in biases}  # that of the first layer
    assert table == "decoder.block.{layer}.layer.0.SelfAttention.relative_attention_bias"


SMALL_QWEN = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "intermediate_size": 44, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3,
    "shared_expert_intermediate_size": 18, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1,
    "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 1, 1]},
}  # fmt: skip
ALTERNATE = ["full_attention", "sliding_attention", "full_attention"]


@pytest.mark.parametrize(
    ("model_type", "keys", "kept"),
    [
        ("qwen2", {}, (10, 4, 4)),
        ("qwen2", {"layer_types": ALTERNATE}, (10, 4, 10)),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 0}, (10, 10, 10)),
        ("qwen3", {"max_window_layers": 2}, (10, 10, 4)),
        ("qwen2_moe", {"max_window_layers": 3}, (4, 10, 4)),
        ("qwen2_moe", {}, (4, 10, 10)),
        ("qwen2_moe", {"layer_types": ALTERNATE}, (10, 4, 10)),
        ("qwen2_moe", {"layer_types": ["full_attention"] * 3}, (10, 10, 10)),
        ("qwen2_moe", {"use_sliding_window": False, "sliding_window": 0}, (10, 10, 10)),
        ("qwen2_moe", {"mlp_only_layers": [0], "max_window_layers": 3}, (4, 10, 4)),
        ("qwen3_moe", {}, (4, 4, 4)),
        ("qwen3_moe", {"mlp_only_layers": [1]}, (4, 4, 4)),
        ("qwen3_moe", {"sliding_window": None}, (10, 10, 10)),
        ("qwen3_moe", {"use_sliding_window": False}, (10, 10, 10)),
        ("ministral", {"layer_types": ALTERNATE}, (10, 4, 10)),
        ("qwen2_vl_text", {}, (10, 4, 4)),
        ("qwen3_vl_moe_text", {}, (10, 10, 10)),
        ("qwen3_omni_moe_text", {}, (10, 10, 10)),
    ],
)
def test_layers_of_qwen_keep_the_tokens_of_their_window(
    model_type: str, keys: dict[str, Any], kept: tuple[int, ...]
) -> None:
    """`kept`: by each layer, of 10 tokens; a window of 5 includes the next token.

    Source: the configuration and modeling files of these types in transformers. Qwen3-MoE has one mask for all layers.
    """
    found = trace({"model_type": model_type, **SMALL_QWEN, **keys}, tokens=10)
    assert found.cached_elements == 2 * 2 * 8 * sum(kept)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("model_type", "key", "usual"),
    [
        ("qwen2", "sliding_window", 4096),
        ("qwen2_5_omni_text", "sliding_window", 32768),
        ("qwen2", "max_window_layers", 28),
        ("qwen2_vl_text", "max_window_layers", 80),
        ("qwen2_5_vl_text", "max_window_layers", 80),
    ],
)
def test_a_window_of_qwen_that_is_not_stated_is_the_default(model_type: str, key: str, usual: int) -> None:
    """Source: the configuration files of these types in transformers."""
    config = {"model_type": model_type, **SMALL_QWEN, "num_hidden_layers": 82}
    others = {name: value for name, value in config.items() if name != key}
    unstated = trace(others, past=40_000).cached_elements
    assert trace({**others, key: usual}, past=40_000).cached_elements == unstated
    assert trace({**others, key: usual - 1}, past=40_000).cached_elements != unstated


def test_a_window_limits_attention_and_the_cache() -> None:
    """Mistral 7B v0.1: a window of 4,096 (arXiv:2310.06825, table 1), which includes the next token."""
    found = trace("mistral-7b-v0.1", past=9999)
    assert {step.out for step in found.steps if step.op == "QKᵀ"} == {(32, 1, 4096)}
    assert found.cached_elements == 32 * 2 * 8 * 128 * 4095


def test_an_encoder_attends_to_all_tokens_and_its_decoder_to_earlier_ones() -> None:
    found = trace("t5-small", tokens=3, source=4)
    patterns = {(step.part, step.out) for step in found.steps if step.op == "softmax"}
    assert patterns == {("encoder", (8, 4, 4)), ("decoder", (8, 3, 3)), ("cross_attention", (8, 3, 4))}
    assert {step.part for step in found.steps if step.op == "mask"} == {"decoder"}


def test_a_state_space_layer_has_a_state_of_constant_size() -> None:
    """Mamba 2: a state of 128 x 64 for each head, a window of three inputs (arXiv:2405.21060, section 7)."""
    short, long = (trace("codestral-mamba-7b", past=past).cached_elements for past in (1, 100_000))
    assert short == long == 64 * (128 * 64 * 128 + 3 * (8192 + 2 * 8 * 128))


def test_an_operation_without_a_description_is_not_described_and_has_no_flops(monkeypatch: pytest.MonkeyPatch) -> None:
    before = trace("llama-3.1-8b").steps
    replace_everywhere(monkeypatch, flow.rope, lambda x, *a: Data("turn", (x,), x.shape))
    found = trace("llama-3.1-8b")
    after = found.steps
    assert [step.op for step in before].count("rope") == [step.op for step in after].count("turn") == 2
    assert {step.note for step in after if step.op == "turn"} == {"not described"}
    assert found.flops is None
    assert list(describe_flops(found)) == ["FLOPs: unknown, because turn is not described"]


# ---- what cannot be sent


def test_a_canvas_beside_a_causal_prompt_is_refined_as_a_whole() -> None:
    # DiffusionGemmaModel.forward: the encoder's mask is causal, that of the canvas is not, and the LM head of
    # DiffusionGemmaForBlockDiffusion reads all its positions.
    (canvas, *_) = [case["config"] for case in cases.load_cases()["diffusion_gemma"] if "total" in case]
    found = trace(canvas, tokens=5, source=7)
    assert [step.out[0] for step in found.steps if step.part == "decoder"][-1] == 5
    message = "^past = 3, but unnamed is not autoregressive and has no KV cache of these tokens$"
    with pytest.raises(ParamcountError, match=message):
        trace(canvas, past=3)


def test_a_decoded_token_is_not_padded() -> None:
    with pytest.raises(ParamcountError, match=r"^pad cannot be combined with past, because decoding does not pad$"):
        trace("gpt2-small", pad=9, past=4)


def test_a_prompt_that_the_model_puts_in_front_costs_as_much_as_tokens() -> None:
    """torch's FlopCounterMode counts 394,368 FLOPs for CpmAntForCausalLM with seven tokens; of these the LM head at all
    positions but the last has 6 · 2 · 32 · 96."""
    config = {
        "model_type": "cpmant", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2,
        "dim_head": 12, "dim_ff": 24, "position_bias_num_buckets": 8, "position_bias_max_distance": 12,
        "prompt_types": 4, "prompt_length": 3, "segment_types": 4,
    }  # fmt: skip
    assert trace(config, tokens=7).flops == 394_368 - 6 * 2 * 32 * 96
    assert [entry.shapes for entry in trace(config, past=19).cache] == [((23, 2, 12), (23, 2, 12))]


def test_the_cost_of_an_image_that_stands_in_front_of_the_text_is_unknown() -> None:
    assert trace({"model_type": "git"}, tokens=7).flops is None
