"""LFM3-VL: an encoder of gated convolutions over the grid of patches and a few layers of attention, before LFM3."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

ROWS_AND_COLUMNS = ops.Axes((1, 1), "restarted")


def words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The first two layers and every second one are convolutions."""
    found = js.get("layer_types")
    if found is None:
        return tuple("conv" if i < 2 or i % 2 else "full_attention" for i in sizes.per_layer(c))
    if not isinstance(found, (list, tuple)) or len(found) < c["n_layers"]:
        raise sizes.make_value_error(found, "layer_types", "one entry per layer")
    return tuple(found)


class Lfm3Vision(parts.VisionEncoder):
    config_class = "Lfm3VlVisionConfig"

    n_channels: sizes.Positive = sizes.hf("in_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_frames: sizes.Positive = sizes.hf("temporal_patch_size")
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")
    n_kv_heads: sizes.Positive = sizes.hf("num_key_value_heads")
    layer_types: sizes.Words = sizes.derived(words)
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")

    norm_eps = sizes.setting("norm_eps")
    rope = sizes.rotary(1_000_000)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, square by square."""
        patches = ops.cut(pixels, c.patch_size, c.patch_size, square=c.merge_size, frames=c.n_frames, axes="cfhw")
        x = c.norm(ops.linear(patches, "patchifier", "embedding", c.d_model), "embedding_norm")
        places = ops.patch_places(pixels, c.patch_size, c.patch_size, square=c.merge_size)
        kinds = [(word, 1) for word in c.layer_types[: c.n_layers]]
        return ops.layers(x, "layers.{layer}.", kinds, lambda kind, *x: c.layer_of(kind, *x), reads=(places,))

    def layer_of(c, kind: str, x: Data, places: Data) -> Data:
        h = c.norm(x, "operator_norm")
        x = x + (c.convolve(h, places) if kind == "conv" else c.attend(h, places))
        names = ("w1", "w3", "w2")
        return x + parts.gated_mlp(
            c.norm(x, "ffn_norm"), "feed_forward.", "mlp", c.d_ff, activation="silu", names=names
        )

    def convolve(c, x: Data, places: Data) -> Data:
        """A convolution between two gates."""
        thirds = dict.fromkeys(("mixer.in", "mixer.gate", "mixer.x"), c.d_model)
        first, second, y = ops.fused(x, "conv.in_proj", thirds)
        y = ops.convolve_patches(first * y, places, "conv.spatial_conv", "mixer.convolution", c.d_conv)
        return ops.linear(second * y, "conv.out_proj", "mixer.out", c.d_model)

    def attend(c, x: Data, places: Data) -> Data:
        q = ops.linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head))  # [n, n_heads, d_head]
        k, v = (ops.linear(x, f"self_attn.{name}_proj", f"qkv.{name}", (c.n_kv_heads, c.d_head)) for name in "kv")
        q, k = c.norm(q, "self_attn.q_layernorm"), c.norm(k, "self_attn.k_layernorm")
        q, k = (ops.rope_at(y, places, c.rope, ROWS_AND_COLUMNS) for y in (q, k))
        return ops.linear(ops.attend(q, k, v), "self_attn.out_proj", "output_projection", c.d_model)

    norm = parts.use_rms_norm


class Lfm3VL(parts.Multimodal):
    """Source: modeling_lfm3_vl.py of the reference."""

    reference = "Lfm3VlForConditionalGeneration"
    sections = sizes.Sections("lfm3", default_tie=True)
    modules = {".patchifier": (".patch_embed",)}

    vision: Lfm3Vision
    d_projector: sizes.Positive = sizes.hf("projector_hidden_size")
    projector_bias: sizes.Flag = sizes.hf("projector_bias")

    activation = sizes.setting("projector_hidden_act")

    def project(c: Any, x: Data, *places: Data) -> Data:
        return c.widen(ops.merge_rows(ops.layer_norm(x, "layer_norm", 1e-6), c.vision.merge_size * c.vision.merge_size))
