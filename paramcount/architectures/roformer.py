"""RoFormer: BERT with rotary positions instead of learned ones.

Their sines are a frozen table that all layers read.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.bert import Encoder
from paramcount.flow import Data, Unreachable, layers, linear, lookup
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import bert_layer, embeddings, masked_head, whole
from paramcount.sizes import Flag, Positive, derived, equal_to, hf
from paramcount.sizes.rules import check_projection, check_rotated_in_pairs


class RoFormer(Encoder):
    """Source: arXiv:2104.09864, section 3."""

    reference: ClassVar[str] = "RoFormerForMaskedLM"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("RoFormerForCausalLM",)
    rotated: ClassVar[str | None] = "d_head"
    defaults: ClassVar = {"vocab_size": 50000, "n_positions": 1536}

    d_embedding: Positive = hf(absent=equal_to("d_model"), null=equal_to("d_model"))
    embeddings_projected: Flag = derived(lambda js, c: c["d_embedding"] != c["d_model"])
    n_token_types: Positive = hf(absent=2)
    values_rotated: Flag = hf("rotary_value", absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, segments: Data, *memory: Data) -> Data:
            x = embeddings(c, tokens, segments, "roformer.", c.d_embedding, placed=False)
            if c.embeddings_projected:
                x = linear(x, "roformer.embeddings_project", "other", c.d_model, bias=True)
            angles = lookup(tokens, "roformer.encoder.embed_positions.weight", "position", c.n_positions, c.d_head)
            kinds, reads = [("layer", c.n_layers)], (angles, *memory)
            x = layers(
                x, "roformer.encoder.layer.{layer}.", kinds, lambda kind, *inputs: layer(c, *inputs), reads=reads
            )
            return masked_head(c, x, "roformer.embeddings.word_embeddings", width=c.d_embedding) if head else x

        return whole(c, tokens, build)

    def check(c) -> None:
        super().check()
        check_rotated_in_pairs(c, "d_head")
        check_projection(c)


def layer(c: Any, x: Data, angles: Data, *memory: Data) -> Data:
    def turned(y: Data) -> Data:
        return Data("rope", (y, angles), y.shape)

    return bert_layer(c, x, *memory, turn=lambda q, k, v: (turned(q), turned(k), turned(v) if c.values_rotated else v))
