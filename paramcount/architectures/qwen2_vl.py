"""Qwen 2 VL and 2.5 VL: Qwen 2 with positions in time, height and width, and a vision encoder.

The encoder takes images and video of any size. That of 2.5 VL has Qwen 2's norms and gated MLP, and all but a few of
its layers attend within one window of the image.
"""

from typing import Any, ClassVar

from paramcount.architectures.qwen2 import Qwen2
from paramcount.errors import ParamcountError
from paramcount.flow import Data, block, insert, layer_norm, patch_windows, rms_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.qwen_vision import (
    embed_image,
    encode,
    encoder_attention,
    image_of,
    merge,
    mrope_axes,
    places_in_text,
    places_of,
    rotation,
    widen,
)
from paramcount.parts.vision import encoder_mlp
from paramcount.sizes import Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, rotary, setting
from paramcount.sizes.layer_types import check_no_types, sliding_types
from paramcount.sizes.rotary_sizes import sections_fill
from paramcount.sizes.rules import check_heads_fill
from paramcount.sizes.sections import Sections


class Qwen2VLText(Qwen2):
    """Source: arXiv:2409.12191, section 2.1. In text, the positions in time, height and width are equal."""

    reference = "Qwen2VLForConditionalGeneration"
    model_types = ("qwen2_vl_text",)
    gguf = "qwen2vl"
    reference_names = {"model.": ""}
    base_model = "Qwen2VLTextModel"
    conditions = (*Qwen2.conditions, sections_fill(16, 24, 24))

    d_head: Positive = derived(d_model_per_head)
    d_rope: Positive = derived(lambda js, c: js.get("head_dim") or c["d_head"])  # which the heads do not ask
    tie_word_embeddings: Flag = hf(absent=False, null=False)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, 32768)
    layer_types = setting(default=sliding_types(80))

    axes = mrope_axes("sections", 16, 24, 24)

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer, if there are several."""
        places, kind = (reads, "full_attention") if c.kinds() is None else (reads[:-1], reads[-1])
        window = c.window if kind == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        rotate = rotation(c, *places)
        x = x + c.self_attention(h, window=window, bias=True, o_bias=False, rotate=rotate)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        check_heads_fill(c)
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


class Qwen2VLVision(Sizes):
    """The encoder: LayerNorms and a plain MLP. `d_out`: after the merger."""

    config_class = "Qwen2VLVisionConfig"

    section = "vision_config"

    d_model: Positive = hf("embed_dim")
    n_layers: Natural = hf("num_hidden_layers", "depth")
    n_heads: Positive = hf("num_attention_heads", "num_heads")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = derived(lambda js, c: c["d_model"] * check_no_types(js, "mlp_ratio", 4))
    d_out: Positive = hf("hidden_size")
    n_channels: Positive = hf("in_channels")
    n_frames: Positive = hf("temporal_patch_size")
    patch_size: Positive = hf("patch_size")
    merge_size: Positive = hf("spatial_merge_size")

    activation = setting("hidden_act", default="quick_gelu")
    rope = rotary()
    check = check_heads_fill

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        return encode(c, embed_image(c, pixels), places_of(c, pixels))

    def layer(c, x: Data, places: Data) -> Data:
        x = x + encoder_attention(c, c.norm(x, "norm1"), places)
        return x + encoder_mlp(c, c.norm(x, "norm2"))

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, 1e-6)

    def merge(c, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size."""
        return widen(c, merge(c, c.norm(x, "ln_q")), ("mlp.0", "mlp.2"))


class Qwen2_5VLVision(Qwen2VLVision):
    """The encoder: RMS norms and a gated MLP; all but a few layers attend within one window of the image."""

    config_class = "Qwen2_5_VLVisionConfig"

    is_fused: ClassVar[bool] = True  # q, k and v are one stored matrix

    d_model: Positive = hf()
    d_ff: Natural = hf()
    d_out: Positive = hf("out_hidden_size")

    activation = setting("hidden_act", default="silu")
    window_size = setting("window_size", default=112)  # pixels
    full_layers = setting("fullatt_block_indexes", default=(7, 15, 23, 31))

    def forward(c, pixels: Data) -> Data:
        windows = patch_windows(pixels, c.patch_size, c.window_size, square=c.merge_size)
        return encode(c, embed_image(c, pixels), places_of(c, pixels), windows)

    def layer(c, x: Data, *reads: Data) -> Data:
        places, windows = reads
        options = {"within": windows, "except_in": c.full_layers, "is_fused": c.is_fused}
        x = x + encoder_attention(c, c.norm(x, "norm1"), places, **options)
        return x + gated_mlp(c.norm(x, "norm2"), "mlp.", "mlp", c.d_ff, activation=c.activation, bias=True)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, 1e-6)


class Qwen2VL(Sizes):
    """Source: arXiv:2409.12191, section 2.1."""

    reference = "Qwen2VLForConditionalGeneration"
    gguf = "qwen2vl"
    sections = Sections("qwen2_vl_text", tie_rule="either", ignores_model_type=True, is_flat=True)
    reference_names = {"model.": "model.language_model.", "lm_head.": "lm_head.", "": "model."}

    language: Sizes
    vision: Qwen2VLVision

    image_token = setting("image_token_id", default=151655)

    def forward(c: Any, tokens: Data) -> Data:
        """Images through the encoder and the merger, then among the tokens through the language model."""
        language, pixels = c.language, image_of(c.vision)
        image = block(pixels, "visual.", c.vision.forward, part="vision")
        image = block(image, "visual.merger.", c.vision.merge, part="projector")
        x = insert(language.embed(tokens), tokens, image, c.image_token)
        logits: Data = language.head(language.transform(x, places_in_text(c, tokens, pixels)))
        return logits


class Qwen2_5VL(Qwen2VL):
    """Source: arXiv:2502.13923, section 2.1."""

    reference = "Qwen2_5_VLForConditionalGeneration"
    model_types = ("qwen2_5_vl",)
    gguf = "qwen2vl"
    sections = Sections("qwen2_5_vl_text", tie_rule="either", ignores_model_type=True, is_flat=True)

    vision: Qwen2_5VLVision
