"""Blenderbot: a short encoder and a long decoder with learned places, norms before what they belong to."""

from paramcount.parts.seq2seq import Seq2Seq, Stacks, TiedDecoder, pre_norm_layer
from paramcount.sizes.conditions import padding_inside


class BlenderbotStacks(Stacks):
    layer = pre_norm_layer
    last_norm = "layer_norm"


class Blenderbot(BlenderbotStacks, Seq2Seq):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotModel."""

    reference = "BlenderbotForConditionalGeneration"
    conditions = (padding_inside(0),)
    defaults = {
        "vocab_size": 8008,
        "d_model": 2560,
        "n_encoder_layers": 2,
        "n_decoder_layers": 24,
        "n_encoder_heads": 32,
        "n_decoder_heads": 32,
        "d_encoder_ff": 10240,
        "d_decoder_ff": 10240,
        "n_positions": 128,
    }


class BlenderbotDecoder(BlenderbotStacks, TiedDecoder):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotModel."""

    reference = "BlenderbotForCausalLM"
    model_types = ("blenderbot.BlenderbotForCausalLM",)
    conditions = (padding_inside(0),)
    defaults = {"vocab_size": 8008, "d_model": 2560, "n_layers": 24, "n_heads": 32, "d_ff": 10240, "n_positions": 128}
