"""Granite 3 MoE and PowerMoE: a mixture of experts in every layer, all experts of a layer stored as one tensor."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, linear
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.stacked import packed_mlp, stacked_experts
from paramcount.sizes import ABSENT, Condition, Flag, Natural, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table

RELEASED = ("router.layer", "input_linear.weight", "output_linear.weight")


class GraniteMoe(Sizes):
    """Source: modeling_granitemoe.py of the reference."""

    reference: ClassVar[str] = "GraniteMoeForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_expert: Positive = hf("intermediate_size", absent=11008)
    n_routed_experts: Positive = hf("num_local_experts", absent=8)
    n_active_experts: Positive = hf(absent=2)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


class GraniteMoeShared(GraniteMoe):
    """Beside the routed experts one of a width of its own that every token visits.

    Source: modeling_granitemoeshared.py of the reference.
    """

    reference: ClassVar[str] = "GraniteMoeSharedForCausalLM"

    d_shared_expert: Natural = hf("shared_intermediate_size", absent=0)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, shared_layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: moe(c, h, RELEASED), bias=c.attention_bias)


def shared_layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: shared_moe(c, h, RELEASED), bias=c.attention_bias)


def moe(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    """`names`: of the router, of gate and up, of down."""
    scores = linear(x, "block_sparse_moe." + names[0], "router", c.n_routed_experts)
    return stacked_experts(c, x, scores, "block_sparse_moe.", names[1:])


def shared_moe(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    shared = packed_mlp(
        x, "shared_experts", c.d_shared_expert, ("shared_mlp.input_linear.weight", "shared_mlp.output_linear.weight")
    )
    return moe(c, x, names) + shared
