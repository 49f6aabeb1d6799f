"""Multi-token prediction: layers behind the model's own that also see the next token.

Source: DeepSeek-V3, arXiv:2412.19437, section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data


def next_token_layers(c: Any, tokens: Data, layer: Callable[[Data], Data]) -> Data:
    """The n_mtp_layers of c on the model's last hidden state. `layer`: x to x, as in the model itself."""
    x = ops.given("hidden", "tokens", c.d_model)
    kinds = [("mtp", c.n_mtp_layers)]
    return ops.layers(
        x,
        "model.layers.{layer}.",
        kinds,
        lambda kind, x, t: next_token_layer(c, x, t, layer),
        reads=(tokens,),
        first=c.n_layers,
    )


def next_token_layer(c: Any, x: Data, tokens: Data, layer: Callable[[Data], Data]) -> Data:
    """One layer on the hidden state joined with the next token's embedding; its table and head are the model's."""
    next_token = ops.lookup(
        tokens, "embed_tokens.weight", "embedding", c.vocab_size, c.d_model, tied_to="model.embed_tokens.weight"
    )
    both = ops.join(parts.normalise(c, next_token, "enorm"), parts.normalise(c, x, "hnorm"))
    x = layer(ops.linear(both, "eh_proj", "other", c.d_model))
    h = parts.normalise(c, x, "shared_head.norm")
    return ops.bundle(x, ops.linear(h, "shared_head.head", "lm_head", c.vocab_size, tied_to="lm_head.weight"))
