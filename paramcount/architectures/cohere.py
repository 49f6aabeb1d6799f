"""Command R and Aya: parallel attention and MLP after one LayerNorm without a bias.

Command R+ normalizes q and k per head.
"""

from paramcount.flow import Data, layer_norm, norm, rope, scale_by
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import ABSENT, Flag, Natural, Positive, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.rules import check_rotated_in_pairs


class Cohere(AttentionDecoder):
    """Source: modeling_cohere.py of the reference."""

    reference = "CohereForCausalLM"
    gguf = "command-r"
    is_section_type = True
    rotated = "d_head"
    conditions = (padding_in_table(0), not_null("logit_scale", "layer_norm_eps"))

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_ff: Natural = hf()
    qk_norm: Flag = hf("use_qk_norm", null=False)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = rotary(500_000, positions=8192)
    logit_scale = setting("logit_scale", default=0.0625)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        a = c.self_attention(h, bias=c.attention_bias, prepare=c.prepare)
        return x + a + c.gated_mlp(h)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """A norm with weights of its own for each head if there is any, then the rotation."""
        if c.qk_norm:
            q = norm(q, "self_attn.q_norm", kind="layer", eps=c.norm_eps, per_head=True)
            k = norm(k, "self_attn.k_norm", kind="layer", eps=c.norm_eps, per_head=True)
        return rope(q, c.rope, "interleaved"), rope(k, c.rope, "interleaved")

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps, bias=False)

    def head(c, x: Data) -> Data:
        return scale_by(super().head(x), c.logit_scale, "times logit_scale")

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
