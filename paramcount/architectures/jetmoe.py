"""JetMoE: attention is a mixture too, of pairs of query and output matrices over shared keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.flow import Body, Data, Repeat, attend, elementwise, fused, linear, rope
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import Condition, Flag, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import padding_in_table


class JetMoe(Sizes):
    """Source: arXiv:2404.07413, section 2. Each attention expert has n_kv_heads query heads."""

    reference: ClassVar[str] = "JetMoeForCausalLM"
    linear_by_component: ClassVar[bool] = False
    unused_keys: ClassVar[tuple[str, ...]] = ("num_attention_heads",)
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=12)
    n_kv_heads: Positive = hf(absent=16)
    d_head: Positive = hf("head_dim", "kv_channels", absent=128)
    d_expert: Positive = hf("intermediate_size", absent=5632)
    n_routed_experts: Positive = hf("num_local_experts", absent=8)
    n_active_experts: Positive = hf(absent=2)
    n_heads: Positive = derived(lambda js, c: c["n_kv_heads"] * c["n_active_experts"])
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(x, lambda h: attention(c, h), lambda h: moe(c, h))


def attention(c: Any, x: Data) -> Data:
    scores = linear(x, "self_attention.experts.router.layer", "router", c.n_routed_experts)
    heads = (c.n_kv_heads, c.d_head)
    k, v = fused(x, "self_attention.kv_proj", {"qkv.k": heads, "qkv.v": heads})
    q = visited(
        c, x, scores, (c.n_heads, c.d_head), lambda x: linear(x, "input_linear", "qkv.q", c.n_kv_heads * c.d_head)
    )
    a = attend(rope(q), rope(k), v)
    a = Data("a part for each expert", (a,), (*x.shape[:1], c.n_kv_heads * c.d_head))
    out = visited(c, a, scores, (c.d_model,), lambda a: linear(a, "output_linear", "output_projection", c.d_model))
    return elementwise(out, "add", "self_attention.experts.bias", "output_projection", c.d_model)


def visited(c: Any, x: Data, scores: Data, width: tuple[Any, ...], body: Callable[[Data], Data]) -> Data:
    """x through the experts that the token visits; what they make stands side by side, or is summed, in `width`."""
    inner = Data("input", (), x.shape)
    repeat = Repeat("expert", c.n_routed_experts, c.n_active_experts, runs=((0, c.n_routed_experts),), stacked=True)
    bodies = (Body(repeat, (inner,), body(inner)),)
    return Data("experts", (x, scores), (*x.shape[:1], *width), prefix="self_attention.experts.", bodies=bodies)


def moe(c: Any, x: Data) -> Data:
    scores = linear(x, "mlp.router.layer", "router", c.n_routed_experts)
    y = stacked_experts(c, x, scores, "mlp.", ("input_linear.weight", "output_linear.weight"))
    return elementwise(y, "add", "mlp.bias", "experts.down", c.d_model)
