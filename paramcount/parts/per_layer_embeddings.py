"""Per-layer embeddings: a small vector of each token for each layer, besides the token embedding.

Source: Gemma3nTextModel.project_per_layer_inputs of the reference.
"""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount.flow import Data


def embed_per_layer(
    c: Any,
    tokens: Data,
    x: Data,
    prefix: str,
    *,
    unknown_id: int | ops.Unknown | None = None,
    placeholders: tuple[int | ops.Unknown, ...] = (),
) -> Data:
    """Token ids and token embeddings [n, d_model] to [n, n_layers, d_per_layer]. `unknown_id`: what stands for ids
    beyond the table, and for placeholders."""
    shape = (c.n_layers, c.d_per_layer)
    own = ops.lookup_known(
        tokens,
        prefix + "embed_tokens_per_layer.weight",
        "other_embedding",
        c.n_per_layer_rows,
        c.n_layers * c.d_per_layer,
        unknown_id=unknown_id,
        placeholders=placeholders,
    )
    own = ops.reshape(ops.scale_by_root(own, c.d_per_layer, "times √d_per_layer"), *shape)
    projected = ops.linear(x, prefix + "per_layer_model_projection", "other", shape)
    projected = ops.scale_by_root(projected, c.d_model, "times 1/√d_model", inverse=True)
    projected = c.norm(projected, prefix + "per_layer_projection_norm")
    return ops.scale_by_root(projected + own, 2, "times 1/√2", inverse=True)


def read_own_embedding(c: Any, x: Data, own: Data) -> Data:
    """What the layer's own vector of each token adds, gated by the hidden state."""
    gate = ops.activate(ops.linear(x, "per_layer_input_gate", "other", c.d_per_layer), c.activation)
    h = ops.linear(gate * ops.select_part(own, "layer"), "per_layer_projection", "other", c.d_model)
    vectors: Data = c.norm(h, "post_per_layer_input_norm")
    return vectors
