"""ELECTRA: BERT with embeddings that may be narrower than its layers.

Counted with the generator's head; the discriminator has none.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount.architectures.bert import Encoder
from paramcount.flow import Data, linear
from paramcount.parts.encoders import embeddings, masked_lm
from paramcount.sizes import Flag, Positive, derived, hf
from paramcount.sizes.rules import check_projection

HEAD = ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", "generator_lm_head.bias")


class Electra(Encoder):
    """Source: arXiv:2003.10555, section 2."""

    reference: ClassVar[str] = "ElectraForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("ElectraForCausalLM",)
    defaults: ClassVar = {"d_model": 256, "n_heads": 4, "d_ff": 1024}

    d_embedding: Positive = hf(absent=128)
    embeddings_projected: Flag = derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: Positive = hf(absent=2)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def embed(tokens: Data, segments: Data) -> Data:
            x = embeddings(c, tokens, segments, "electra.", c.d_embedding)
            return (
                linear(x, "electra.embeddings_project", "other", c.d_model, bias=True) if c.embeddings_projected else x
            )

        return masked_lm(c, tokens, head, "electra.", HEAD, embed=embed, width=c.d_embedding)

    def check(c) -> None:
        super().check()
        check_projection(c)
