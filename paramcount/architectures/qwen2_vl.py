"""Qwen 2 VL and 2.5 VL: Qwen 2 with positions in time, height and width, and a vision encoder.

The encoder takes images and video of any size. That of 2.5 VL has Qwen 2's norms and gated MLP, and all but a few of
its layers attend within one window of the image.
"""

from typing import Any, ClassVar

from paramcount.architectures.qwen2 import Qwen2
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


class Qwen2VLText(Qwen2):
    """Source: arXiv:2409.12191, section 2.1. In text, the positions in time, height and width are equal."""

    reference = "Qwen2VLForConditionalGeneration"
    model_types = ("qwen2_vl_text",)
    gguf = "qwen2vl"
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "Qwen2VLTextModel"
    conditions = (*Qwen2.conditions, sizes.sections_fill(16, 24, 24))

    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Positive = sizes.derived(
        lambda js, c: js.get("head_dim") or c["d_head"]
    )  # which the heads do not ask
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False, null=False)

    rope = sizes.rotary(1_000_000, 32768)
    layer_types = sizes.setting(default=sizes.sliding_types(80))

    axes = sizes.setting(default=parts.mrope_axes("sections", 16, 24, 24))

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer, if there are several."""
        places, kind = (reads, "full_attention") if c.kinds() is None else (reads[:-1], reads[-1])
        window = c.window if kind == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        rotate = parts.rotation(c, *places)
        x = x + c.self_attention(h, window=window, bias=True, o_bias=False, prepare=c.prepare_by(rotate))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.d_rope != c.d_head > 1:
            raise ParamcountError(
                f"= {c.d_rope} for heads of {c.d_head}",
                where="head_dim",
                expected=f"{c.d_head}",
                sizes=(c.d_rope, c.d_head),
            )


class Qwen2_5VLText(Qwen2VLText):
    """Source: arXiv:2502.13923, section 2.1."""

    reference = "Qwen2_5_VLForConditionalGeneration"
    model_types = ("qwen2_5_vl_text",)
    gguf = "qwen2vl"
    base_model = "Qwen2_5_VLTextModel"


class Qwen2VLVision(parts.SquareEncoder):
    """The encoder: LayerNorms and a plain MLP."""

    config_class = "Qwen2VLVisionConfig"

    d_model: sizes.Positive = sizes.hf("embed_dim")
    d_ff: sizes.Natural = sizes.derived(lambda js, c: c["d_model"] * sizes.check_no_types(js, "mlp_ratio", 4))
    d_out: sizes.Positive = sizes.hf("hidden_size")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        return parts.encode(c, parts.embed_image(c, pixels), parts.places_of(c, pixels))

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + parts.encoder_attention(c, c.norm(x, "norm1"), reads[0])
        return x + parts.encoder_mlp(c, c.norm(x, "norm2"))

    def merge(c, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        return parts.widen(c, parts.merge(c, c.norm(x, "ln_q")), ("mlp.0", "mlp.2"))


class Qwen2_5VLVision(Qwen2VLVision):
    """The encoder: RMS norms and a gated MLP; all but a few layers attend within one window of the image."""

    config_class = "Qwen2_5_VLVisionConfig"

    is_fused: ClassVar[bool] = True  # q, k and v are one stored matrix

    d_model: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    d_out: sizes.Positive = sizes.hf("out_hidden_size")

    window_size = sizes.setting("window_size")  # pixels
    full_layers = sizes.setting("fullatt_block_indexes", default=(7, 15, 23, 31))

    def forward(c, pixels: Data) -> Data:
        windows = ops.patch_windows(pixels, c.patch_size, c.window_size, square=c.merge_size)
        return parts.encode(c, parts.embed_image(c, pixels), parts.places_of(c, pixels), windows)

    def layer(c, x: Data, *reads: Data) -> Data:
        places, windows = reads
        mask = ops.Groups(windows, except_in=c.full_layers)
        x = x + parts.encoder_attention(c, c.norm(x, "norm1"), places, mask=mask, is_fused=c.is_fused)
        return x + parts.gated_mlp(c.norm(x, "norm2"), "mlp.", "mlp", c.d_ff, activation=c.activation, bias=True)

    norm = parts.use_rms_norm


class Qwen2VL(parts.PlacedImages):
    """Source: arXiv:2409.12191, section 2.1."""

    reference = "Qwen2VLForConditionalGeneration"
    gguf = "qwen2vl"
    passes_rope_on = True
    sections = sizes.Sections("qwen2_vl_text", tie_rule="either", ignores_model_type=True, is_flat=True)
    reference_names = {"model.": "model.language_model.", "lm_head.": "lm_head.", "": "model."}

    encoder_prefix = "visual."
    projector_prefix = "visual.merger."
    moved = None

    vision: Qwen2VLVision


class Qwen2_5VL(Qwen2VL):
    """Source: arXiv:2502.13923, section 2.1."""

    reference = "Qwen2_5_VLForConditionalGeneration"
    model_types = ("qwen2_5_vl",)
    gguf = "qwen2vl"
    passes_rope_on = True
    sections = sizes.Sections("qwen2_5_vl_text", tie_rule="either", ignores_model_type=True, is_flat=True)

    vision: Qwen2_5VLVision
