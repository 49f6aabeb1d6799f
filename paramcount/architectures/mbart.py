"""mBART and mBART-50: BART with its norms before what they belong to, and one more behind the last layer."""

from paramcount.declare import parts


class MBartStacks(parts.Stacks):
    layer = parts.seq2seq.pre_norm_layer
    position_offset = 2
    norms_embedding = True
    last_norm = "layer_norm"


class MBart(MBartStacks, parts.Seq2Seq):
    """Source: arXiv:2001.08210, section 2.2; order of operations: MBartModel."""

    reference = "MBartForConditionalGeneration"
    task_heads = "BART"


class MBartDecoder(MBartStacks, parts.TiedDecoder):
    """Source: arXiv:2001.08210, section 2.2; order of operations: MBartModel."""

    reference = "MBartForCausalLM"
    model_types = ("mbart.MBartForCausalLM",)
