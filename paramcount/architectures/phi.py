"""Phi-1, 1.5 and 2: parallel attention and MLP after one LayerNorm, biases everywhere.

A part of each head is rotated.
"""

from functools import partial
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class Phi(parts.PartlyRotated):
    """Source: arXiv:2309.05463, section 2.1; modeling_phi.py of the reference."""

    reference = "PhiForCausalLM"
    gguf = "phi2"
    task_heads = "GENERIC"
    names = ("embed_tokens", "layers", "final_layernorm")
    rotated = "d_rope"
    is_section_type = False
    conditions = (sizes.padding_in_table(None), sizes.rotates_stated_share(0.5))

    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5, paired=False))
    qk_norm: sizes.Flag = sizes.hf("qk_layernorm")

    norm_eps = sizes.setting("layer_norm_eps")
    rope = sizes.rotary(share=0.5)
    norm = parts.use_layer_norm
    o_name = "dense"

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        a = c.self_attention(h, bias=True, prepare=partial(prepare, c))
        return x + a + parts.plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.embed_tokens.weight", bias=True)

    def check(c) -> None:
        sizes.check_at_most(c, "d_rope", "d_head")
        if c.qk_norm:
            heads_fill_evenly(c)


def heads_fill_evenly(c: Any) -> None:
    """The reference makes the norms of queries and keys as wide as d_model / n_heads, whatever head_dim says."""
    if c.d_model // c.n_heads != c.d_head:
        expected, widths = c.d_model // c.n_heads, (c.d_head, c.d_model // c.n_heads)
        raise ParamcountError(
            f"= {c.d_head} is not the size of the query and key norms, "
            + FieldName("d_model")
            + " / "
            + FieldName("n_heads"),
            where=FieldName("d_head"),
            expected=f"{expected}",
            sizes=widths,
        )


def prepare(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    """Layer norms on queries and keys if there are any, then the rotation; Persimmon's too."""
    if c.qk_norm:
        q = ops.layer_norm(q, "self_attn.q_layernorm", c.norm_eps)
        k = ops.layer_norm(k, "self_attn.k_layernorm", c.norm_eps)
    return parts.partial_rope(q, c.d_rope, c.rope), parts.partial_rope(k, c.d_rope, c.rope)
