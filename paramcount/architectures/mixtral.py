"""Mixtral: Mistral with a mixture of experts in every layer."""

from paramcount.declare import Data, parts, sizes


class Mixtral(parts.SoftmaxExperts, parts.MixtureDecoder):
    """Source: arXiv:2401.04088, section 2. In the released files w1 is the gate, w3 up and w2 down."""

    reference = "MixtralForCausalLM"
    gguf = "llama"
    gguf_rope_factors = "llama3"
    task_heads = "GENERIC_SPAN"
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    adapts_experts = True
    norm_topk_prob = True
    conditions = (sizes.padding_in_table(None), sizes.one_mask())

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts")
    window: sizes.Positive | None = sizes.hf(absent=None)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.mixture(c, h, "block_sparse_moe.", choose=c.choose, names=("w1", "w3", "w2"))
