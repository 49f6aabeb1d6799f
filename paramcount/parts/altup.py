"""AltUp: several streams of hidden states. A layer computes one of them, after a prediction and before a correction of
all.

Source: arXiv:2301.13310; Gemma3nTextAltUp of the reference.
"""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount.flow import Data

LEAST = 1e-5  # mean square


def make_streams(c: Any, x: Data, prefix: str) -> Data:
    """The token embedding [n, d] and, in further streams of the same root mean square, projections of it."""
    return ops.norm_to_first(
        ops.for_each_stream(ops.to_every_stream(x, c.n_streams), prefix + "{stream}", project), LEAST
    )


def merge_streams(x: Data, prefix: str) -> Data:
    """The mean of the first stream and of projections of the others with the same root mean square."""
    return ops.mean_of_streams(ops.norm_to_first(ops.for_each_stream(x, prefix + "{stream}", project), LEAST))


def project(x: Data) -> Data:
    return ops.linear(x, "", "other", x.shape[-1])


def predict(c: Any, x: Data) -> Data:
    """Every stream plus a mixture of all, by weights that depend on the active stream."""
    weights = ops.block(ops.select_part(x, c.active_stream), "altup.", lambda x: route_streams(c, x))
    coefficients = ops.linear(weights, "altup.prediction_coefs", "other", (c.n_streams, c.n_streams))
    return x + ops.predict_streams(x, coefficients)


def correct(c: Any, predicted: Data, y: Data) -> Data:
    """To every predicted stream its share of the difference between y and the prediction of the active stream."""
    weights = ops.tie_weights(ops.block(y, "altup.", lambda x: route_streams(c, x)), c.prefix + "layers.{layer}.altup.")
    coefficients = ops.scale_by(
        ops.linear(weights, "altup.correction_coefs", "other", c.n_streams), 1.0, "add 1", shift=1.0
    )
    difference = y + ops.scale_by(ops.select_part(predicted, c.active_stream), -1.0, "negate")
    return predicted + ops.to_streams(difference, coefficients)


def route_streams(c: Any, x: Data) -> Data:
    d_model = x.shape[-1]
    h = ops.scale_by_root(c.norm(x, "router_norm"), d_model * d_model, "times 1/d_model", inverse=True)
    return ops.activate(ops.linear(h, "modality_router", "other", c.n_streams), "tanh")
