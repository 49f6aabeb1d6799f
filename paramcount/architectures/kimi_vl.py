"""Kimi-VL and Kimi K2.5: MoonViT over images of any shape, squares of patches through two matrices, DeepSeek-V3's
layers.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class KimiVLVision(parts.MoonViT):
    """Source: configuration_kimi_vl.py of moonshotai/Kimi-VL-A3B-Instruct."""

    n_rows: sizes.Positive = sizes.hf("init_pos_emb_height", absent=64)
    n_columns: sizes.Positive = sizes.hf("init_pos_emb_width", absent=64)


class Kimi(parts.Multimodal):
    """A projector that normalizes patches and merges them."""

    encoder_prefix = "vision_tower."
    projector_prefix = "multi_modal_projector."
    moved = None
    places = parts.places_of_patches

    vision: parts.MoonViT

    def project(c: Any, x: Data, *places: Data) -> Data:
        merged = c.vision.merged_rows * c.vision.merged_columns
        x = ops.merge_squares(c.norm(x), merged, *places)
        return c.widen(x, merged * c.vision.d_model)

    def norm(c: Any, x: Data) -> Data:
        """Images fit if the size of the norm, which K2.5 names apart, is the encoder's."""
        width = getattr(c, "d_projection", c.vision.d_model)
        weights = tuple(ops.Weight(f"pre_norm.{name}", "norm", (width,)) for name in ("weight", "bias"))
        return Data(ops.Norm("layer", getattr(c, "norm_eps", 1e-5)), (x,), x.shape, weights)


class KimiVL(Kimi):
    """Source: arXiv:2504.07491, section 2; modeling_kimi_vl.py of moonshotai/Kimi-VL-A3B-Instruct, and
    kimi_vl_moonvit.py of SGLang 0.5.23.
    """

    reference = "KimiVLForConditionalGeneration of moonshotai/Kimi-VL-A3B-Instruct"
    sections = sizes.Sections("deepseek_v3", tie_rule="text", ignores_model_type=True)

    vision: KimiVLVision

    image_token = ops.Unknown("image_token")


class KimiK25(Kimi):
    """Source: modeling_kimi_k25.py of the reference. Frames of a video are averaged; an image is one."""

    reference = "Kimi_K25ForConditionalGeneration"
    model_types = ("kimi_k25",)
    sections = sizes.Sections("deepseek_v3", default_tie=True, old_type="kimi_k2")
    reference_names = {
        "vision_tower.encoder.blocks.": "model.vision_tower.layers.",
        "vision_tower.encoder.": "model.vision_tower.",
        "language_model.lm_head.": "lm_head.",
        "language_model.model.": "model.language_model.",
        "": "model.",
    }
    equivalent_classes = ("KimiK25ForConditionalGeneration",)
    projector_prefix = "mm_projector."
    modules = {
        ".wqkv": (".attn.q_proj", ".attn.k_proj", ".attn.v_proj"),
        ".wo": (".attn.proj",),
        ".mlp.fc0": (".mlp.fc1",),
        ".mlp.fc1": (".mlp.fc2",),
        ".proj.0": (".in_proj",),
        ".proj.2": (".out_proj",),
    }
    projector = ("proj.0", "proj.2")

    d_projection: sizes.Positive = sizes.hf("projection_hidden_size")

    norm_eps = sizes.setting("projection_layer_norm_eps")
