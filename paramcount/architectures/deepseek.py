"""DeepSeek-MoE: Llama layers whose feed-forward, after the first, is fine-grained experts beside shared ones."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp, mixture, shared_experts
from paramcount.sizes import Flag, Natural, Positive, Sizes, hf


class DeepseekMoE(Sizes):
    """Source: arXiv:2401.06066, section 3; modeling_deepseek.py of deepseek-ai/deepseek-moe-16b-base."""

    reference: ClassVar[str] = "DeepseekForCausalLM of deepseek-ai/deepseek-moe-16b-base"

    vocab_size: Positive = hf("vocab_size", absent=102400)
    d_model: Positive = hf("hidden_size", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", absent=30)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=lambda js, c: c["n_heads"], null_is_absent=True)
    d_head: Positive = hf(absent=lambda js, c: c["d_model"] // c["n_heads"])
    d_ff: Positive = hf("intermediate_size", absent=11008)
    n_dense_layers: Natural = hf("first_k_dense_replace", absent=0)
    d_expert: Positive = hf("moe_intermediate_size", absent=1407)
    n_routed_experts: Positive = hf("n_routed_experts")
    n_active_experts: Positive = hf("num_experts_per_tok")
    n_shared_experts: Natural = hf("n_shared_experts")
    attention_bias: Flag = hf("attention_bias", absent=False)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [("dense", c.n_dense_layers), ("moe", c.n_layers - c.n_dense_layers)])



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.attention_bias),
        lambda h: moe(c, h) if kind == "moe" else gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )


def moe(c: Any, x: Data) -> Data:
    return mixture(c, x, "mlp.") + shared_experts(c, x, "mlp.")
