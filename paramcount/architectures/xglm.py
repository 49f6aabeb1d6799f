"""XGLM: sinusoidal positions, norms first, and if wanted a look at an encoder's output in every layer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, activate, layers, lookup, norm
from paramcount.parts.classic import source_states
from paramcount.parts.decoders import head
from paramcount.parts.fairseq import fairseq_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class XGLM(Sizes):
    """Source: arXiv:2112.10668."""

    reference: ClassVar[str] = "XGLMForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=256008)
    d_model: Positive = hf("hidden_size", "d_model", absent=1024)
    n_layers: Positive = hf("num_hidden_layers", "num_layers", absent=24)
    n_heads: Positive = hf("num_attention_heads", "attention_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("ffn_dim", absent=4096)
    cross_attention: Flag = hf("add_cross_attention", absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        x = activate(lookup(tokens, "model.embed_tokens.weight", "embedding", c.vocab_size, c.d_model), "add positions")
        memory = (source_states(c.d_model),) if c.cross_attention else ()
        x = layers(
            x,
            "model.layers.{layer}.",
            [("layer", c.n_layers)],
            lambda kind, *inputs: fairseq_layer(c, *inputs),
            reads=memory,
        )
        return head(c, norm(x, "model.layer_norm", bias=True), "model.embed_tokens.weight")

    def check(c) -> None:
        check_heads_fill(c)
        if c.d_model < 4:
            raise ParamcountError(f"= {c.d_model} has no sinusoidal positions", where="d_model", expected="at least 4")
