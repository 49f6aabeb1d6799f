"""The params.json of Mistral's releases: dense models, experts, MLA, image encoders, Mamba.

Source: github mistralai/mistral-inference, src/mistral_inference/args.py; github huggingface/transformers,
src/transformers/integrations/mistral/params_conversion.py (which class a file becomes); github vllm-project/vllm,
vllm/transformers_utils/configs/mistral.py (experts without MLA, the names of options).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.huggingface.forms import state_spaces
from paramcount.huggingface.forms.form import ConfigForm, Document, Translation, get_block, rename_keys, require

KEYS = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size", "norm_eps": "rms_norm_eps",
    "tied_embeddings": "tie_word_embeddings", "activation": "hidden_act",
}  # fmt: skip
UNUSED = ("model_type", "max_batch_size", "max_seq_len", "lora", "moe", "yarn", "llama_4_scaling", "vision_encoder",
          "multimodal", "quantization", "dtype", "causal", "sliding_window")  # fmt: skip
SIZES = ("dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "hidden_dim", "vocab_size")
EXPERTS = {
    "num_experts": "n_routed_experts", "num_experts_per_tok": "num_experts_per_tok",
    "expert_hidden_dim": "moe_intermediate_size", "first_k_dense_replace": "first_k_dense_replace",
    "num_shared_experts": "n_shared_experts", "routed_scale": "routed_scaling_factor", "num_expert_groups": "n_group",
    "num_expert_groups_per_tok": "topk_group",
}  # fmt: skip
VISION = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "patch_size", "image_size", "intermediate_size",
    "num_channels", "rope_theta", "head_dim",
)  # fmt: skip


def matches(document: Document) -> bool:
    """Whether a file has the sizes of TransformerArgs or MambaArgs. DistilBERT's first configs have no norm_eps."""
    model_type = document.get("model_type", "transformer")
    if model_type == "mamba":
        return {"dim", "n_layers", "n_groups"} <= set(document)
    return model_type == "transformer" and {"dim", "n_layers", "head_dim", "hidden_dim", "norm_eps"} <= set(document)


def translate(document: Document) -> Translation:
    if document.get("model_type") == "mamba":
        return translate_mamba(document)
    require(document, *SIZES)
    if "whisper_model_args" in get_block(document, "multimodal"):
        raise ParamcountError(
            "is params.json of a Voxtral model, which is not supported in this form",
            expected="the config.json of the Hugging Face version",
        )
    text = {"tie_word_embeddings": False, **rename_keys(document, KEYS, UNUSED), **translate_rope(document)}
    text |= translate_text(document)
    if quantization := translate_quantization(document):
        text["quantization_config"] = quantization
    vision = document.get("vision_encoder") or get_block(document, "multimodal").get("vision_encoder_args")
    return Translation(translate_vision(text, vision) if vision else text)


def translate_text(document: Document) -> dict[str, Any]:
    """The class of the language model, and its experts: MLA with experts, experts, YaRN, or none of them."""
    experts = get_block(document, "moe")
    is_latent = document.get("q_lora_rank") is not None
    if is_latent and not experts:
        raise ParamcountError("is set without moe", where="q_lora_rank", expected="experts with MLA, or neither")
    if is_latent:
        require(experts, "num_experts", "num_experts_per_tok", "expert_hidden_dim")
        named = {EXPERTS[key]: value for key, value in experts.items() if key in EXPERTS}
        return {"model_type": "mistral4", "architectures": ["Mistral4ForCausalLM"], "n_shared_experts": 0, **named}
    if experts:
        require(experts, "num_experts", "num_experts_per_tok")
        named = {"num_local_experts": experts["num_experts"], "num_experts_per_tok": experts["num_experts_per_tok"]}
        return {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], **named}
    if document.get("yarn"):
        return {"model_type": "ministral3", "architectures": ["Ministral3ForCausalLM"]}
    return {"model_type": "mistral", "architectures": ["MistralForCausalLM"], **translate_window(document)}


