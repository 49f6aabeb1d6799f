"""Command R and Aya: parallel attention and MLP after one LayerNorm without a bias.

Command R+ normalizes q and k per head.
"""

from paramcount.declare import Data, ops, parts, sizes


class Cohere(parts.AttentionBias, parts.AttentionDecoder):
    """Source: modeling_cohere.py of the reference."""

    reference = "CohereForCausalLM"
    gguf = "command-r"
    conditions = (sizes.padding_in_table(0), sizes.not_null("logit_scale", "layer_norm_eps"))

    qk_norm: sizes.Flag = sizes.hf("use_qk_norm", null=False)

    norm_eps = sizes.setting("layer_norm_eps")
    logit_scale = sizes.setting("logit_scale")

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        a = c.self_attention(h, bias=c.attention_bias, prepare=c.prepare)
        return x + a + c.gated_mlp(h)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """A norm with weights of its own for each head if there is any, then the rotation."""
        if c.qk_norm:
            q = ops.layer_norm_per_head(q, "self_attn.q_norm", c.norm_eps)
            k = ops.layer_norm_per_head(k, "self_attn.k_norm", c.norm_eps)
        return ops.rope(q, c.rope, "interleaved"), ops.rope(k, c.rope, "interleaved")

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, bias=False)

    def head(c, x: Data) -> Data:
        return ops.scale_by(super().head(x), c.logit_scale, "times logit_scale")

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_head")
