"""Llama 1 to 3 and what shares their layout: RMS norms, rotary positions, a gated MLP."""

from typing import ClassVar

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import ABSENT, Buffers, Condition, Flag, Natural, Positive, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides


class Llama(AttentionDecoder):
    """Source: arXiv:2302.13971, section 2.2; grouped-query attention arXiv:2307.09288, section 2.2."""

    reference = "LlamaForCausalLM"
    gguf = "llama"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")  # also where d_head is given: the reference asks it

    def legacy_buffers(c) -> Buffers:
        return (("model.layers.{layer}.self_attn.rotary_emb.inv_freq", (c.d_head // 2,), c.n_layers),)
