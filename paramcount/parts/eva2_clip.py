"""EVA2-CLIP's encoder of CogVLM2 and GLM-4V: norms stand behind attention and MLP, and a convolution merges squares of
four patches before a gated MLP.

Source: arXiv:2408.16500, section 2.1; visual.py of THUDM/cogvlm2-llama3-chat-19B; glm4v.py of vLLM.
"""

from __future__ import annotations

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


class Eva2Clip(parts.VisionEncoder):
    """`n_positions`: of the class token and the patches."""

    section = "vision_config"
    config_class = ""
    unused_keys = ("image_size", "dropout_prob")

    d_model: sizes.Positive = sizes.hf("hidden_size")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("num_heads")
    d_ff: sizes.Natural = sizes.hf("intermediate_size")
    n_channels: sizes.Positive = sizes.hf("in_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_positions: sizes.Positive = sizes.hf("num_positions")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        x = parts.embed_patches(pixels, "patch_embedding.proj", c.d_model, c.patch_size, bias=True)
        x = ops.class_token(x, "patch_embedding.cls_embedding", 1, c.d_model)
        x = ops.add_positions(x, "patch_embedding.position_embedding.weight", c.n_positions, c.d_model)
        return ops.other_tokens(c.encode(x, name="transformer.layers.{layer}."))

    def layer(c, x: Data, *reads: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attention.query_key_value")  # [n, n_heads, d_head]
        a = ops.linear(ops.attend(q, k, v), "attention.dense", "output_projection", c.d_model, bias=True)
        x = x + c.norm(a, "input_layernorm")
        return x + c.norm(parts.encoder_mlp(c, x), "post_attention_layernorm")


def join_squares(x: Data, d_conv: ops.Size, d_ff: ops.Size, d_out: ops.Size) -> Data:
    """Patches to a quarter as many vectors of the language model's size, between two learned ones. `d_conv`: of what
    the convolution returns.
    """
    x = ops.convolve_image(x, "conv", "projector", d_conv, 2, stride=2, bias=True, padding=ops.BEHIND)
    x = ops.linear(x, "linear_proj.linear_proj", "projector", d_out)
    x = ops.activate(ops.layer_norm(x, "linear_proj.norm1", 1e-5), "gelu")
    gate = ops.activate(ops.linear(x, "linear_proj.gate_proj", "projector", d_ff), "silu")
    x = ops.linear(gate * ops.linear(x, "linear_proj.dense_h_to_4h", "projector", d_ff), "linear_proj.dense_4h_to_h",
                   "projector", d_out)  # fmt: skip
    x = ops.class_token(x, "boi", 1, 1, d_out, component="projector")
    return ops.class_token(x, "eoi", 1, 1, d_out, component="projector", last=True)
