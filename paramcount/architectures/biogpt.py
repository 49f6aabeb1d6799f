"""BioGPT: learned positions with two rows more, norms first, biases everywhere, tied head."""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data, layers, lookup, norm
from paramcount.parts.decoders import head
from paramcount.parts.fairseq import POSITION_OFFSET, fairseq_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class BioGPT(Sizes):
    """Source: arXiv:2210.10341."""

    reference: ClassVar[str] = "BioGptForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=42384)
    n_positions: Positive = hf("max_position_embeddings", absent=1024)
    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=4096)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        x = lookup(tokens, "biogpt.embed_tokens.weight", "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, "biogpt.embed_positions.weight", "position", c.n_positions + POSITION_OFFSET, c.d_model)
        x = layers(x, "biogpt.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: fairseq_layer(c, x))
        return head(c, norm(x, "biogpt.layer_norm", bias=True), "biogpt.embed_tokens.weight", "output_projection")

    def check(c) -> None:
        check_heads_fill(c)
