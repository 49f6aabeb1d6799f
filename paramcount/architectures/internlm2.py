"""InternLM2 and 2.5: grouped-query attention with q, k and v fused group by group.

Tensor names follow the first Llama.
"""

from paramcount.flow import Data, attend, fused, linear, rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import head
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class InternLM2(AttentionDecoder):
    """Source: arXiv:2403.17297, section 2.2; modeling_internlm2.py of internlm/internlm2-7b."""

    reference = "InternLM2ForCausalLM of internlm/internlm2-7b"
    gguf = "internlm2"
    names = ("tok_embeddings", "layers", "norm")
    rotated = "d_head"
    defaults = {"vocab_size": 103168, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=11008)
    attention_bias: Flag = hf("bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    check = check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "attention_norm"))
        h, names = c.norm(x, "ffn_norm"), ("w1", "w3", "w2")
        return x + c.gated_mlp(h, "feed_forward.", names=names)

    def attend(c, x: Data) -> Data:
        few = (c.n_kv_heads, c.d_head)
        parts = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}
        q, k, v = fused(x, "attention.wqkv", parts, bias=c.attention_bias, groups=c.n_kv_heads)
        a = attend(rope(q, c.rope), rope(k, c.rope), v)
        return linear(a, "attention.wo", "output_projection", c.d_model, bias=c.attention_bias)

    def head(c, x: Data) -> Data:
        return head(c, x, "model.tok_embeddings.weight", "output")
