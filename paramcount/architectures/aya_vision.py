"""Aya Vision and Command A Vision: SigLIP, squares of patches through a gated projector, Cohere's layers."""

from typing import Any

from paramcount.architectures.llava import viewed_layers
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

COHERE_SIGLIP = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "image_size": 512,
    "num_hidden_layers": 27,
    "num_attention_heads": 12,
}


class Cohere2Vision(parts.Multimodal):
    """Source: arXiv:2504.00698, section 3; modeling_cohere2_vision.py of the reference."""

    reference = "Cohere2VisionForConditionalGeneration"
    model_types = ("cohere2_vision",)
    sections = sizes.Sections(
        "cohere2", default_tie=True, default_encoder="siglip_vision_model", default_encoder_section=COHERE_SIGLIP
    )

    vision: sizes.Tower
    merge_size: sizes.Positive = sizes.hf("downsample_factor")
    d_aligned: sizes.Positive = sizes.hf("alignment_intermediate_size")
    d_gated: sizes.Positive = sizes.derived(lambda js, c: c["d_aligned"] // 2)

    def project(c: Any, x: Data, *places: Data) -> Data:
        return c.widen(ops.merge_squares(x, c.merge_size * c.merge_size))

    def widen(c: Any, x: Data, d_hidden: ops.Size | None = None) -> Data:
        h, gate = ops.split(ops.linear(x, "linear_1", "projector", c.d_aligned, bias=True), c.d_gated, c.d_gated)
        return ops.linear(ops.activate(gate, "silu") * h, "linear_2", "projector", c.language.d_model, bias=True)

    def check(c) -> None:
        if c.d_aligned % 2:
            raise ParamcountError(
                f"= {c.d_aligned} cannot be halved", where="alignment_intermediate_size", expected="an even number"
            )


class AyaVision(parts.FormerMultimodal, Cohere2Vision):
    """Source: arXiv:2505.08751, section 3; modeling_aya_vision.py of the reference."""

    reference = "AyaVisionForConditionalGeneration"
    sections = sizes.Sections(
        "cohere2",
        default_tie=True,
        default_encoder="siglip_vision_model",
        default_encoder_section=parts.SIGLIP | {"num_attention_heads": 14},
    )
    conditions = (sizes.one_of("vision_feature_select_strategy", ("default", "full"), "full"),)

    d_aligned: sizes.Positive = sizes.hf("alignment_intermediate_size", absent=lambda js, c: c["language"].d_model)

    views = sizes.setting(default=viewed_layers(-1))
    selection = sizes.setting("vision_feature_select_strategy")
    norm_eps = sizes.setting("adapter_layer_norm_eps")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = x if c.selection == "full" else ops.other_tokens(x)
        x = ops.merge_squares(x, c.merge_size * c.merge_size)
        return c.widen(ops.layer_norm(x, "layernorm", c.norm_eps))
