"""M2M-100 and NLLB-200: pre-norm, one token embedding for a hundred languages, sinusoidal positions."""

from paramcount.declare import parts


class M2M100(parts.SinusoidalSeq2Seq):
    """Source: arXiv:2010.11125, section 4; modeling_m2m_100.py of the reference."""

    reference = "M2M100ForConditionalGeneration"

    layer = parts.seq2seq.pre_norm_layer
