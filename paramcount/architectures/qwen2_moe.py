"""Qwen 1.5 and 2 MoE: many small experts and one wide shared expert behind a gate of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, activate, linear, scale
from paramcount.parts.decoders import decoder, dense_or_moe, usual_layer
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.sizes import (
    Condition,
    Flag,
    Indices,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    hf,
    scattered_dense_layers,
)
from paramcount.sizes.conditions import attention_words, padding_in_table


def window_is_given(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if js.get("use_sliding_window", False) and js.get("sliding_window", 4096) is None:
        raise ParamcountError("= null beside use_sliding_window", where="sliding_window", expected="an integer")


class Qwen2MoE(Sizes):
    """Source: arXiv:2407.10671, section 2.2.2. `d_shared_expert` is a width of its own, not a number of experts."""

    reference: ClassVar[str] = "Qwen2MoeForCausalLM"
    linear_routers: ClassVar[tuple[str, ...]] = (".shared_expert_gate.weight",)
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        attention_words("full_attention", "sliding_attention"),
        window_is_given,
        padding_in_table(None),
    )

    vocab_size: Positive = hf(absent=151936)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=16)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=5632)
    dense_layers: Indices = derived(scattered_dense_layers)
    d_expert: Positive = hf(absent=1408)
    n_routed_experts: Positive = hf("num_experts", absent=60)
    n_active_experts: Positive = hf(absent=4)
    d_shared_expert: Positive = hf("shared_expert_intermediate_size", absent=5632)
    qkv_bias: Flag = hf(absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, (lambda h: moe(c, h)) if kind == "moe" else None, bias=c.qkv_bias, o_bias=False)


def moe(c: Any, x: Data) -> Data:
    shared = gated_mlp(x, "mlp.shared_expert.", "shared_experts", c.d_shared_expert)
    gate = activate(linear(x, "mlp.shared_expert_gate", "router", 1), "sigmoid")
    return mixture(c, x, "mlp.") + scale(shared, gate)
