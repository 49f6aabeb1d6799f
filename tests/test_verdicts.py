"""Whether a config.json is counted or refused, as the reference builds and runs it or does not.

tests/oracle/test_verdicts.py asks the reference itself about each of these.
"""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from tests.refusing import model_error

SMALL = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 40, "pad_token_id": 0,
}  # fmt: skip
PHI = {"model_type": "phi3", **SMALL}
PHI_MOE = {"model_type": "phimoe", **SMALL, "num_local_experts": 4}
FALCON = {
    "model_type": "falcon_h1", **SMALL, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 1,
    "mamba_d_state": 8, "mamba_chunk_size": 8,
}  # fmt: skip
LLAMA = {"model_type": "llama", **SMALL}
TINY = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
ROPE = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
YOUTU = {
    **SMALL, "num_key_value_heads": 4,
    "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
}  # fmt: skip
FACTORS = {"short_factor": [1.0] * 4, "long_factor": [1.0] * 4}
SCALED = {"factor": 2.0, "original_max_position_embeddings": 16, **FACTORS}


def phi(**rope: Any) -> dict[str, Any]:
    return {**PHI, "rope_scaling": {**SCALED, **rope}}


def vibe_voice(section: dict[str, Any] | None) -> dict[str, Any]:
    return {"model_type": "vibevoice_asr", "semantic_tokenizer_encoder_config": section}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "phi3 linear": (
        phi(rope_type="linear"),
        "rope_scaling.rope_type = 'linear' (expected default, longrope, su or yarn)",
    ),
    "phi3 dynamic": (
        phi(type="dynamic"),
        "rope_scaling.rope_type = 'dynamic' (expected default, longrope, su or yarn)",
    ),
    "phi3 short factors": (
        phi(rope_type="longrope", short_factor=[1.0] * 3),
        "rope_scaling.short_factor = [1.0, 1.0, 1.0] (expected a list of 4 numbers)",
    ),
    "phi3 yarn without factors": (
        phi(rope_type="yarn", long_factor=None),
        "rope_scaling.long_factor is missing (expected a list of 4 numbers)",
    ),
    "phimoe linear": (
        {**PHI_MOE, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        "rope_scaling.short_mscale is missing (expected a number)",
    ),
    "mllama with two tiles": (
        {
            "model_type": "mllama",
            "text_config": SMALL | {"cross_attention_layers": [0]},
            "vision_config": {"max_num_tiles": 2},
        },
        "vision_config.max_num_tiles = 2 (expected 4, or other supported_aspect_ratios)",
    ),
    **{
        f"{model_type} with SigLIP 2": (
            {"model_type": model_type, "text_config": SMALL, "vision_config": {"model_type": "siglip2_vision_model"}},
            "vision_config.image_size is missing (expected a positive integer)",
        )
        for model_type in ("paligemma", "deepseek_vl_hybrid", "llava_next_video")
    },
    "cohere without a scale": (
        {"model_type": "cohere", **SMALL, "logit_scale": None},
        "logit_scale = null (expected a value, or no such key)",
    ),
    "falcon_h1 without a multiplier": (
        {**FALCON, "ssm_in_multiplier": None},
        "ssm_in_multiplier = null (expected a value, or no such key)",
    ),
    "unknown dtype": (
        {**LLAMA, "torch_dtype": "foo"},
        "torch_dtype = 'foo' (expected the name of a data type in torch, such as bfloat16)",
    ),
    "dtype of torch": (
        {**LLAMA, "dtype": "torch.float16"},
        "dtype = 'torch.float16' (expected the name of a data type in torch, such as bfloat16); did you mean float16, "
        "bfloat16 or cfloat?",
    ),
    "unknown dtype of a section": (
        {"model_type": "gemma3", "text_config": {"dtype": "foo"}},
        "text_config.dtype = 'foo' (expected the name of a data type in torch, such as bfloat16)",
    ),
    "a null epsilon of Falcon": (
        {"model_type": "falcon", **TINY, "layer_norm_epsilon": None},
        "layer_norm_epsilon = null (expected a value, or no such key)",
    ),
    "a null epsilon of Cohere": (
        {"model_type": "cohere", **TINY, "layer_norm_eps": None},
        "layer_norm_eps = null (expected a value, or no such key)",
    ),
    "a null factor of Granite": (
        {"model_type": "granitemoe", **SMALL, "residual_multiplier": None},
        "residual_multiplier = null (expected a value, or no such key)",
    ),
    "a null activation of BART": (
        {"model_type": "bart", **TINY, "encoder_layers": 1, "decoder_layers": 1, "activation_function": None},
        "activation_function = null (expected a value, or no such key)",
    ),
    "one rotated value of pairs": (
        {"model_type": "codegen", **TINY, "rotary_dim": 1},
        "rotary_dim = 1 is odd, but rotary embedding rotates pairs (expected an even number)",
    ),
    "a table without positions": (
        {"model_type": "ctrl", **TINY, "n_positions": 0},
        "n_positions = 0 (expected an integer of at least 1)",
    ),
    "a range below zero": (
        {"model_type": "xglm", **TINY, "d_model": 32, "attention_heads": 4, "max_position_embeddings": -5},
        "max_position_embeddings = -5 (expected an integer of at least 0)",
    ),
    "one bucket": (
        {"model_type": "prophetnet", **TINY, "num_decoder_attention_heads": 4, "num_buckets": 1},
        "num_buckets = 1 leaves no bucket for near distances (expected an integer of at least 2)",
    ),
    "one channel of RWKV": (
        {"model_type": "rwkv", **TINY, "attention_hidden_size": 1},
        "attention_hidden_size = 1 (expected an integer of at least 2)",
    ),
}
COUNTED: dict[str, dict[str, Any]] = {
    "phi3 longrope": phi(rope_type="longrope"),
    "phi3 su": phi(type="su"),
    "phi3 yarn": phi(type="yarn"),
    "phi3 default": {**PHI, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    "phimoe longrope": {
        **PHI_MOE, "rope_scaling": {**SCALED, "rope_type": "longrope", "short_mscale": 1.2, "long_mscale": 1},
    },
    "mllama with other ratios": {
        "model_type": "mllama", "vision_config": {"max_num_tiles": 2, "supported_aspect_ratios": [[1, 1]]},
    },
    "falcon_h1 without lists": {**FALCON, "mlp_multipliers": None, "ssm_multipliers": None},
    "dtype": {**LLAMA, "torch_dtype": "foo", "dtype": "float8_e4m3fn"},
    "positions below zero": {**LLAMA, "max_position_embeddings": -5},
    "no positions of GLM-4": {
        "model_type": "glm4", **SMALL, "head_dim": 8, "max_position_embeddings": 0, "rope_parameters": ROPE,
    },
    "groups of experts without experts": {"model_type": "youtu", **YOUTU, "n_group": "x", "topk_group": 0},
    "an activation that RWKV does not read": {"model_type": "rwkv", **TINY, "hidden_act": "x"},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_config_that_the_reference_cannot_build_or_run_is_an_error(name: str) -> None:
    document, message = REFUSED[name]
    assert model_error(document) == message


@pytest.mark.parametrize("name", COUNTED)
def test_a_config_that_the_reference_builds_is_counted(name: str) -> None:
    assert pc.count(COUNTED[name]).total > 0


@pytest.mark.parametrize(("model_type", "key"), [("llama", "hidden_act"), ("gpt2", "activation_function")])
@pytest.mark.parametrize("activation", ["xielu", "prelu"])
def test_an_activation_with_parameters_is_refused_for_what_it_is(model_type: str, key: str, activation: str) -> None:
    """Every model type of transformers 5.23.0 takes them: XIELUActivation has two parameters, torch's PReLU one."""
    assert model_error({"model_type": model_type, key: activation}) == (
        f"{key} = '{activation}' has parameters, which paramcount does not count for this model type (expected "
        "an activation function without parameters)"
    )


@pytest.mark.parametrize(
    ("keys", "n_layers"),
    [
        ({"num_layers": 4, "num_hidden_layers": 1}, 1),
        ({"encoder_layers": 2, "num_hidden_layers": 1}, 1),
        ({"num_hidden_layers": 1, "encoder_layers": 2}, 2),
        ({"decoder_layers": 3, "num_hidden_layers": 1, "encoder_layers": 2, "num_layers": 4}, 2),
    ],
)
def test_the_last_of_several_aliases_counts(keys: dict[str, int], n_layers: int) -> None:
    """Pix2StructTextConfig of transformers 5.23.0, attribute_map: each alias replaces the key when it is set."""
    document = {"model_type": "pix2struct", "text_config": keys}
    assert pc.load(document).sizes.to_dict()["text"]["n_layers"] == n_layers


def test_bands_that_the_convolutions_of_a_sound_encoder_leave_are_those_that_its_linear_layer_reads() -> None:
    """ParakeetEncoderSubsamplingConv2D of transformers 5.23.0: the layer reads 30 // 2 ** 3 bands, 4 are left."""
    document = {"model_type": "nemotron_h_omni", "audio_config": {"num_mel_bins": 30}}
    assert model_error(document) == (
        "audio_config.num_mel_bins = 30 leaves 4 bands, but the linear layer behind the convolutions reads 3 "
        "(expected a multiple of 8)"
    )


def test_a_stated_section_of_vibe_voice_has_the_defaults_of_the_encoder() -> None:
    """VibeVoiceAsrForConditionalGeneration of transformers 5.23.0: latents of 128 values, of 64 in a stated section."""
    models = [pc.load(vibe_voice(section)) for section in (None, {"num_filters": 8}, {})]
    assert [model.sizes.to_dict()["semantic"]["d_latent"] for model in models] == [128, 64, 64]
