"""Orion-14B: Llama's layers with LayerNorms that have a bias."""

from paramcount.declare import Data, parts, sizes


class Orion(parts.EqualHeads, parts.AttentionDecoder):
    """Source: modeling_orion.py of OrionStarAI/Orion-14B-Base."""

    reference = "OrionForCausalLM of OrionStarAI/Orion-14B-Base"
    gguf = "orion"
    conditions = (sizes.without_experts,)
    defaults = {"vocab_size": 84608, "d_model": 4096, "n_layers": 40, "n_heads": 40}

    n_kv_heads: sizes.Positive = sizes.hf(absent=40, null=sizes.equal_to("n_heads"))
    d_ff: sizes.Natural = sizes.hf(absent=15360)
    attention_bias: sizes.Flag = sizes.hf(absent=False)

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.rotary(positions=4096)
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
