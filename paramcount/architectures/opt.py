"""OPT: learned positions with two additional rows, pre-norm or post-norm.

In OPT-350m the token embedding is narrower than the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, activate, layers, linear, lookup, norm
from paramcount.parts.decoders import head
from paramcount.parts.fairseq import NORMS, POSITION_OFFSET, feed_forward, self_attention
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, flag, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


def narrow_table(js: Mapping[str, Any], c: Mapping[str, Any]) -> int | None:
    """The width of a token, None where it is the model's."""
    width: int | None = js.get("word_embed_proj_dim")
    return None if width == c["d_model"] and type(width) is int else width


class OPT(Sizes):
    """Source: arXiv:2205.01068, section 2.1."""

    reference: ClassVar[str] = "OPTForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=50272)
    n_positions: Positive = hf("max_position_embeddings", absent=2048)
    d_model: Positive = hf(absent=768)
    d_token: Positive | None = derived(narrow_table)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("ffn_dim", absent=3072)
    norm_first: Flag = hf("do_layer_norm_before", absent=True)
    last_norm: Flag = derived(lambda js, c: c["norm_first"] and not flag(js, "_remove_final_layer_norm", False))
    norm_weights: Flag = hf("layer_norm_elementwise_affine", absent=True)
    bias: Flag = hf("enable_bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        prefix = "model.decoder."
        x = lookup(
            tokens,
            prefix + "embed_tokens.weight",
            "embedding",
            c.vocab_size,
            c.d_model if c.d_token is None else c.d_token,
        )
        if c.d_token is not None:
            x = linear(x, prefix + "project_in", "other", c.d_model)
        x = x + lookup(
            tokens, prefix + "embed_positions.weight", "position", c.n_positions + POSITION_OFFSET, c.d_model
        )
        x = layers(x, prefix + "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))
        if c.last_norm:
            x = normed(c, x, prefix + "final_layer_norm")
        if c.d_token is not None:
            x = linear(x, prefix + "project_out", "other", c.d_token)
        return head(c, x, prefix + "embed_tokens.weight")

    def check(c) -> None:
        check_heads_fill(c)


def normed(c: Any, x: Data, name: str) -> Data:
    return norm(x, name, bias=True) if c.norm_weights else activate(x, "norm")


def layer(c: Any, x: Data) -> Data:
    if c.norm_first:
        x = x + self_attention(c, normed(c, x, NORMS[0]), bias=c.bias)
        return x + feed_forward(c, normed(c, x, NORMS[1]), bias=c.bias)
    x = normed(c, x + self_attention(c, x, bias=c.bias), NORMS[0])
    return normed(c, x + feed_forward(c, x, bias=c.bias), NORMS[1])
