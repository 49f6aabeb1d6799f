"""Llama 1 to 3 and what shares their layout: RMS norms, rotary positions, a gated MLP."""

from typing import ClassVar

from paramcount.declare import Data, parts, sizes


class Llama(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2302.13971, section 2.2; grouped-query attention arXiv:2307.09288, section 2.2."""

    reference = "LlamaForCausalLM"
    gguf = "llama"
    gguf_rope_factors = "llama3"
    task_heads = "GENERIC_MOVED"
    published_heads = "LLAMA"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(None),)

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    mlp_bias: sizes.Flag = sizes.hf()

    check = sizes.check_heads_divide

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def legacy_buffers(c) -> sizes.Buffers:
        return (("model.layers.{layer}.self_attn.rotary_emb.inv_freq", (c.d_head // 2,), c.n_layers),)
