"""Idefics 2: SigLIP's encoder, a gated MLP and learned latents that attend to the patches, Mistral's layers."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.idefics3 import Idefics3Vision
from paramcount.declare import Data, ops, parts, sizes


def has_enough_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["n_kv_heads"] > c["n_heads"]:
        raise sizes.make_value_error(c["n_kv_heads"], "num_key_value_heads", f"at most {c['n_heads']}")


class Idefics2Vision(Idefics3Vision):
    config_class = "Idefics2VisionConfig"
    defaults = {"d_model": 768, "n_heads": 12}


class Idefics2Perceiver(sizes.Sizes):
    config_class = "Idefics2PerceiverConfig"
    section = "perceiver_config"
    conditions = (has_enough_heads,)

    n_latents: sizes.Positive = sizes.hf("resampler_n_latents")
    n_layers: sizes.Natural = sizes.hf("resampler_depth")
    n_heads: sizes.Positive = sizes.hf("resampler_n_heads")
    n_kv_heads: sizes.Positive = sizes.hf("num_key_value_heads")
    d_head: sizes.Positive = sizes.hf("resampler_head_dim")

    activation = sizes.setting("hidden_act")


def perceiver_eps(config: Mapping[str, Any], c: Any) -> Any:
    """That of the language model, unless the perceiver has its size."""
    section = config.get("perceiver_config") or {}
    if section.get("hidden_size", 4096) != c.language.d_model:
        return getattr(c.language, "norm_eps", 1e-6)
    return section.get("rms_norm_eps", 1e-6)


class Idefics2(parts.Multimodal):
    """Source: arXiv:2405.02246, section 3; modeling_idefics2.py of the reference. Images are of the largest size."""

    reference = "Idefics2ForConditionalGeneration"
    sections = sizes.Sections("mistral", other_sections=("vision_config", "perceiver_config"))
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.connector."
    moved = ("model.", "model.text_model.")
    absent_sections = {"language": {"rms_norm_eps": 1e-5}}

    vision: Idefics2Vision
    perceiver: Idefics2Perceiver
    d_connector: sizes.Natural = sizes.hf("text_config.intermediate_size", absent=lambda js, c: c["language"].d_ff)

    norm_eps = sizes.setting(default=perceiver_eps)

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = c.enlarge(x)
        latents = ops.learned_rows(
            "perceiver_resampler.latents", "projector", c.perceiver.n_latents, c.language.d_model
        )
        kinds, name = [("layer", c.perceiver.n_layers)], "perceiver_resampler.layers.{layer}."
        latents = ops.layers(latents, name, kinds, lambda kind, *x: c.resample(*x), reads=(x,))
        return ops.rms_norm(latents, "perceiver_resampler.norm", c.norm_eps)

    def enlarge(c: Any, x: Data) -> Data:
        """Patches to vectors of the language model's size."""
        activation, d = c.language.activation, c.language.d_model
        prefix = "modality_projection."
        h = ops.activate(ops.linear(x, prefix + "gate_proj", "projector", c.d_connector), activation)
        h = h * ops.linear(x, prefix + "up_proj", "projector", c.d_connector)
        return ops.linear(h, prefix + "down_proj", "projector", d)

    def resample(c: Any, x: Data, patches: Data) -> Data:
        """Latents attend to the patches and to one another."""
        p, eps = c.perceiver, c.norm_eps
        h = ops.rms_norm(x, "input_latents_norm", eps)
        memory = ops.stack_rows(ops.rms_norm(patches, "input_context_norm", eps), h, length="patches and latents")
        x = x + parts.attentions.attention(
            parts.Heads(p.n_heads, p.n_kv_heads, p.d_head), h, "self_attn.", memory=memory, mix=ops.attend
        )
        h = ops.rms_norm(x, "post_attention_layernorm", eps)
        return x + parts.gated_mlp(h, "mlp.", "mlp", 4 * c.language.d_model, activation=p.activation)