def translate_window(document: Document) -> dict[str, Any]:
    """One window for all layers; a list states one for each layer by turns."""
    window = document.get("sliding_window")
    if not isinstance(window, list):
        return {"sliding_window": window}
    if not all(size is None or type(size) is int for size in window):
        raise ParamcountError("is no list of sizes", where="sliding_window", expected="integers, or null for none")
    sizes = {size for size in window if size is not None}
    if len(sizes) > 1:
        raise ParamcountError("has several sizes", where="sliding_window", expected="one size, or null for none")
    return {"sliding_window": None if None in window else next(iter(sizes), None)}


def translate_rope(document: Document) -> dict[str, Any]:
    """YaRN under the names of transformers."""
    yarn, scaling = get_block(document, "yarn"), get_block(document, "llama_4_scaling")
    if not yarn:
        return {}
    parameters = {
        "rope_type": "yarn",
        "rope_theta": document.get("rope_theta", 10000.0),
        "factor": yarn.get("factor"),
        "original_max_position_embeddings": yarn.get("original_max_position_embeddings"),
        "beta_fast": yarn.get("beta"),
        "beta_slow": yarn.get("alpha"),
        "mscale": 1.0,
        "mscale_all_dim": 0.0 if yarn.get("apply_scale") else 1.0,
        "llama_4_scaling_beta": scaling.get("beta", 0),
    }
    if document.get("qk_rope_head_dim") and document.get("qk_nope_head_dim"):
        rotated, others = document["qk_rope_head_dim"], document["qk_nope_head_dim"]
        if type(rotated) is int and type(others) is int:
            parameters["partial_rotary_factor"] = rotated / (rotated + others)
    return {"rope_parameters": parameters}


def translate_quantization(document: Document) -> dict[str, Any] | None:
    """FP8 weights under the names of transformers; other methods are stated as there."""
    block = get_block(document, "quantization")
    if not block:
        return None
    if block.get("qformat_weight") == "fp8_e4m3":
        scheme = "dynamic" if block.get("qscheme_act") == "NO_SCALES" else "static"
        kept = ["lm_head", "model.vision_tower", "model.multi_modal_projector"]
        return {"quant_method": "fp8", "activation_scheme": scheme, "modules_to_not_convert": kept}
    if block.get("quant_method"):
        return dict(block)
    raise ParamcountError("is of an unknown method", where="quantization", expected='"qformat_weight": "fp8_e4m3"')


def translate_vision(text: dict[str, Any], vision: object) -> dict[str, Any]:
    """A Pixtral encoder; with a projector that merges patches it is Mistral 3's."""
    if not isinstance(vision, Mapping):
        raise ParamcountError("is not a block", where="vision_encoder", expected="a JSON object")
    require(vision, *VISION[:6])
    encoder = {"model_type": "pixtral", **{key: vision[key] for key in VISION if vision.get(key) is not None}}
    quantization = text.pop("quantization_config", None)
    found: dict[str, Any] = {"text_config": text, "vision_config": encoder, "vision_feature_layer": -1}
    found |= {"tie_word_embeddings": text["tie_word_embeddings"]}
    if quantization is not None:
        found["quantization_config"] = quantization
    if vision.get("mm_projector_id") == "patch_merge":
        bias = vision.get("adapter_bias", True)
        names = {"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"]}
        merge = vision.get("spatial_merge_size", 2)
        return {**names, **found, "spatial_merge_size": merge, "multimodal_projector_bias": bias}
    names = {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]}
    return {**names, **found, "vision_feature_select_strategy": "full", "projector_hidden_act": "gelu"}


def translate_mamba(document: Document) -> Translation:
    """Codestral Mamba: state-spaces' Mamba 2 with more groups."""
    require(document, "vocab_size")
    names = {"dim": "d_model", "n_layers": "n_layer"}
    groups = {"ssm_cfg": {"layer": "Mamba2", "ngroups": document["n_groups"]}}
    return state_spaces.translate(rename_keys(document, names, ("model_type", "n_groups")) | groups)


FORM = ConfigForm("Mistral's params.json", matches, translate, KEYS)
