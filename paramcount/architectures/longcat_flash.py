"""LongCat-Flash: two attentions and two dense MLPs per layer in parallel with one MoE.

Some of its experts are identities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Unreachable, elementwise, experts, given, layers, linear, norm
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.mla import latent_attention
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import latent_heads_stay_whole, padding_in_table
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_rotated_in_pairs


def layers_of(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """The reference reads num_hidden_layers, where it stands, as a number of attentions: two in a layer."""
    return (
        check_no_types(js, "num_hidden_layers", 56) // 2
        if "num_hidden_layers" in js
        else check_no_types(js, "num_layers", 28)
    )


def visited(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """The most experts with weights that a token visits: it chooses among those that do nothing too."""
    key = "num_experts_per_tok" if "num_experts_per_tok" in js else "moe_topk"
    chosen, n = check_no_types(js, key, 12), c["n_routed_experts"] + c["n_identity_experts"]
    if not 1 < chosen <= n:  # the reference cannot run with one
        raise ParamcountError(f"= {chosen} of {n} experts", where=key, expected=f"2 to {n}")
    most: int = min(chosen, c["n_routed_experts"])
    return most


def visited_at_least(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """All but those that can do nothing."""
    chosen = check_no_types(js, "num_experts_per_tok" if "num_experts_per_tok" in js else "moe_topk", 12)
    least: int = max(0, chosen - c["n_identity_experts"])
    return least


def heads_are_rotated_whole(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """The rotation is made for head_dim and meets d_rope.

    Queries are made for qk_head_dim and cut into d_nope and d_rope.
    """
    for key, absent, fits in (("head_dim", 64, c["d_rope"]), ("qk_head_dim", None, c["d_nope"] + c["d_rope"])):
        value = js.get(key, absent)
        if value != fits and (value is not None or key == "head_dim"):
            raise ParamcountError(f"= {describe_value(value)}", where=key, expected=f"{fits}")


class LongcatFlash(Sizes):
    """Source: arXiv:2509.01322, section 2."""

    reference: ClassVar[str] = "LongcatFlashForCausalLM"
    linear_by_component: ClassVar[bool] = False
    float32_if_float16: ClassVar[tuple[str, ...]] = ("classifier.weight",)
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (
        heads_are_rotated_whole,
        latent_heads_stay_whole(None),
        padding_in_table(None),
    )

    vocab_size: Positive = hf(absent=131072)
    d_model: Positive = hf(absent=6144)
    n_layers: Positive = derived(layers_of)
    n_heads: Positive = hf(absent=64)
    d_q_lora: Positive = hf(absent=1536)
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=128)
    d_rope: Positive = hf(absent=64)
    d_v: Positive = hf(absent=128)
    d_ff: Positive = hf("intermediate_size", "ffn_hidden_size", absent=12288)
    d_expert: Positive = hf("moe_intermediate_size", "expert_ffn_hidden_size", absent=2048)
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=512)
    n_identity_experts: Natural = hf("zero_expert_num", absent=256)
    n_active_experts: Positive = derived(visited)
    n_least_experts: Natural = derived(visited_at_least)
    attention_bias: Flag = hf(absent=False)
    router_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        """LongcatFlashExperts makes gate_up_proj for all experts and down_proj for those that compute.

        Its forward indexes gate_up_proj for these alone. LongcatFlashTopkRouter multiplies with the router's weight and
        never adds its bias.
        """
        x = given("hidden states", "tokens", c.d_model)
        idle = layers(x, "model.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: identity_experts(c, x))
        found = (Unreachable(idle, "identity experts compute nothing"),)
        if not c.router_bias:
            return found
        n = c.n_routed_experts + c.n_identity_experts
        biases = layers(
            x,
            "model.layers.{layer}.",
            [("layer", c.n_layers)],
            lambda kind, x: elementwise(x, "add bias", "mlp.router.classifier.bias", "router", n),
        )
        return (*found, Unreachable(biases, "the router multiplies with its weight alone"))

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")


def layer(c: Any, kind: str, x: Data) -> Data:
    x = x + latent_attention(c, norm(x, "input_layernorm.0"), "self_attn.0.", bias=c.attention_bias)
    h = norm(x, "post_attention_layernorm.0")
    shortcut = moe(c, h)
    x = x + gated_mlp(h, "mlps.0.", "mlp", c.d_ff)
    x = x + latent_attention(c, norm(x, "input_layernorm.1"), "self_attn.1.", bias=c.attention_bias)
    return x + gated_mlp(norm(x, "post_attention_layernorm.1"), "mlps.1.", "mlp", c.d_ff) + shortcut


def moe(c: Any, x: Data) -> Data:
    n = c.n_routed_experts + c.n_identity_experts
    scores = linear(x, "mlp.router.classifier", "router", n)
    scores = elementwise(scores, "correct", "mlp.router.e_score_correction_bias", "router", n, role="buffer")
    return experts(
        x,
        scores,
        "mlp.experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts,
        lambda x: gated_mlp(x, "", "experts", c.d_expert),
        at_least=c.n_least_experts,
    )


def identity_experts(c: Any, x: Data) -> Data:
    """What is allocated of the experts that hand on what they get."""

    def expert(x: Data) -> Data:
        gate, up = (linear(x, f"{name}_proj", f"experts.{name}", c.d_expert) for name in ("gate", "up"))
        return Data("the input", (gate, up), x.shape)

    return experts(x, x, "mlp.experts.{expert}.", c.n_identity_experts, 0, expert, first=c.n_routed_experts)
