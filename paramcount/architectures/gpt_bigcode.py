"""GPTBigCode (StarCoder 1, SantaCoder): GPT-2 with matrices stored [out, in], usually with multi-query attention."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gpt2 import self_attention_only
from paramcount.flow import Data, attend, fused, layers, linear, lookup, norm
from paramcount.parts.decoders import head, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, derived, flag, hf
from paramcount.sizes.rules import check_heads_fill


class GPTBigCode(Sizes):
    """Source: arXiv:2305.06161."""

    reference: ClassVar[str] = "GPTBigCodeForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (self_attention_only,)

    vocab_size: Positive = hf(absent=50257)
    n_positions: Positive = hf("max_position_embeddings", "n_positions", absent=1024)
    d_model: Positive = hf("hidden_size", "n_embd", absent=768)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=12)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=12)
    n_kv_heads: Positive = derived(lambda js, c: 1 if flag(js, "multi_query", True) else c["n_heads"])
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        x = lookup(tokens, "transformer.wte.weight", "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, "transformer.wpe.weight", "position", c.n_positions, c.d_model)
        x = layers(x, "transformer.h.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))
        return head(c, norm(x, "transformer.ln_f", bias=True), "transformer.wte.weight")

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, x: Data) -> Data:
    names = ("mlp.c_fc", "mlp.c_proj")
    return pre_norm(
        x,
        lambda h: attention(c, h),
        lambda h: plain_mlp(h, names, "mlp", c.d_ff, bias=True),
        ("ln_1", "ln_2"),
        bias=True,
    )


def attention(c: Any, x: Data) -> Data:
    shared = (c.n_kv_heads, c.d_head)
    q, k, v = fused(x, "attn.c_attn", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": shared, "qkv.v": shared}, bias=True)
    return linear(attend(q, k, v), "attn.c_proj", "output_projection", c.d_model, bias=True)
