"""Janus: one encoder for images that are read, and a VQ-VAE for those that are written, around one language model.

Source: arXiv:2410.13848, section 3.1; arXiv:2501.17811, section 2.1.
"""

from typing import Any

from paramcount.flow import (
    Data,
    activate,
    add_positions,
    attend,
    block,
    bundle,
    given,
    layer_norm,
    linear,
    lookup,
    to_heads,
)
from paramcount.parts.composite import Multimodal
from paramcount.parts.vision import VisionEncoder, embed_patches, encoder_mlp
from paramcount.parts.vq_vae import VqGan
from paramcount.sizes import ConfigJson, FieldValues, Flag, Indices, Natural, Positive, derived, hf, setting
from paramcount.sizes.derivations import times_mlp_ratio
from paramcount.sizes.sections import Sections


def hidden_matrices(key: str) -> Any:
    """The indices of a projector's matrices behind the first."""
    return derived(lambda js, c: tuple(range(max(js.get(key, 2) - 1, 0))))


def n_patches(js: ConfigJson, c: FieldValues) -> int:
    n: int = (js.get("image_size", 384) // c["patch_size"]) ** 2
    return n


class JanusVision(VisionEncoder):
    """SigLIP's layers. With more than one head, the reference cannot norm queries and keys."""

    config_class = "JanusVisionConfig"

    d_ff: Natural = derived(times_mlp_ratio(4.0))
    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")
    n_patches: Natural = derived(n_patches)
    attention_bias: Flag = hf()
    qk_norm: Flag = hf("use_qk_norm")
    d_projected: Positive = hf("projection_dim")
    hidden: Indices = hidden_matrices("depth")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        x = embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        x = add_positions(x, "embeddings.position_embedding.weight", c.n_patches, c.d_model)
        return c.norm(c.encode(x), "post_layernorm")

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.attend(c.norm(x, "layer_norm1"))
        return x + encoder_mlp(c, c.norm(x, "layer_norm2"))

    def attend(c, x: Data) -> Data:
        q, k, v = (linear(x, f"self_attn.{y}_proj", f"qkv.{y}", c.d_model, bias=c.attention_bias) for y in "qkv")
        if c.qk_norm:
            q, k = layer_norm(q, "self_attn.q_norm", 1e-5), layer_norm(k, "self_attn.k_norm", 1e-5)
        a = attend(*(to_heads(y, c.n_heads, c.d_head) for y in (q, k, v)), cached=())
        return linear(a, "self_attn.projection_layer", "output_projection", c.d_model, bias=True)


class JanusVqVae(VqGan):
    """The codes of an image that is written, and how the language model reads and writes them."""

    config_class = "JanusVQVAEConfig"

    unused_keys = ("num_patches",)

    d_projected: Positive = hf("projection_dim")
    hidden: Indices = hidden_matrices("num_hidden_layers")
    d_language: Positive = hf("image_token_embed_dim")

    activation = setting("hidden_act", default="gelu")

    def attention_levels(c) -> tuple[int, ...]:
        return (len(c.multipliers) - 1,)


class Janus(Multimodal):
    """Source: modeling_janus.py of the reference. A text is read without what writes images."""

    reference = "JanusForConditionalGeneration"
    gguf = "llama"
    sections = Sections("llama", default_tie=True, other_sections=("vision_config", "vq_config"))
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.aligner."
    moved = ("model.", "model.language_model.")

    vision: JanusVision
    codec: JanusVqVae

    image_token = setting("image_token_id", default=100581)

    def project(c: Any, x: Data, *places: Data) -> Data:
        return align(x, c.vision, "")

    def see(c: Any) -> Data:
        """An image that is read to vectors of the language model's size; beside them stands what writes one."""
        codec = c.codec
        pixels = given("pixels of a written image", codec.n_channels, "height", "width")
        prefix = "model.vqmodel."
        codes = block(pixels, prefix, lambda x: codec.reconstruct(x, prefix), part="vision")
        vectors = block(codes, "model.", c.read_codes, part="projector")
        states = given("states of a written image", "image", codec.d_language)
        written = block(states, "model.generation_head.", c.score_codes, part="vision")
        return bundle(super().see(), vectors, written)

    def read_codes(c: Any, codes: Data) -> Data:
        """Codes to vectors of the language model's size."""
        x = lookup(codes, "generation_embeddings.weight", "embedding", c.codec.n_codes, c.codec.d_code)
        return align(x, c.codec, "generation_aligner.")

    def score_codes(c: Any, x: Data) -> Data:
        """States of the language model to a score for each code."""
        h = activate(linear(x, "proj_out", "other", c.codec.d_projected, bias=True), c.codec.activation)
        return linear(h, "vision_head", "other", c.codec.n_codes, bias=True)


def align(x: Data, c: Any, prefix: str) -> Data:
    """Vectors to those of the language model's size."""
    x = linear(x, prefix + "fc1", "projector", c.d_projected, bias=True)
    for i in c.hidden:
        x = linear(activate(x, c.activation), f"{prefix}hidden_layers.{i}", "projector", c.d_projected, bias=True)
    return x
