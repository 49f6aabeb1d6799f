"""Blenderbot: a short encoder and a long decoder with learned places, norms before what they belong to."""

from paramcount.declare import parts, sizes


class BlenderbotStacks(parts.Stacks):
    layer = parts.seq2seq.pre_norm_layer
    last_norm = "layer_norm"


class Blenderbot(BlenderbotStacks, parts.Seq2Seq):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotModel."""

    reference = "BlenderbotForConditionalGeneration"
    conditions = (sizes.padding_inside(0),)


class BlenderbotDecoder(BlenderbotStacks, parts.TiedDecoder):
    """Source: arXiv:2004.13637, section 2.2; order of operations: BlenderbotModel."""

    reference = "BlenderbotForCausalLM"
    model_types = ("blenderbot.BlenderbotForCausalLM",)
    conditions = (sizes.padding_inside(0),)
