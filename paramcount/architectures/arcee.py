"""AFM: the Llama layout with an MLP that has no gate and squares its ReLU."""

from paramcount.architectures.llama import Llama
from paramcount.declare import Data, parts, sizes


class Arcee(Llama):
    """Source: modeling_arcee.py of the reference."""

    reference = "ArceeForCausalLM"
    gguf = "arcee"
    task_heads = "GENERIC_MOVED"
    defaults = {"d_model": 2560}

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h, names = c.norm(x, "post_attention_layernorm"), ("mlp.up_proj", "mlp.down_proj")
        return x + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)


class Jais2(Arcee):
    """Jais 2: the layout of AFM with LayerNorms and biases. Source: modeling_jais2.py of the reference."""

    reference = "Jais2ForCausalLM"
    model_types = ("jais2",)
    gguf = "jais2"
    gguf_rope_factors = sizes.constant(None)
    defaults = {"vocab_size": 150272, "d_model": 3328, "n_heads": 26}

    norm_eps = sizes.setting("layer_norm_eps")
    norm = parts.use_layer_norm
