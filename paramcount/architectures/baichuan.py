"""Baichuan 1 and 2: Llama's layers with q, k and v in one matrix.

The 13B models have ALiBi in place of rotary positions.
"""

from paramcount.declare import Data, ops, parts, sizes


class Baichuan(parts.Decoder):
    """Source: arXiv:2309.10305, section 2; modeling_baichuan.py of baichuan-inc/Baichuan-7B, Baichuan2-7B-Base and
    Baichuan2-13B-Chat. Each repository has code and defaults of its own, so sizes have to be given. Baichuan 2
    normalizes the rows of its head, which adds nothing to it and no config states: this head is Baichuan 1's.
    """

    reference = "BaichuanForCausalLM of baichuan-inc/Baichuan2-13B-Chat"
    gguf = "baichuan"
    equivalent_classes = ("BaiChuanForCausalLM",)

    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    rotary: sizes.Flag = sizes.derived(
        lambda js, c: "max_position_embeddings" in js
    )  # the 13B models have model_max_length alone

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attn.")
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def attention(c, x: Data, prefix: str) -> Data:
        q, k, v = parts.fused_qkv(c, x, prefix + "W_pack", bias=False)  # [n, n_heads, d_head]
        a = (
            ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)
            if c.rotary
            else ops.attend_causally(q, k, v, ops.alibi(q, c.n_heads))
        )
        return ops.linear(a, prefix + "o_proj", "output_projection", c.d_model)

    def legacy_buffers(c) -> sizes.Buffers:
        return (
            (("model.layers.{layer}.self_attn.rotary_emb.inv_freq", (c.d_head // 2,), c.n_layers),) if c.rotary else ()
        )

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.rotary:
            sizes.check_even(c, "d_head")
