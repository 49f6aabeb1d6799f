"""InternLM2 and 2.5: grouped-query attention with q, k and v fused group by group.

Tensor names follow the first Llama.
"""

from paramcount.declare import Data, ops, parts, sizes


class InternLM2(parts.EqualHeads, parts.AttentionDecoder):
    """Source: arXiv:2403.17297, section 2.2; modeling_internlm2.py of internlm/internlm2-7b."""

    reference = "InternLM2ForCausalLM of internlm/internlm2-7b"
    gguf = "internlm2"
    published_heads = "INTERNLM2"
    names = ("tok_embeddings", "layers", "norm")
    defaults = {"vocab_size": 103168, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    d_ff: sizes.Natural = sizes.hf(absent=11008)
    attention_bias: sizes.Flag = sizes.hf("bias", absent=True)

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "attention_norm"))
        h, names = c.norm(x, "ffn_norm"), ("w1", "w3", "w2")
        return x + c.gated_mlp(h, "feed_forward.", names=names)

    def attend(c, x: Data) -> Data:
        few = (c.n_kv_heads, c.d_head)
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}
        q, k, v = ops.fused(x, "attention.wqkv", shares, bias=c.attention_bias, groups=c.n_kv_heads)
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.wo", "output_projection", c.d_model, bias=c.attention_bias)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.tok_embeddings.weight", "output")
