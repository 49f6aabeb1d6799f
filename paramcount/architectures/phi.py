"""Phi-1, 1.5 and 2: parallel attention and MLP after one LayerNorm, biases everywhere.

A part of each head is rotated.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, parallel, usual_layer
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import (
    ABSENT,
    Condition,
    Flag,
    Natural,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    equal_to,
    hf,
    rotary_part,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_at_most


class Phi(Sizes):
    """Source: arXiv:2309.05463, section 2.1; modeling_phi.py of the reference."""

    reference: ClassVar[str] = "PhiForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=51200)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_rope: Natural = derived(rotary_part(0.5))
    d_ff: Positive = hf(absent=8192)
    qk_norm: Flag = hf("qk_layernorm", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c, tokens, layer, names=("embed_tokens", "layers", "final_layernorm"), norm_bias=True, head_bias=True
        )

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")
        if c.qk_norm:
            heads_fill_evenly(c)


def heads_fill_evenly(c: Any) -> None:
    """The reference makes the norms of queries and keys as wide as d_model / n_heads, whatever head_dim says."""
    if c.d_model // c.n_heads != c.d_head:
        expected, sizes = c.d_model // c.n_heads, (c.d_head, c.d_model // c.n_heads)
        raise ParamcountError(
            f"= {c.d_head} is not the size of its norm", where="d_head", expected=f"{expected}", sizes=sizes
        )


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c,
        x,
        lambda h: plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True),
        arrange=parallel,
        norm_bias=True,
        bias=True,
        o_name="dense",
        prepare=lambda q, k: prepare(c, q, k),
    )


def prepare(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    """LayerNorms on queries and keys where they are wanted, then the rotation: of Persimmon too."""
    if c.qk_norm:
        q, k = norm(q, "self_attn.q_layernorm", bias=True), norm(k, "self_attn.k_layernorm", bias=True)
    return partial_rope(q, c.d_rope), partial_rope(k, c.d_rope)
