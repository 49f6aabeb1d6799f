"""Ovis 2: an image becomes probabilities of visual tokens, whose embeddings are averaged by them."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes


class Ovis2Vision(parts.PatchVision):
    """`n_tokens`: visual tokens, of which the last ones, `n_indicators`, are not of an image.

    Source: arXiv:2411.14402, section 2, for the layers.
    """

    config_class = "Ovis2VisionConfig"

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    n_tokens: sizes.Positive = sizes.hf("vocab_size")
    n_indicators: sizes.Natural = sizes.hf("num_visual_indicator_tokens")
    merge_size: sizes.Positive = sizes.hf("hidden_stride")
    qkv_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()

    norm_eps: ClassVar = sizes.setting("rms_norm_eps")

    def forward(c, pixels: Data) -> Data:
        """One image to probabilities of visual tokens for each square of patches."""
        x = parts.embed_patches(pixels, "transformer.embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        x = c.norm(x, "transformer.embeddings.rms_norm")
        x = ops.add_positions(x, "transformer.embeddings.position_embedding.weight", c.n_patches, c.d_model)
        x = c.norm(c.encode(x, name="transformer.encoder.layers.{layer}."), "transformer.rms_norm")
        x = ops.merge_squares(x, c.merge_size * c.merge_size)
        x = ops.linear(x, "head_linear", "other", c.n_tokens - c.n_indicators)
        return Data("softmax", (ops.layer_norm(x, "head_norm", 1e-5),), x.shape)

    def layer(c, x: Data, *reads: Data) -> Data:
        h = c.norm(x, "rms_norm1")
        x = x + parts.multi_head(c, h, "attention.", bias=c.qkv_bias)
        h = c.norm(x, "rms_norm2")
        return x + parts.gated_mlp(h, "ffn.", "mlp", c.d_ff, bias=c.mlp_bias, activation=c.activation)

    norm = parts.use_rms_norm


class Ovis2(parts.Multimodal):
    """Source: arXiv:2405.20797, section 3; modeling_ovis2.py of the reference."""

    reference = "Ovis2ForConditionalGeneration"
    sections = sizes.Sections("qwen2", tie_rule="outside", default_tie=True)
    unused_keys = ("vocab_size",)  # of the head, which is tied
    projector_prefix = "model."

    vision: Ovis2Vision
    d_visual: sizes.Positive = sizes.hf("hidden_size")

    def project(c: Any, x: Data, *places: Data) -> Data:
        """Its last rows take the place of the tokens around an image."""
        table = ops.Weight("visual_embeddings_table.weight", "projector", (c.vision.n_tokens, c.d_visual))
        return Data("visual tokens", (x,), ("image", c.d_visual), (table,))
