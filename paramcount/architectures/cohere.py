"""Command R and Aya: parallel attention and MLP after one LayerNorm without a bias.

Command R+ normalizes q and k per head.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, Weight, rope
from paramcount.parts.decoders import decoder, parallel, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_rotated_in_pairs


class Cohere(Sizes):
    """Source: modeling_cohere.py of the reference."""

    reference: ClassVar[str] = "CohereForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=256000)
    d_model: Positive = hf(absent=8192)
    n_layers: Positive = hf(absent=40)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=22528)
    qk_norm: Flag = hf("use_qk_norm", absent=False, null=False)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, arrange=parallel, bias=c.attention_bias, prepare=norm_and_rotate if c.qk_norm else None)


def norm_and_rotate(q: Data, k: Data) -> tuple[Data, Data]:
    return rope(head_norm(q, "self_attn.q_norm")), rope(head_norm(k, "self_attn.k_norm"))


def head_norm(x: Data, name: str) -> Data:
    """A norm over d_head with weights of its own for every head."""
    return Data("norm", (x,), x.shape, (Weight(name + ".weight", "norm", x.shape[1:]),))
