"""Janus: one encoder for images that are read, and a VQ-VAE for those that are written, around one language model.

Source: arXiv:2410.13848, section 3.1; arXiv:2501.17811, section 2.1.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def hidden_matrices(key: str) -> Any:
    """The indices of a projector's matrices behind the first."""
    return sizes.derived(lambda js, c: tuple(range(max(js.get(key, 2) - 1, 0))))


def n_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return (js.get("image_size", 384) // c["patch_size"]) ** 2


class JanusVision(parts.PatchVision):
    """SigLIP's layers. With more than one head, the reference cannot norm queries and keys."""

    config_class = "JanusVisionConfig"

    d_ff: sizes.Natural = sizes.derived(sizes.times_mlp_ratio(4.0))
    n_patches: sizes.Natural = sizes.derived(n_patches)
    attention_bias: sizes.Flag = sizes.hf()
    qk_norm: sizes.Flag = sizes.hf("use_qk_norm")
    d_projected: sizes.Positive = sizes.hf("projection_dim")
    hidden: sizes.Indices = hidden_matrices("depth")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        x = ops.add_positions(x, "embeddings.position_embedding.weight", c.n_patches, c.d_model)
        return c.norm(c.encode(x), "post_layernorm")

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.attend(c.norm(x, "layer_norm1"))
        return x + parts.encoder_mlp(c, c.norm(x, "layer_norm2"))

    def attend(c, x: Data) -> Data:
        q, k, v = (ops.linear(x, f"self_attn.{y}_proj", f"qkv.{y}", c.d_model, bias=c.attention_bias) for y in "qkv")
        if c.qk_norm:
            q, k = ops.layer_norm(q, "self_attn.q_norm", 1e-5), ops.layer_norm(k, "self_attn.k_norm", 1e-5)
        a = ops.attend(*(ops.to_heads(y, c.n_heads, c.d_head) for y in (q, k, v)))  # [n, n_heads, d_head]
        return ops.linear(a, "self_attn.projection_layer", "output_projection", c.d_model, bias=True)


class JanusVqVae(parts.VqGan):
    """The codes of an image that is written, and how the language model reads and writes them."""

    config_class = "JanusVQVAEConfig"

    unused_keys = ("num_patches",)

    d_projected: sizes.Positive = sizes.hf("projection_dim")
    hidden: sizes.Indices = hidden_matrices("num_hidden_layers")
    d_language: sizes.Positive = sizes.hf("image_token_embed_dim")

    activation = sizes.setting("hidden_act")

    def attention_levels(c) -> tuple[int, ...]:
        return (len(c.multipliers) - 1,)


class Janus(parts.Multimodal):
    """Source: modeling_janus.py of the reference. A text is read without what writes images."""

    reference = "JanusForConditionalGeneration"
    gguf = "llama"
    sections = sizes.Sections("llama", default_tie=True, other_sections=("vision_config", "vq_config"))
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.aligner."

    vision: JanusVision
    codec: JanusVqVae

    def project(c: Any, x: Data, *places: Data) -> Data:
        return align(x, c.vision, "")

    def see(c: Any) -> Data:
        """An image that is read to vectors of the language model's size; beside them stands what writes one."""
        codec = c.codec
        pixels = ops.given("pixels of a written image", codec.n_channels, "height", "width")
        prefix = "model.vqmodel."
        codes = ops.block(pixels, prefix, lambda x: codec.reconstruct(x, prefix), part="vision")
        vectors = ops.block(codes, "model.", c.read_codes, part="projector")
        states = ops.given("states of a written image", "image", codec.d_language)
        written = ops.block(states, "model.generation_head.", c.score_codes, part="vision")
        return ops.bundle(super().see(), vectors, written)

    def read_codes(c: Any, codes: Data) -> Data:
        """Codes to vectors of the language model's size."""
        x = ops.lookup(codes, "generation_embeddings.weight", "embedding", c.codec.n_codes, c.codec.d_code)
        return align(x, c.codec, "generation_aligner.")

    def score_codes(c: Any, x: Data) -> Data:
        """States of the language model to a score for each code."""
        h = ops.activate(ops.linear(x, "proj_out", "other", c.codec.d_projected, bias=True), c.codec.activation)
        return ops.linear(h, "vision_head", "other", c.codec.n_codes, bias=True)


def align(x: Data, c: Any, prefix: str) -> Data:
    """Vectors to those of the language model's size."""
    x = ops.linear(x, prefix + "fc1", "projector", c.d_projected, bias=True)
    for i in c.hidden:
        x = ops.linear(
            ops.activate(x, c.activation), f"{prefix}hidden_layers.{i}", "projector", c.d_projected, bias=True
        )
    return x
