"""DeepSeek-V3 and R1: DeepSeek-V2 with a learned correction of the router, kept as a buffer, and multi-token prediction."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, given, join, layers, linear, lookup, norm, weigh
from paramcount.parts.decoders import decoder, dense_first, usual_layer
from paramcount.parts.feed_forward import shared_mixture
from paramcount.parts.latent import latent_attention
from paramcount.sizes import Flag, Natural, Positive, Sizes, hf


class DeepseekV3(Sizes):
    """Source: arXiv:2412.19437, section 2."""

    reference: ClassVar[str] = "DeepseekV3ForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"

    vocab_size: Positive = hf(absent=129280)
    d_model: Positive = hf(absent=7168)
    n_layers: Positive = hf(absent=61)
    n_heads: Positive = hf(absent=128)
    d_q_lora: Positive | None = hf(absent=1536)
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=128)
    d_rope: Positive = hf(absent=64)
    d_v: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=18432)
    n_dense_layers: Natural = hf(absent=3, at_most="n_layers")
    d_expert: Positive = hf(absent=2048)
    n_routed_experts: Positive = hf(absent=256)
    n_active_experts: Positive = hf(absent=8)
    n_shared_experts: Natural = hf(absent=1)
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", "num_mtp_layers", absent=1)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_first(c))

    def mtp(c, tokens: Data) -> Data:
        x = given("hidden", "tokens", c.d_model)
        first = c.n_layers  # they are stored behind the model's own
        return layers(x, "model.layers.{layer}.", [("mtp", c.n_mtp_layers)], lambda kind, x, t: mtp_layer(c, x, t), reads=(tokens,), first=first)


def layer(c: Any, kind: str, x: Data) -> Data:
    mixture = (lambda h: shared_mixture(c, h, "mlp.", correct=lambda s: correct(c, s))) if kind == "moe" else None
    return usual_layer(c, x, mixture, attend=latent_attention, bias=c.attention_bias)


def correct(c: Any, scores: Data) -> Data:
    return weigh(scores, "correct", "mlp.gate.e_score_correction_bias", "router", c.n_routed_experts, role="buffer")


def mtp_layer(c: Any, x: Data, tokens: Data) -> Data:
    """The same layer on the last hidden state joined with the next token's embedding; its table and head are the model's.

    Source: arXiv:2412.19437, section 2.2.
    """
    next_token = lookup(tokens, "embed_tokens.weight", "embedding", c.vocab_size, c.d_model, tied_to="model.embed_tokens.weight")
    x = linear(join(norm(next_token, "enorm"), norm(x, "hnorm")), "eh_proj", "other", c.d_model)
    x = layer(c, "moe", x)
    logits = linear(norm(x, "shared_head.norm"), "shared_head.head", "lm_head", c.vocab_size, tied_to="lm_head.weight")
    return Data("hand on", (x, logits), x.shape)
