"""PaddleOCR-VL: SigLIP's encoder with rotary positions too, and ERNIE 4.5 with positions in time, height and width."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class PaddleOCRText(parts.AttentionDecoder):
    """Source: arXiv:2510.14528, section 2; PaddleOCRTextModel of the reference."""

    reference = "PaddleOCRVLForConditionalGeneration"
    model_types = ("paddleocr_vl_text",)
    reference_names = {"model.": ""}
    base_model = "PaddleOCRTextModel"
    rotated = "d_head"
    is_section_type = False
    conditions = (sizes.padding_in_table(0), sizes.sections_fill(16, 24, 24))

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(null=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    bias: sizes.Flag = sizes.hf("use_bias", null=False)
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.rotary(500_000, 131072)
    axes = sizes.setting(default=parts.mrope_axes("sections", 16, 24, 24))

    def layer(c, x: Data, *places: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.bias, prepare=c.prepare_by(parts.rotation(c, *places)))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.bias)


class PaddleOCRVision(parts.SiglipRotaryVision):
    """A table of positions is stretched over the image."""

    config_class = "PaddleOCRVisionConfig"

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 384) // c["patch_size"]) ** 2)
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")

    def add_positions(c, x: Data, places: Data) -> Data:
        table = "embeddings.position_embedding.weight"
        return x + ops.lookup_in_grid(places, table, c.n_patches, c.d_model, stretch="centres")


class PaddleOCRVL(parts.PlacedImages):
    """Source: arXiv:2510.14528, section 2; modeling_paddleocr_vl.py of the reference."""

    reference = "PaddleOCRVLForConditionalGeneration"
    sections = sizes.Sections(
        "paddleocr_vl_text", tie_rule="either", default_tie=True, ignores_model_type=True, is_flat=True
    )
    reference_names = {
        "model.": "model.language_model.",
        "mlp_AR.": "model.projector.",
        "lm_head.": "lm_head.",
        "": "model.",
    }
    encoder_prefix = "visual.vision_model."
    projector_prefix = "mlp_AR."
    moved = ("model.", "model.")
    places = parts.places_of_patches

    vision: PaddleOCRVision

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.merge_squares(ops.layer_norm(x, "pre_norm", 1e-5), c.vision.merge_size * c.vision.merge_size, *places)
        x = ops.activate(ops.linear(x, "linear_1", "projector", x.shape[-1], bias=True), "gelu")
        return ops.linear(x, "linear_2", "projector", c.language.d_model, bias=True)
