"""The vision encoder of GLM-4.1V: Qwen 2.5 VL's with RMS norms, positions out of a table and a convolution at its end.

Source: arXiv:2507.01006, section 2; modeling_glm4v.py of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, Linear, Weight, activate, layer_norm, linear, lookup_in_grid, merge_channels, rms_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.qwen_vision import embed_image, encode, encoder_attention, places_of
from paramcount.sizes import Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, rotary, setting
from paramcount.sizes.rules import check_heads_fill


class GlmVision(Sizes):
    """The encoders of GLM-4.1V and GLM-OCR. `d_out`: of the language model. `d_merger`: of the MLP behind the encoder.

    A subclass adds these and the MLP's size.
    """

    section: ClassVar[str | None] = "vision_config"

    d_model: Positive = hf()
    n_layers: Natural = hf("num_hidden_layers", "depth")
    n_heads: Positive = hf("num_attention_heads", "num_heads")
    d_head: Positive = derived(d_model_per_head)
    n_channels: Positive = hf("in_channels")
    n_frames: Positive = hf("temporal_patch_size")
    patch_size: Positive = hf("patch_size")
    merge_size: Positive = hf("spatial_merge_size")
    attention_bias: Flag = hf()

    activation: ClassVar = setting("hidden_act", usual="silu")
    norm_eps: ClassVar = setting("rms_norm_eps", usual=1e-5)
    rope: ClassVar = rotary()
    limit: ClassVar[Any] = None  # of gate and up in the MLPs

    def check(c) -> None:
        check_heads_fill(c)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)

    def merge(c: Any, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size: a convolution, a norm and two matrices."""
        x = merge_channels(x, c.merge_size)
        weight = Weight("downsample.weight", "projector", (c.d_out, *x.shape[1:]))
        x = Data(Linear(), (x,), ("image", c.d_out), (weight, Weight("downsample.bias", "projector", (c.d_out,))))
        x = layer_norm(linear(x, "merger.proj", "projector", c.d_out), "merger.post_projection_norm", 1e-5)
        return gated_mlp(activate(x, "gelu"), "merger.", "mlp", c.d_merger, activation=c.activation, limit=c.limit)


class Glm4vVision(GlmVision):
    """Source: Glm4vVisionModel of the reference. The MLP of a layer has the size of the language model."""

    config_class = "Glm4vVisionConfig"

    d_out: Positive = hf("out_hidden_size")
    d_merger: Positive = hf("intermediate_size")
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 336) // c["patch_size"]) ** 2)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places, table = places_of(c, pixels), "embeddings.position_embedding.weight"
        x = c.norm(embed_image(c, pixels, bias=True), "post_conv_layernorm")
        x = x + lookup_in_grid(places, table, c.n_patches, c.d_model, stretch="centres, cubic")
        return c.norm(encode(c, x, places), "post_layernorm")

    def layer(c, x: Data, places: Data) -> Data:
        x = x + encoder_attention(c, c.norm(x, "norm1"), places, bias=c.attention_bias, o_bias=False)
        return x + gated_mlp(c.norm(x, "norm2"), "mlp.", "mlp", c.d_out, activation=c.activation)


class GlmOcrVision(GlmVision):
    """Norms of queries and keys instead of a table of positions. Source: GlmOcrVisionModel of the reference."""

    config_class = "GlmOcrVisionConfig"

    unused_keys: ClassVar[tuple[str, ...]] = ("image_size",)

    d_ff: Natural = hf()
    d_out: Positive = hf("out_hidden_size")
    d_merger: Positive = derived(lambda js, c: c["d_out"] * c["n_channels"])

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        x = encode(c, embed_image(c, pixels, bias=True), places_of(c, pixels))
        return c.norm(x, "post_layernorm")

    def layer(c, x: Data, places: Data) -> Data:
        bias = c.attention_bias
        x = x + encoder_attention(c, c.norm(x, "norm1"), places, bias=bias, o_bias=bias, qk_norm=True)
        h = c.norm(x, "norm2")
        return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=bias, limit=c.limit)


class Glm5NextVision(GlmOcrVision):
    """The same with limits in its MLPs. Source: Glm5NextVisionModel of the reference."""

    config_class = "Glm5NextVisionConfig"

    d_merger: Positive = hf("projection_intermediate_size")

    limit: ClassVar = setting("swiglu_limit")
