"""Persimmon: fused q, k and v, LayerNorms on queries and keys, and a squared ReLU.

Half of each head is rotated.
"""

from typing import ClassVar

from paramcount.architectures.phi import prepare
from paramcount.declare import Data, ops, parts, sizes


class Persimmon(parts.Decoder):
    """Source: modeling_persimmon.py of the reference."""

    reference = "PersimmonForCausalLM"
    is_section_type = True
    task_heads = "GENERIC"
    names = ("embed_tokens", "layers", "final_layernorm")
    rotated = "d_rope"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(None), sizes.rotates_stated_share(0.5))

    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5, paired=False))
    d_ff: sizes.Natural = sizes.hf()
    qk_norm: sizes.Flag = sizes.hf("qk_layernorm")

    norm_eps = sizes.setting("layer_norm_eps")
    rope = sizes.rotary(10_000.0, share=0.5)  # Fuyu's, too
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"))
        h, names = c.norm(x, "post_attention_layernorm"), ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        return x + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True)

    def attend(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "self_attn.query_key_value", groups=c.n_heads)  # [n, n_heads, d_head]
        q, k = prepare(c, q, k)
        return ops.linear(ops.attend_causally(q, k, v), "self_attn.dense", "output_projection", c.d_model, bias=True)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_at_most(c, "d_rope", "d_head")
