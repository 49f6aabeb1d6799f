"""Orion-14B: Llama's layers with LayerNorms that have a bias."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import without_experts
from paramcount.sizes.rules import check_heads_fill


class Orion(AttentionDecoder):
    """Source: modeling_orion.py of OrionStarAI/Orion-14B-Base."""

    reference = "OrionForCausalLM of OrionStarAI/Orion-14B-Base"
    gguf = "orion"
    rotated = "d_head"
    conditions = (without_experts,)
    defaults = {"vocab_size": 84608, "d_model": 4096, "n_layers": 40, "n_heads": 40}

    n_kv_heads: Positive = hf(absent=40, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=15360)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=4096)
    norm = use_layer_norm
    check = check_heads_fill

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
