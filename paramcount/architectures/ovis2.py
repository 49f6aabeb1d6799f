"""Ovis 2: an image becomes probabilities of visual tokens, whose embeddings are averaged by them."""

from typing import Any, ClassVar

from paramcount.flow import Data, Weight, add_positions, layer_norm, linear, merge_squares, rms_norm
from paramcount.parts.attentions import attention
from paramcount.parts.composite import Multimodal
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.vision import VisionEncoder, embed_patches
from paramcount.sizes import Flag, Natural, Positive, derived, hf, setting
from paramcount.sizes.sections import Sections


class Ovis2Vision(VisionEncoder):
    """`n_tokens`: visual tokens, of which the last ones, `n_indicators`, are not of an image.

    Source: arXiv:2411.14402, section 2, for the layers.
    """

    config_class = "Ovis2VisionConfig"

    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    n_tokens: Positive = hf("vocab_size")
    n_indicators: Natural = hf("num_visual_indicator_tokens")
    merge_size: Positive = hf("hidden_stride")
    qkv_bias: Flag = hf()
    mlp_bias: Flag = hf()

    activation: ClassVar = setting("hidden_act", default="silu")
    norm_eps: ClassVar = setting("rms_norm_eps", default=1e-5)

    def forward(c, pixels: Data) -> Data:
        """One image to probabilities of visual tokens for each square of patches."""
        x = embed_patches(pixels, "transformer.embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        x = c.norm(x, "transformer.embeddings.rms_norm")
        x = add_positions(x, "transformer.embeddings.position_embedding.weight", c.n_patches, c.d_model)
        x = c.norm(c.encode(x, name="transformer.encoder.layers.{layer}."), "transformer.rms_norm")
        x = merge_squares(x, c.merge_size * c.merge_size)
        x = linear(x, "head_linear", "other", c.n_tokens - c.n_indicators)
        return Data("softmax", (layer_norm(x, "head_norm", 1e-5),), x.shape)

    def layer(c, x: Data, *reads: Data) -> Data:
        h = c.norm(x, "rms_norm1")
        x = x + attention(c, h, "attention.", bias=c.qkv_bias, cached=False, rotate=False, o_name="out_proj")
        h = c.norm(x, "rms_norm2")
        return x + gated_mlp(h, "ffn.", "mlp", c.d_ff, bias=c.mlp_bias, activation=c.activation)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)


class Ovis2(Multimodal):
    """Source: arXiv:2405.20797, section 3; modeling_ovis2.py of the reference."""

    reference = "Ovis2ForConditionalGeneration"
    sections = Sections("qwen2", tie_rule="outside", default_tie=True)
    unused_keys = ("vocab_size",)  # of the head, which is tied
    encoder_prefix = "model.vision_tower."
    projector_prefix = "model."
    moved = ("model.", "model.language_model.")

    vision: Ovis2Vision
    d_visual: Positive = hf("hidden_size")

    image_token = setting("image_token_id", default=151665)

    def project(c: Any, x: Data, *places: Data) -> Data:
        """Its last rows take the place of the tokens around an image."""
        table = Weight("visual_embeddings_table.weight", "projector", (c.vision.n_tokens, c.d_visual))
        return Data("visual tokens", (x,), ("image", c.d_visual), (table,))
