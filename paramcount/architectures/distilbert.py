"""DistilBERT: half of BERT's layers, without token types and pooler."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, layers
from paramcount.parts.classic import multi_head, norm_behind
from paramcount.parts.encoders import embeddings, masked_head, whole
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.rules import check_heads_fill

MATRICES = ("q_lin", "k_lin", "v_lin", "out_lin")
HEAD = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias")


class DistilBert(Sizes):
    """Source: arXiv:1910.01108, section 3."""

    reference: ClassVar[str] = "DistilBertForMaskedLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_inside(0),)

    vocab_size: Positive = hf(absent=30522)
    d_model: Positive = hf("hidden_size", "dim", absent=768)
    n_layers: Positive = hf("num_hidden_layers", "n_layers", absent=6)
    n_heads: Positive = hf("num_attention_heads", "n_heads", absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("hidden_dim", absent=3072)
    n_positions: Positive = hf("max_position_embeddings", absent=512)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data) -> Data:
            x = embeddings(c, tokens, None, "distilbert.", c.d_model)
            x = layers(x, "distilbert.transformer.layer.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))
            return masked_head(c, x, "distilbert.embeddings.word_embeddings", HEAD) if head else x

        return whole(c, tokens, build, inputs=())

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, x: Data) -> Data:
    x = norm_behind(x, lambda h: multi_head(c, h, "attention.", MATRICES, cached=False), "sa_layer_norm")
    return norm_behind(
        x, lambda h: plain_mlp(h, ("ffn.lin1", "ffn.lin2"), "mlp", c.d_ff, bias=True), "output_layer_norm"
    )
