"""gpt-oss: every second layer looks back over a window, a sink for each head, biased router and experts."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, experts, fused, linear
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, Words, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_layer_types

KINDS = ("sliding_attention", "full_attention")


class GptOss(Sizes):
    """Source: arXiv:2508.10925, section 2."""

    reference: ClassVar[str] = "GptOssForCausalLM"
    float32_if_float16: ClassVar[tuple[str, ...]] = ("post_attention_layernorm", "input_layernorm", "norm")
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=201088)
    d_model: Positive = hf(absent=2880)
    n_layers: Positive = hf(absent=36)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=64)
    d_expert: Positive = hf("intermediate_size", absent=2880)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=128)
    n_active_experts: Positive = hf(absent=4)
    layer_types: Words = hf(absent=lambda js, c: tuple(KINDS[i % 2] for i in range(c["n_layers"])), null=ABSENT)
    window: Positive = hf(absent=128)
    attention_bias: Flag = hf(absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types])

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)


def layer(c: Any, kind: str, x: Data) -> Data:
    window = c.window if kind == "sliding_attention" else None
    return usual_layer(c, x, lambda h: moe(c, h), bias=c.attention_bias, sinks=True, window=window)


def moe(c: Any, x: Data) -> Data:
    """All experts of a layer are stored as one tensor for each projection, [experts, in, out]."""
    scores = linear(x, "mlp.router", "router", c.n_routed_experts, bias=True)
    return experts(
        x, scores, "mlp.experts.", c.n_routed_experts, c.n_active_experts, lambda x: expert(c, x), stacked=True
    )


def expert(c: Any, x: Data) -> Data:
    halves = {"experts.gate": c.d_expert, "experts.up": c.d_expert}
    gate, up = fused(x, "gate_up_proj", halves, bias=True, transposed=True, suffixes=("", "_bias"))
    return fused(
        activate(gate, "silu") * up,
        "down_proj",
        {"experts.down": c.d_model},
        bias=True,
        transposed=True,
        suffixes=("", "_bias"),
    )[0]
