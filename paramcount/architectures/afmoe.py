"""Arcee's Trinity: gated attention, pre-norm and post-norm, routed and shared experts.

Only layers with a sliding window use rotary positions.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge
from paramcount.flow import Data
from paramcount.parts.attentions import normed, sigmoid_gate
from paramcount.parts.decoders import decoder, sandwich, typed_layers, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Words,
    derived,
    equal_to,
    hf,
)
from paramcount.sizes.conditions import even_where_rotated, padding_in_table
from paramcount.sizes.layer_types import first_dense, full_every_key, needed
from paramcount.sizes.rules import check_experts_exist, check_layer_types

NORMS = ("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm")


class Afmoe(Sizes):
    """Source: arXiv:2602.17004. `scaled_embedding`: a token's row is multiplied by the root of d_model."""

    reference: ClassVar[str] = "AfmoeForCausalLM"
    linear_routers: ClassVar[tuple[str, ...]] = (".router.gate.weight",)
    float32_if_float16: ClassVar[tuple[str, ...]] = (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_mlp_layernorm",
        "post_mlp_layernorm",
        "q_norm",
        "k_norm",
        "norm",
        "expert_bias",
    )
    conditions: ClassVar[tuple[Condition, ...]] = (
        padding_in_table(None),
        even_where_rotated("sliding_attention", named=True),
    )

    vocab_size: Positive = hf(absent=200192)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=128)
    layer_types: Words = hf(absent=full_every_key("global_attn_every_n_layers", 4), null=ABSENT)
    window: Positive = hf(absent=1024)
    d_ff: Positive = hf(absent=6144)
    dense_layers: Indices = derived(first_dense(1, "num_dense_layers"))
    d_expert: Positive = hf(absent=1408)
    n_routed_experts: Natural = hf("num_experts", absent=64, null=needed("num_experts"))
    n_active_experts: Natural = hf(absent=6, null=needed("num_experts_per_tok"))
    n_shared_experts: Natural = hf("num_shared_experts", absent=2, null=needed("num_shared_experts"))
    attention_bias: Flag = hf(absent=False)
    scaled_embedding: Flag = hf("mup_enabled", absent=False, null=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        kinds = typed_layers(c.layer_types, c.dense_layers)
        return decoder(c, tokens, layer, kinds, enter=enlarge if c.scaled_embedding else None)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", SLIDING)
        check_experts_exist(c)


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind
    sliding = word == "sliding_attention"
    options: dict[str, Any] = {
        "prepare": normed(rotate=sliding),
        "window": c.window if sliding else None,
        "gate": sigmoid_gate("self_attn.gate_proj"),
    }
    return usual_layer(
        c, x, (lambda h: moe(c, h)) if mlp == "moe" else None, arrange=arrange, bias=c.attention_bias, **options
    )


def moe(c: Any, x: Data) -> Data:
    return corrected_mixture(c, x, "mlp.", router="router.gate", name="expert_bias", role="parameter")


def arrange(x: Data, attention: Any, feed_forward: Any, *, bias: bool = False) -> Data:
    return sandwich(x, attention, feed_forward, NORMS, bias=bias)
