"""LFM2-VL: SigLIP 2 over images of any shape, squares of patches through two matrices, LFM2's layers."""

from typing import Any

from paramcount.flow import Data, activate, layer_norm, linear, merge_squares
from paramcount.parts.composite import Multimodal
from paramcount.parts.vision import places_of_patches
from paramcount.sizes import Flag, Positive, Tower, hf, setting
from paramcount.sizes.sections import Sections


class Lfm2VL(Multimodal):
    """Source: modeling_lfm2_vl.py of the reference."""

    reference = "Lfm2VlForConditionalGeneration"
    sections = Sections("lfm2", default_tie=True, has_old_tie_key=True, default_encoder="siglip2_vision_model")
    places = places_of_patches
    encoder_prefix = "model.vision_tower."
    projector_prefix = "model.multi_modal_projector."
    moved = ("model.", "model.language_model.")

    vision: Tower
    merge_size: Positive = hf("downsample_factor")
    d_projector: Positive = hf("projector_hidden_size")
    projector_bias: Flag = hf("projector_bias")
    projector_norm: Flag = hf("projector_use_layernorm")

    image_token = setting("image_token_id", default=396)
    activation = setting("projector_hidden_act", default="gelu")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = merge_squares(x, c.merge_size * c.merge_size, *places)
        x = layer_norm(x, "layer_norm", 1e-5) if c.projector_norm else x
        h = linear(x, "linear_1", "projector", c.d_projector, bias=c.projector_bias)
        return linear(activate(h, c.activation), "linear_2", "projector", c.language.d_model, bias=c.projector_bias)
