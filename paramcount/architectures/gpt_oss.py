"""gpt-oss: every second layer looks back over a window, a sink for each head, biased router and experts."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, act, experts, fused, linear
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.sizes import Flag, Positive, Sizes, Words, hf, one_of_each

KINDS = ("sliding_attention", "full_attention")


class GptOss(Sizes):
    """Source: arXiv:2508.10925, section 2."""

    reference: ClassVar[str] = "GptOssForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=201088)
    d_model: Positive = hf("hidden_size", absent=2880)
    n_layers: Positive = hf("num_hidden_layers", absent=36)
    n_heads: Positive = hf("num_attention_heads", absent=64)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=8)
    d_head: Positive = hf("head_dim", absent=64)
    d_expert: Positive = hf("intermediate_size", absent=2880)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=128)
    n_active_experts: Positive = hf("num_experts_per_tok", absent=4)
    layer_types: Words = hf("layer_types", absent=lambda js, c: tuple(KINDS[i % 2] for i in range(c["n_layers"])), null_is_absent=True)
    window: Positive = hf("sliding_window", absent=128)
    attention_bias: Flag = hf("attention_bias", absent=True)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types])

    def check(c) -> None:
        one_of_each(c, "layer_types", "n_layers", KINDS)



def layer(c: Any, kind: str, x: Data) -> Data:
    window = c.window if kind == "sliding_attention" else None
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.attention_bias, sinks=True, window=window),
        lambda h: moe(c, h),
    )


def moe(c: Any, x: Data) -> Data:
    """All experts of a layer are stored as one tensor for each projection, [experts, in, out]."""
    scores = linear(x, "mlp.router", "router", c.n_routed_experts, bias=True)
    return experts(x, scores, "mlp.experts.", c.n_routed_experts, c.n_active_experts, lambda x: expert(c, x), stacked=True)


def expert(c: Any, x: Data) -> Data:
    halves = {"experts.gate": c.d_expert, "experts.up": c.d_expert}
    gate, up = fused(x, "gate_up_proj", halves, bias=True, transposed=True, suffixes=("", "_bias"))
    return fused(act(gate, "silu") * up, "down_proj", {"experts.down": c.d_model}, bias=True, transposed=True, suffixes=("", "_bias"))[0]
