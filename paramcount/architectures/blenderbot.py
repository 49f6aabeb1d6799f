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


class BlenderbotDecoder(BlenderbotStacks, TiedDecoder):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotModel."""

    reference = "BlenderbotForCausalLM"
    model_types = ("blenderbot.BlenderbotForCausalLM",)
    conditions = (padding_inside(0),)
