"""XVERSE: the layers of the first Llama, without grouped queries and without any bias."""

from paramcount.declare import Data, parts, sizes


class Xverse(parts.EqualHeads, parts.Decoder):
    """Source: modeling_xverse.py of xverse/XVERSE-13B."""

    reference = "XverseForCausalLM of xverse/XVERSE-13B"
    gguf = "xverse"
    rotated = "d_head"
    conditions = (sizes.without_experts,)
    defaults = {"vocab_size": 100278, "d_model": 5120, "n_layers": 40}

    n_heads: sizes.Positive = sizes.hf(absent=40)
    d_ff: sizes.Natural = sizes.hf(absent=13824)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
