"""LFM2-VL: SigLIP 2 over images of any shape, squares of patches through two matrices, LFM2's layers."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class Lfm2VL(parts.Multimodal):
    """Source: modeling_lfm2_vl.py of the reference."""

    reference = "Lfm2VlForConditionalGeneration"
    sections = sizes.Sections("lfm2", default_tie=True, has_old_tie_key=True, default_encoder="siglip2_vision_model")
    places = parts.places_of_patches

    vision: sizes.Tower
    merge_size: sizes.Positive = sizes.hf("downsample_factor")
    d_projector: sizes.Positive = sizes.hf("projector_hidden_size")
    projector_bias: sizes.Flag = sizes.hf("projector_bias")
    projector_norm: sizes.Flag = sizes.hf("projector_use_layernorm")

    activation = sizes.setting("projector_hidden_act")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.merge_squares(x, c.merge_size * c.merge_size, *places)
        return c.widen(ops.layer_norm(x, "layer_norm", 1e-5) if c.projector_norm else x)
