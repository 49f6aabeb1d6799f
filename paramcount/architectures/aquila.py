"""Aquila and Aquila2: Llama's layers."""

from paramcount.declare import Data, parts, sizes


class Aquila(parts.AttentionDecoder):
    """Source: modeling_aquila.py of BAAI/Aquila2-7B."""

    reference = "AquilaForCausalLM of BAAI/Aquila2-7B"
    rotated = "d_head"
    defaults = {"d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf(absent=11008)
    attention_bias: sizes.Flag = sizes.hf(absent=False)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False)

    check = sizes.check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
