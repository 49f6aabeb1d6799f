"""XLM-RoBERTa XL and XXL: norms before attention and MLP and behind the last layer, none behind the tables."""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.roberta import Roberta
from paramcount.flow import Data
from paramcount.parts.encoders import ROBERTA_HEAD, embeddings, masked_lm


class XLMRobertaXL(Roberta):
    """Source: arXiv:2105.00572, section 2."""

    reference: ClassVar[str] = "XLMRobertaXLForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("XLMRobertaXLForCausalLM",)
    defaults: ClassVar = {
        "vocab_size": 250880,
        "d_model": 2560,
        "n_layers": 36,
        "n_heads": 32,
        "d_ff": 10240,
        "n_positions": 514,
        "n_token_types": 1,
    }

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return masked_lm(
            c,
            tokens,
            head,
            "roberta.",
            ROBERTA_HEAD,
            embed=lambda tokens, segments: embeddings(c, tokens, segments, "roberta.", c.d_model, normed=False),
            norms=("self_attn_layer_norm", "LayerNorm"),
            before=True,
            last_norm="encoder.LayerNorm",
        )
