"""XVERSE: the layers of the first Llama, without grouped queries and without any bias."""

from paramcount.flow import Data
from paramcount.parts.decoder import Decoder
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, hf
from paramcount.sizes.conditions import without_experts
from paramcount.sizes.rules import check_heads_fill


class Xverse(Decoder):
    """Source: modeling_xverse.py of xverse/XVERSE-13B."""

    reference = "XverseForCausalLM of xverse/XVERSE-13B"
    gguf = "xverse"
    rotated = "d_head"
    conditions = (without_experts,)
    defaults = {"vocab_size": 100278, "d_model": 5120, "n_layers": 40}

    n_heads: Positive = hf(absent=40)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=13824)
    tie_word_embeddings: Flag = hf(absent=False)

    check = check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
