"""Gemma 4's language models: full-attention layers have their own head size, and their keys may serve as values.

Small models have Gemma 3n's per-layer embeddings and shared KV caches; the MoE model has experts beside the MLP. Every
layer ends with a stored scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge
from paramcount.architectures.gemma3n import (
    padding_in_both,
    read_own_vector,
    sharing_attention,
    sharing_layers,
    sources_come_first,
    vectors_of_layers,
)
from paramcount.architectures.olmo import bare_norm
from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Size, activate, elementwise, experts, fused, layers, linear, lookup, norm
from paramcount.parts.attentions import Heads
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.vision import insert
from paramcount.sizes import Condition, Flag, Indices, Natural, Positive, Sizes, Words, derived, full_every, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides, check_even, check_sliding_or_full

FULL = "full_attention"


def full_at_the_end(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """The reference makes the last layer a full one, whatever layer_types says of it."""
    words = js.get("layer_types")
    words = full_every(6)(js, c) if words is None else words
    return (*words[:-1], FULL)


def global_kv_heads(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
    """Full layers have fewer key heads only where those serve as values."""
    n = js.get("num_global_key_value_heads") if c["v_is_k"] else None
    return c["n_kv_heads"] if n is None else n


def known_attention(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if (found := js.get("use_bidirectional_attention")) not in (None, "all", "vision"):
        raise ParamcountError(
            f"= {describe_value(found)}", where="use_bidirectional_attention", expected="all, vision or null"
        )


def padding_fits(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    (padding_in_both if c["own_vectors"] else padding_in_table(0))(js, c)


class Gemma4UnifiedText(Sizes):
    """The language model of the 12B.

    Source: modeling_gemma4_unified.py of the reference.

    A config.json says what full layers have of their own in global_head_dim and num_global_key_value_heads, or in
    per_layer_config, beside which those count for nothing: what it leaves out is as in all layers.
    """

    reference: ClassVar[str] = "Gemma4UnifiedForCausalLM"
    base_model: ClassVar[str | None] = "Gemma4UnifiedTextModel"
    layered: ClassVar[Mapping[str, Mapping[str, str]]] = {
        FULL: {"head_dim": "d_global_head", "num_key_value_heads": "n_global_kv_heads"},
        "sliding_attention": {"head_dim": "d_head", "num_key_value_heads": "n_kv_heads"},
    }
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0), known_attention)

    vocab_size: Positive = hf(absent=262144)
    d_model: Positive = hf(absent=2304)
    n_layers: Positive = hf(absent=30)
    n_heads: Positive = hf(absent=8)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=256)
    v_is_k: Flag = hf("attention_k_eq_v", absent=False)
    n_global_kv_heads: Positive = derived(global_kv_heads)
    d_global_head: Positive = hf("global_head_dim", absent=512)
    d_ff: Positive = hf(absent=9216)
    layer_types: Words = derived(full_at_the_end)
    window: Positive = hf(absent=1024)
    kv_sharing_layers: Indices = derived(sharing_layers(0))
    double_wide: Flag = hf("use_double_wide_mlp", absent=False)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return language_model(c, tokens, "model.")

    def unused_fields(c) -> tuple[str, ...]:
        return () if "sliding_attention" in c.layer_types else ("n_kv_heads",)

    def check(c) -> None:
        check_sliding_or_full(c)
        sources_come_first(c)
        check_divides(c, "n_global_kv_heads", "n_heads")
        check_even(c, "d_global_head")
        if "sliding_attention" in c.layer_types:
            check_even(c, "d_head")


class Gemma4Text(Gemma4UnifiedText):
    """Source: modeling_gemma4.py of the reference."""

    reference: ClassVar[str] = "Gemma4ForCausalLM"
    base_model: ClassVar[str | None] = "Gemma4TextModel"
    defaults: ClassVar[Mapping[str, Any]] = {"window": 512}
    conditions: ClassVar[tuple[Condition, ...]] = (padding_fits, known_attention)

    n_per_layer_rows: Positive = hf("vocab_size_per_layer_input", absent=262144)
    d_per_layer: Natural = hf("hidden_size_per_layer_input", absent=256)
    own_vectors: Flag = derived(lambda js, c: c["d_per_layer"] > 0)
    mixture: Flag = hf("enable_moe_block", absent=False)
    n_routed_experts: Natural = hf("num_experts", absent=0, null=0)
    n_active_experts: Natural = hf("top_k_experts", absent=0, null=0)
    d_expert: Natural = hf("moe_intermediate_size", absent=0, null=0)

    def unused_fields(c) -> tuple[str, ...]:
        return (*super().unused_fields(), *(() if c.mixture else ("n_active_experts",)))

    def check(c) -> None:
        super().check()
        for field in ("n_routed_experts", "n_active_experts", "d_expert") if c.mixture else ():
            if getattr(c, field) < 1:
                raise ParamcountError(
                    "is missing", where=FieldName(field), expected="a positive integer, because layers have experts"
                )


def language_model(c: Any, tokens: Data, prefix: str, *others: Data) -> Data:
    """Token ids to logits. `others`: vectors of images and sounds that stand in the places held for them."""
    table = prefix + "embed_tokens.weight"
    x = enlarge(lookup(tokens, table, "embedding", c.vocab_size, c.d_model))
    if others:
        x = insert(x, *others)
    reads = (vectors_of_layers(c, tokens, x, prefix),) if has_own_vectors(c) else ()
    shared = set(c.kv_sharing_layers)
    kinds = [((word, "shared" if i in shared else "own"), 1) for i, word in enumerate(c.layer_types)]
    full, sliding = (c.n_global_kv_heads, c.d_global_head), (c.n_kv_heads, c.d_head)
    carry = (full, full, sliding, sliding) if shared else ()
    x = layers(
        x, prefix + "layers.{layer}.", kinds, lambda kind, *inputs: layer(c, kind, *inputs), reads=reads, carry=carry
    )
    return head(c, norm(x, prefix + "norm"), table)


def has_own_vectors(c: Any) -> bool:
    return getattr(c, "own_vectors", False)


def layer(c: Any, kind: tuple[str, str], x: Data, *inputs: Data) -> Any:
    word, whose = kind
    own, kv = (inputs[0], inputs[1:]) if has_own_vectors(c) else (None, inputs)
    heads = (
        Heads(c.n_heads, c.n_global_kv_heads, c.d_global_head)
        if word == FULL
        else Heads(c.n_heads, c.n_kv_heads, c.d_head)
    )
    window: Size | None = None if word == FULL else c.window
    h = norm(x, "input_layernorm")
    a, kv = sharing_attention(
        h, heads, word, whose, kv, bias=c.attention_bias, window=window, v_is_k=c.v_is_k and word == FULL
    )
    x = x + norm(a, "post_attention_layernorm")
    width = 2 * c.d_ff if c.double_wide and whose == "shared" else c.d_ff
    y = gated_mlp(norm(x, "pre_feedforward_layernorm"), "mlp.", "mlp", width, activation="gelu")
    if getattr(c, "mixture", False):
        y = norm(y, "post_feedforward_layernorm_1") + norm(moe(c, x), "post_feedforward_layernorm_2")
    x = x + norm(y, "post_feedforward_layernorm")
    if own is not None:
        x = x + read_own_vector(c, x, own)
    x = elementwise(x, "scale", "layer_scalar", "other", 1, role="buffer")
    return (x, *kv) if kv else x


def moe(c: Any, x: Data) -> Data:
    """Experts that read the hidden state before the MLP's norm, with a scale per dimension and one per expert."""
    scores = linear(
        elementwise(bare_norm(x), "scale", "router.scale", "router", c.d_model),
        "router.proj",
        "router",
        c.n_routed_experts,
    )
    scores = elementwise(activate(scores, "softmax"), "scale", "router.per_expert_scale", "router", c.n_routed_experts)
    h = norm(x, "pre_feedforward_layernorm_2")
    return experts(h, scores, "experts.", c.n_routed_experts, c.n_active_experts, lambda x: expert(c, x), stacked=True)


def expert(c: Any, x: Data) -> Data:
    gate, up = fused(x, "gate_up_proj", {"experts.gate": c.d_expert, "experts.up": c.d_expert}, suffixes=("", ""))
    return fused(activate(gate, "gelu") * up, "down_proj", {"experts.down": c.d_model}, suffixes=("", ""))[0]
