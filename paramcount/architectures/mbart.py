"""mBART and mBART-50: BART with its norms before what they belong to, and one more behind the last layer."""

from paramcount.parts.seq2seq import Seq2Seq, Stacks, TiedDecoder, pre_norm_layer


class MBartStacks(Stacks):
    layer = pre_norm_layer
    position_offset = 2
    norms_embedding = True
    last_norm = "layer_norm"


class MBart(MBartStacks, Seq2Seq):
    """Source: arXiv:2001.08210, section 2.2; order of operations: MBartModel."""

    reference = "MBartForConditionalGeneration"
    task_heads = "BART"


class MBartDecoder(MBartStacks, TiedDecoder):
    """Source: arXiv:2001.08210, section 2.2; order of operations: MBartModel."""

    reference = "MBartForCausalLM"
    model_types = ("mbart.MBartForCausalLM",)
