"""DeepSeek-V2: latent attention, fine-grained experts beside shared ones."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp, mixture, shared_experts
from paramcount.parts.latent import latent_attention
from paramcount.sizes import Flag, Natural, Positive, Sizes, hf


class DeepseekV2(Sizes):
    """Source: arXiv:2405.04434, section 2. `d_q_lora` is null where queries have no latent (V2-Lite)."""

    reference: ClassVar[str] = "DeepseekV2ForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=102400)
    d_model: Positive = hf("hidden_size", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", absent=32)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    d_q_lora: Positive | None = hf("q_lora_rank", absent=1536)
    d_kv_lora: Positive = hf("kv_lora_rank", absent=512)
    d_nope: Positive = hf("qk_nope_head_dim", absent=128)
    d_rope: Positive = hf("qk_rope_head_dim", absent=64)
    d_v: Positive = hf("v_head_dim", absent=128)
    d_ff: Positive = hf("intermediate_size", absent=11008)
    n_dense_layers: Natural = hf("first_k_dense_replace", absent=0)
    d_expert: Positive = hf("moe_intermediate_size", absent=1407)
    n_routed_experts: Positive = hf("n_routed_experts", absent=64)
    n_active_experts: Positive = hf("num_experts_per_tok")
    n_shared_experts: Natural = hf("n_shared_experts", absent=2)
    attention_bias: Flag = hf("attention_bias", absent=False)
    mlp_bias: Flag = hf("mlp_bias", absent=False)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [("dense", c.n_dense_layers), ("moe", c.n_layers - c.n_dense_layers)])



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: latent_attention(c, h, "self_attn.", bias=c.attention_bias),
        lambda h: moe(c, h) if kind == "moe" else gated_mlp(h, "mlp.", "mlp", c.d_ff, bias=c.mlp_bias),
    )


def moe(c: Any, x: Data) -> Data:
    return mixture(c, x, "mlp.") + shared_experts(c, x, "mlp.", bias=c.mlp_bias)
