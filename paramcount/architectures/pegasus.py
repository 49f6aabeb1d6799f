"""Pegasus: a pre-norm encoder-decoder with fixed sinusoidal positions, stored as a frozen table."""

from paramcount.parts.seq2seq import Seq2Seq, Stacks, TiedDecoder, pre_norm_layer
from paramcount.sizes.conditions import padding_inside


class PegasusStacks(Stacks):
    layer = pre_norm_layer
    last_norm = "layer_norm"


class Pegasus(PegasusStacks, Seq2Seq):
    """Source: arXiv:1912.08777; modeling_pegasus.py of the reference."""

    reference = "PegasusForConditionalGeneration"
    not_saved = ("embed_positions.weight",)  # its keys_to_never_save in transformers 3.5
    conditions = (padding_inside(0),)


class PegasusDecoder(PegasusStacks, TiedDecoder):
    """Source: arXiv:1912.08777; modeling_pegasus.py of the reference."""

    reference = "PegasusForCausalLM"
    model_types = ("pegasus.PegasusForCausalLM",)
    conditions = (padding_inside(0),)
