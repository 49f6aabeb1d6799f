"""Yi as first released: Llama's layers with its own names for the norms."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class Yi(AttentionDecoder):
    """Source: arXiv:2403.04652; configuration_yi.py and modeling_yi.py of 01-ai/Yi-34B."""

    reference = "YiForCausalLM of 01-ai/Yi-34B"
    model_types = ("Yi",)
    rotated = "d_head"
    conditions = (padding_in_table(0),)
    defaults = {"vocab_size": 64000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: Positive = hf(absent=4, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=11008)
    tie_word_embeddings: Flag = hf(absent=False)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(5_000_000, positions=4096)
    check = check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "ln1"))
        return x + c.gated_mlp(c.norm(x, "ln2"))
