"""Aquila and Aquila2: Llama's layers."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class Aquila(AttentionDecoder):
    """Source: modeling_aquila.py of BAAI/Aquila2-7B."""

    reference = "AquilaForCausalLM of BAAI/Aquila2-7B"
    rotated = "d_head"
    defaults = {"d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=11008)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    check = check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
