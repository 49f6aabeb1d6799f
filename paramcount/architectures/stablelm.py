"""StableLM: LayerNorms around Llama's layer, a quarter of each head rotated.

The 12B norms every head by itself and runs attention and MLP side by side.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Body, Data, Repeat, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, parallel, pre_norm, usual_layer
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, rotary_part
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_at_most, check_heads_fill


class StableLm(Sizes):
    """Source: arXiv:2402.17834; for the 12B modeling_stablelm.py of the reference."""

    reference: ClassVar[str] = "StableLmForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=50304)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32)
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotary_part(0.25))
    d_ff: Positive = hf(absent=6912)
    qkv_bias: Flag = hf("use_qkv_bias", absent=False)
    qk_norm: Flag = hf("qk_layernorm", absent=False)
    parallel_residual: Flag = hf("use_parallel_residual", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, norm_bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    arrange = parallel if c.parallel_residual else pre_norm
    return usual_layer(
        c, x, arrange=arrange, norm_bias=True, bias=c.qkv_bias, o_bias=False, prepare=lambda q, k: prepare(c, q, k)
    )


def prepare(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    if c.qk_norm:
        q, k = norm_by_head(q, "self_attn.q_layernorm"), norm_by_head(k, "self_attn.k_layernorm")
    return partial_rope(q, c.d_rope), partial_rope(k, c.d_rope)


def norm_by_head(x: Data, name: str) -> Data:
    """A norm of its own for each head, stored one by one."""
    n = x.shape[1]
    inner = Data("input", (), (x.shape[0], x.shape[2]))
    body = Body(Repeat("head", n, n, runs=((0, n),)), (inner,), norm(inner, ""))
    return Data("heads", (x,), x.shape, prefix=name + ".norms.{head}", bodies=(body,))
