"""C-RADIO: a vision transformer with several class and register tokens in front of its patches.

Positions are those of a large square, shrunk to the image's longer side and cut to its shorter one.

Source: arXiv:2412.07679; modeling_radio.py of the reference.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

VIDEO = "video_embedder"  # the matrix that reads patches of a video


def mlp_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """A gated MLP has two thirds of it, rounded up to a multiple of 8."""
    found: int = sizes.times_mlp_ratio(4.0)(js, c)
    return (int(found * 2 / 3) + 7) // 8 * 8 if js.get("use_swiglu_ffn", False) else found


def count_summaries(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    found = js.get("summary_idxs")
    return 2 if found is None else len(found)


class RadioVision(parts.VisionEncoder):
    """`n_frames`: those of a video that are one patch. `n_summaries`: class tokens that describe the whole image."""

    config_class = "RadioConfig"

    unused_keys = ("image_size", "patch_dim", "video_patch_dim")
    modules: ClassVar = {
        "radio_model.model.patch_generator.embedder": ("embeddings.patch_projection",),
        "radio_model.model.patch_generator.video_embedder": ("embeddings.video_patch_projection",),
        ".attn.qkv": (".attention.q_proj", ".attention.k_proj", ".attention.v_proj"),
        ".attn.proj": (".attention.o_proj",),
    }

    d_head: sizes.Positive = sizes.hf("head_dim", absent=sizes.floor_d_model_per_head)
    is_gated: sizes.Flag = sizes.hf("use_swiglu_ffn")
    d_ff: sizes.Natural = sizes.derived(mlp_size)
    qkv_bias: sizes.Flag = sizes.hf("qkv_bias")
    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_positions: sizes.Natural = sizes.derived(lambda js, c: (js.get("max_img_size", 2048) // c["patch_size"]) ** 2)
    n_class_tokens: sizes.Natural = sizes.hf("num_cls_tokens")
    n_registers: sizes.Natural = sizes.hf("num_registers")
    n_summaries: sizes.Natural = sizes.derived(count_summaries)
    n_frames: sizes.Positive = sizes.hf("video_temporal_patch_size", absent=2)

    def video(c) -> Data:
        """The other input: the frames of one patch of a video, as channels."""
        return ops.given("video", c.n_frames * c.n_channels, "height", "width")

    def forward(c, pixels: Data, name: str = "embedder") -> Data:
        """One image to vectors of its patches. `name`: of the matrix that reads them."""
        prefix = "radio_model.model.patch_generator."
        patches = ops.cut(pixels, c.patch_size, c.patch_size)
        patches = ops.reshape(patches, pixels.shape[0] * c.patch_size * c.patch_size)
        x = ops.linear(patches, prefix + name, "embedding", c.d_model)
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        table = (1, c.n_positions, c.d_model)
        x = x + ops.lookup_in_grid(places, prefix + "pos_embed", *table, stretch="centres of a square")
        tokens = ops.learned_rows(prefix + "cls_token.token", "embedding", c.n_class_tokens + c.n_registers, c.d_model)
        x = c.encode(ops.stack_rows(tokens, x, length="tokens and patches"), name="radio_model.model.blocks.{layer}.")
        return ops.later_rows(x, tokens) if name == VIDEO else c.drop_tokens(x, tokens)

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + ops.multiply_vector(c.attend(c.norm(x, "norm1")), "layer_scale1.lambda1", "other", c.d_model)
        return x + ops.multiply_vector(c.mlp(c.norm(x, "norm2")), "layer_scale2.lambda1", "other", c.d_model)

    def attend(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attn.qkv", bias=c.qkv_bias)  # [n, n_heads, d_head]
        return ops.linear(ops.attend(q, k, v), "attn.proj", "output_projection", c.d_model, bias=True)

    def mlp(c, x: Data) -> Data:
        if c.is_gated:
            return parts.gated_mlp(x, "mlp.", "mlp", c.d_ff, activation="silu", bias=True)
        return parts.plain_mlp(x, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def drop_tokens(c, x: Data, tokens: Data) -> Data:
        """The patches alone. The numbers of the class tokens that describe the image are stored, too."""
        patches = ops.later_rows(x, tokens)
        numbers = ops.Weight("radio_model.summary_idxs", "other", (c.n_summaries,), role="buffer")
        return Data(patches.operation, patches.inputs, patches.shape, (numbers,))

    def check(c) -> None:
        """Heads need not fill d_model."""
