"""DeepSeek-MoE: Llama layers whose feed-forward, after the first, is fine-grained experts beside shared ones."""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import dense_first
from paramcount.parts.feed_forward import shared_mixture
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, derived, equal_to, hf, rotary, setting
from paramcount.sizes.rules import check_heads_fill


class DeepseekMoE(AttentionDecoder):
    """Source: arXiv:2401.06066, section 3; MoEGate and DeepseekDecoderLayer, modeling_deepseek.py of
    deepseek-ai/deepseek-moe-16b-base.
    """

    reference = "DeepseekForCausalLM of deepseek-ai/deepseek-moe-16b-base"
    gguf = "deepseek"
    rotated = "d_head"
    defaults = {"vocab_size": 102400, "d_model": 4096, "n_layers": 30, "n_heads": 32}

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=11008)
    n_dense_layers: Natural = hf(absent=0)
    d_expert: Natural = hf(absent=1407)
    n_routed_experts: Positive = hf()
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    rope = rotary(positions=2048)
    norm_topk_prob = setting("norm_topk_prob", default=False)
    kinds = dense_first
    check = check_heads_fill

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob, least_sum=1e-20)
