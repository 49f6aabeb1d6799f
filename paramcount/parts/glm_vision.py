"""The vision encoder of GLM-4.1V: Qwen 2.5 VL's with RMS norms, positions out of a table and a convolution at its end.

Source: arXiv:2507.01006, section 2; modeling_glm4v.py of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


class GlmVision(sizes.Sizes):
    """The encoders of GLM-4.1V and GLM-OCR. `d_out`: of the language model. `d_merger`: of the MLP behind the encoder.

    A subclass adds these and the MLP's size.
    """

    section: ClassVar[str | None] = "vision_config"

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "depth")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "num_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    n_channels: sizes.Positive = sizes.hf("in_channels")
    n_frames: sizes.Positive = sizes.hf("temporal_patch_size")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")
    attention_bias: sizes.Flag = sizes.hf()

    activation: ClassVar = sizes.setting("hidden_act", usual="silu")
    norm_eps: ClassVar = sizes.setting("rms_norm_eps", usual=1e-5)
    rope: ClassVar = sizes.rotary()
    limit: ClassVar[Any] = None  # of gate and up in the MLPs

    def check(c) -> None:
        sizes.check_heads_fill(c)

    norm = parts.use_rms_norm

    def merge(c: Any, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size: a convolution, a norm and two matrices."""
        x = ops.merge_channels(x, c.merge_size)
        weight = ops.Weight("downsample.weight", "projector", (c.d_out, *x.shape[1:]))
        x = Data(
            ops.Linear(), (x,), ("image", c.d_out), (weight, ops.Weight("downsample.bias", "projector", (c.d_out,)))
        )
        x = ops.layer_norm(ops.linear(x, "merger.proj", "projector", c.d_out), "merger.post_projection_norm", 1e-5)
        return parts.gated_mlp(
            ops.activate(x, "gelu"), "merger.", "mlp", c.d_merger, activation=c.activation, limit=c.limit
        )


class Glm4vVision(GlmVision):
    """Source: Glm4vVisionModel of the reference. The MLP of a layer has the size of the language model."""

    config_class = "Glm4vVisionConfig"

    d_out: sizes.Positive = sizes.hf("out_hidden_size")
    d_merger: sizes.Positive = sizes.hf("intermediate_size")
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 336) // c["patch_size"]) ** 2)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places, table = parts.places_of(c, pixels), "embeddings.position_embedding.weight"
        x = c.norm(parts.embed_image(c, pixels, bias=True), "post_conv_layernorm")
        x = x + ops.lookup_in_grid(places, table, c.n_patches, c.d_model, stretch="centres, cubic")
        return c.norm(parts.encode(c, x, places), "post_layernorm")

    def layer(c, x: Data, places: Data) -> Data:
        x = x + parts.encoder_attention(c, c.norm(x, "norm1"), places, bias=c.attention_bias, o_bias=False)
        return x + parts.gated_mlp(c.norm(x, "norm2"), "mlp.", "mlp", c.d_out, activation=c.activation)


class GlmOcrVision(GlmVision):
    """Norms of queries and keys instead of a table of positions. Source: GlmOcrVisionModel of the reference."""

    config_class = "GlmOcrVisionConfig"

    unused_keys: ClassVar[tuple[str, ...]] = ("image_size",)

    d_ff: sizes.Natural = sizes.hf()
    d_out: sizes.Positive = sizes.hf("out_hidden_size")
    d_merger: sizes.Positive = sizes.derived(lambda js, c: c["d_out"] * c["n_channels"])

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        x = parts.encode(c, parts.embed_image(c, pixels, bias=True), parts.places_of(c, pixels))
        return c.norm(x, "post_layernorm")

    def layer(c, x: Data, places: Data) -> Data:
        bias = c.attention_bias
        x = x + parts.encoder_attention(c, c.norm(x, "norm1"), places, bias=bias, o_bias=bias, qk_norm=True)
        h = c.norm(x, "norm2")
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=bias, limit=c.limit)


class Glm5NextVision(GlmOcrVision):
    """The same with limits in its MLPs. Source: Glm5NextVisionModel of the reference."""

    config_class = "Glm5NextVisionConfig"

    d_merger: sizes.Positive = sizes.hf("projection_intermediate_size")

    limit: ClassVar = sizes.setting("swiglu_limit")
