"""Aquila and Aquila2: Llama's layers."""

from paramcount.declare import Data, parts, sizes


class Aquila(parts.EqualHeads, parts.AttentionDecoder):
    """Source: modeling_aquila.py of BAAI/Aquila2-7B."""

    reference = "AquilaForCausalLM of BAAI/Aquila2-7B"
    defaults = {"d_model": 4096, "n_layers": 32, "n_heads": 32}

    d_ff: sizes.Natural = sizes.hf(absent=11008)
    attention_bias: sizes.Flag = sizes.hf(absent=False)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
