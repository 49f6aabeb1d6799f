"""M2M-100 and NLLB-200: pre-norm, one token embedding for a hundred languages, sinusoidal positions."""

from paramcount.parts.seq2seq import SinusoidalSeq2Seq, pre_norm_layer


class M2M100(SinusoidalSeq2Seq):
    """Source: arXiv:2010.11125, section 4; modeling_m2m_100.py of the reference."""

    reference = "M2M100ForConditionalGeneration"

    layer = pre_norm_layer
