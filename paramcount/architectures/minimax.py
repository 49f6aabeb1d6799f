"""MiniMax-Text-01 as the reference builds it: lightning attention and softmax attention in turn, with experts.

The residual starts after the norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, Weight, norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import mixture
from paramcount.parts.linear_attention import lightning_attention
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, Words, d_model_per_head, hf, per_layer
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.mixers import list_unused_fields
from paramcount.sizes.rules import check_layer_types

KINDS = ("full_attention", "linear_attention", "attention", "mamba")  # the last two are the older words


def in_turn(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(KINDS[i % 2] for i in per_layer(c))


class MiniMax(Sizes):
    """Source: arXiv:2501.08313, section 2."""

    reference: ClassVar[str] = "MiniMaxForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    layer_types: Words = hf(absent=in_turn, null=ABSENT)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    window: Positive | None = hf(absent=None)
    d_expert: Positive = hf("intermediate_size", absent=14336)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=8)
    n_active_experts: Positive = hf(absent=2)
    block_size: Positive = hf(
        "block_size", absent=256
    )  # tokens that lightning attention takes together; its decays are stored for them
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(word, 1) for word in c.layer_types])

    def unused_fields(c) -> tuple[str, ...]:
        return list_unused_fields(c.layer_types)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)


def layer(c: Any, word: str, x: Data) -> Data:
    """The residual starts behind the norm."""
    h = norm(x, "input_layernorm")
    if word in ("linear_attention", "mamba"):
        x = h + lightning_attention(c, h, "self_attn.", *decays(c, "self_attn."))
    else:
        x = h + attention(c, h, "self_attn.", window=c.window, keeps_all=True)
    h = norm(x, "post_attention_layernorm")
    return h + mixture(c, h, "block_sparse_moe.", names=("w1", "w3", "w2"))


def decays(c: Any, prefix: str) -> tuple[Weight, ...]:
    shapes = {
        "slope_rate": (c.n_heads, 1, 1),
        "query_decay": (c.n_heads, c.block_size, 1),
        "key_decay": (c.n_heads, c.block_size, 1),
        "diagonal_decay": (1, c.n_heads, c.block_size, c.block_size),
    }
    return tuple(Weight(prefix + name, "mixer.state", shape, role="buffer") for name, shape in shapes.items())
