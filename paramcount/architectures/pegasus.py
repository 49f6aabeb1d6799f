"""Pegasus: a pre-norm encoder-decoder with fixed sinusoidal positions, stored as a frozen table."""

from paramcount.declare import parts, sizes


class PegasusStacks(parts.Stacks):
    layer = parts.seq2seq.pre_norm_layer
    last_norm = "layer_norm"


class Pegasus(PegasusStacks, parts.Seq2Seq):
    """Source: arXiv:1912.08777; modeling_pegasus.py of the reference."""

    reference = "PegasusForConditionalGeneration"
    not_saved = ("embed_positions.weight",)  # its keys_to_never_save in transformers 3.5
    conditions = (sizes.padding_inside(0),)


class PegasusDecoder(PegasusStacks, parts.TiedDecoder):
    """Source: arXiv:1912.08777; modeling_pegasus.py of the reference."""

    reference = "PegasusForCausalLM"
    model_types = ("pegasus.PegasusForCausalLM",)
    conditions = (sizes.padding_inside(0),)
