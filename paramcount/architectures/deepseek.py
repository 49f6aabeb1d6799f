"""DeepSeek-MoE: Llama layers whose feed-forward, after the first, is fine-grained experts beside shared ones."""

from paramcount.declare import Data, ops, parts, sizes


class DeepseekMoE(parts.EqualHeads, parts.AttentionDecoder):
    """Source: arXiv:2401.06066, section 3; MoEGate and DeepseekDecoderLayer, modeling_deepseek.py of
    deepseek-ai/deepseek-moe-16b-base.
    """

    reference = "DeepseekForCausalLM of deepseek-ai/deepseek-moe-16b-base"
    gguf = "deepseek"
    defaults = {"vocab_size": 102400, "d_model": 4096, "n_layers": 30, "n_heads": 32}

    d_ff: sizes.Natural = sizes.hf(absent=11008)
    n_dense_layers: sizes.Natural = sizes.hf(absent=0)
    d_expert: sizes.Natural = sizes.hf(absent=1407)
    n_routed_experts: sizes.Positive = sizes.hf()
    n_active_experts: sizes.Natural = sizes.hf()
    n_shared_experts: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf(absent=False)

    norm_topk_prob = sizes.setting("norm_topk_prob", default=False)
    kinds = parts.dense_first

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob, least_sum=1e-20)
