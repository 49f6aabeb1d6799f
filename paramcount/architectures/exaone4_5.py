"""EXAONE 4.5 and HyperCLOVA X Vision: the encoder of Qwen 2.5 VL before another language model."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.qwen2_vl import Qwen2_5VLVision
from paramcount.declare import Data, ops, parts, sizes

SCALED_LOGITS = (
    "granite",
    "granite_swa",
    "granitemoe",
    "granitemoe_swa",
    "granitemoehybrid",
    "granitemoeshared",
    "hyperclovax",
    "minicpm3",
)


class Exaone45Vision(Qwen2_5VLVision):
    """Queries share keys and values."""

    config_class = "Exaone4_5_VisionConfig"

    n_kv_heads: sizes.Positive = sizes.hf("num_key_value_heads")

    def layer(c, x: Data, *reads: Data) -> Data:
        places, windows = reads
        x = x + c.attention(c.norm(x, "norm1"), places, windows)
        return x + parts.gated_mlp(c.norm(x, "norm2"), "mlp.", "mlp", c.d_ff, activation=c.activation, bias=True)

    def attention(c, x: Data, places: Data, windows: Data) -> Data:
        shared = (c.n_kv_heads, c.d_head)
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": shared, "qkv.v": shared}
        q, k, v = ops.fused(x, "attn.qkv", shares, bias=True)
        q, k = (ops.rope_at(y, places, c.rope, parts.qwen_vision.ROWS_AND_COLUMNS) for y in (q, k))
        a = ops.attend(q, k, v, mask=ops.Groups(windows, except_in=c.full_layers))  # [n, n_heads, d_head]
        return ops.linear(a, "attn.proj", "output_projection", c.d_model, bias=True)


class WithQwenVision(parts.Multimodal):
    vision: Qwen2_5VLVision

    def see(c: Any) -> Data:
        x = ops.block(parts.image_of(c.vision), c.encoder_prefix, c.vision.forward, part="vision")
        return ops.block(x, c.projector_prefix, c.vision.merge, part="projector")


class Exaone45(WithQwenVision):
    """Source: modeling_exaone4_5.py of the reference."""

    reference = "Exaone4_5_ForConditionalGeneration"
    sections = sizes.Sections("exaone4", old_type="exaone4_5_text", needs_model_type=True)
    encoder_prefix = "model.visual."
    projector_prefix = "model.visual.merger."

    vision: Exaone45Vision


def logit_scale(config: Mapping[str, Any], c: Any) -> Any:
    section = config.get("text_config") or {}
    if section.get("model_type") == "minicpm3":  # computes it from other keys
        return ops.Unknown("logit_scale")
    return section.get("logits_scaling", 1.0)


class HyperClovaXVision(WithQwenVision):
    """Source: modeling_hyperclovax_vision_v2.py of the reference."""

    reference = "HyperCLOVAXVisionV2ForConditionalGeneration"
    model_types = ("hyperclovax_vision_v2",)
    sections = sizes.Sections(
        "hyperclovax",
        default_tie=True,
        default_encoder="qwen2_5_vl_vision",
        encoders=("qwen2_5_vl_vision", "qwen2_5_vl"),
        supported_types=SCALED_LOGITS,
    )
    reference_names = {
        "model.language_model.model.": "model.language_model.",
        "model.language_model.lm_head.": "lm_head.",
    }
    modules = {".vision_projector": (".projector",)}
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.vision_model.merger."
    moved = None
    language_prefix = "model.language_model."

    logit_scale = sizes.setting(default=logit_scale)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        out = super().forward(tokens, head)
        return ops.scale_by(out, c.logit_scale, "times logits_scaling") if head else out

    def see(c: Any) -> Data:
        return ops.block(super().see(), "model.", c.project, part="projector")

    def project(c: Any, x: Data, *places: Data) -> Data:
        return ops.linear(x, "vision_projector", "projector", c.language.d_model, bias=True)
