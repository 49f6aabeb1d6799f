"""Jais 2: the layout of AFM with LayerNorms and biases."""

from paramcount.architectures.arcee import Arcee
from paramcount.parts.decoders import use_layer_norm
from paramcount.sizes import rotary, setting


class Jais2(Arcee):
    """Source: modeling_jais2.py of the reference."""

    reference = "Jais2ForCausalLM"
    defaults = {
        "vocab_size": 150272,
        "d_model": 3328,
        "n_heads": 26,
        "d_ff": 26624,
        "attention_bias": True,
        "mlp_bias": True,
    }

    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = rotary(positions=8192)
    norm = use_layer_norm
