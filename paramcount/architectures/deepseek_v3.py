"""DeepSeek-V3 and R1: DeepSeek-V2 with a learned correction of the router, kept as a buffer, and multi-token prediction."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, join, layers, linear, lookup, norm, weigh
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp, mixture, shared_experts
from paramcount.parts.latent import latent_attention
from paramcount.sizes import Flag, Natural, Positive, Sizes, hf


class DeepseekV3(Sizes):
    """Source: arXiv:2412.19437, section 2."""

    reference: ClassVar[str] = "DeepseekV3ForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=129280)
    d_model: Positive = hf("hidden_size", absent=7168)
    n_layers: Positive = hf("num_hidden_layers", absent=61)
    n_heads: Positive = hf("num_attention_heads", absent=128)
    d_q_lora: Positive | None = hf("q_lora_rank", absent=1536)
    d_kv_lora: Positive = hf("kv_lora_rank", absent=512)
    d_nope: Positive = hf("qk_nope_head_dim", absent=128)
    d_rope: Positive = hf("qk_rope_head_dim", absent=64)
    d_v: Positive = hf("v_head_dim", absent=128)
    d_ff: Positive = hf("intermediate_size", absent=18432)
    n_dense_layers: Natural = hf("first_k_dense_replace", absent=3)
    d_expert: Positive = hf("moe_intermediate_size", absent=2048)
    n_routed_experts: Positive = hf("n_routed_experts", absent=256)
    n_active_experts: Positive = hf("num_experts_per_tok", absent=8)
    n_shared_experts: Natural = hf("n_shared_experts", absent=1)
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", "num_mtp_layers", absent=1)
    attention_bias: Flag = hf("attention_bias", absent=False)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [("dense", c.n_dense_layers), ("moe", c.n_layers - c.n_dense_layers)])

    def mtp(c, tokens: Data, x: Data) -> Data:
        first = c.n_layers  # they are stored behind the model's own
        return layers(x, "model.layers.{layer}.", [("mtp", c.n_mtp_layers)], lambda kind, x, t: mtp_layer(c, x, t), reads=(tokens,), first=first)



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: latent_attention(c, h, "self_attn.", bias=c.attention_bias),
        lambda h: moe(c, h) if kind == "moe" else gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )


def moe(c: Any, x: Data) -> Data:
    def correct(scores: Data) -> Data:
        return weigh(scores, "correct", "mlp.gate.e_score_correction_bias", "router", c.n_routed_experts, role="buffer")

    return mixture(c, x, "mlp.", correct=correct) + shared_experts(c, x, "mlp.")


def mtp_layer(c: Any, x: Data, tokens: Data) -> Data:
    """The same layer on the last hidden state joined with the next token's embedding; its table and head are the model's.

    Source: arXiv:2412.19437, section 2.2.
    """
    next_token = lookup(tokens, "embed_tokens.weight", "embedding", c.vocab_size, c.d_model, tied_to="model.embed_tokens.weight")
    x = linear(join(norm(next_token, "enorm"), norm(x, "hnorm")), "eh_proj", "other", c.d_model)
    x = layer(c, "moe", x)
    logits = linear(norm(x, "shared_head.norm"), "shared_head.head", "lm_head", c.vocab_size, tied_to="lm_head.weight")
    return Data("hand on", (x, logits), x.shape)
