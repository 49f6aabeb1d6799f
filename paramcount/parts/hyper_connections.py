"""Hyper-connections: several residual streams that every block reads from and writes to.

Source: arXiv:2409.19606; manifold-constrained as in arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.flow import (
    Data,
    Size,
    StreamWeights,
    Weight,
    collapse,
    mix_streams,
    split,
    stream_weights,
    to_streams,
)

Names = tuple[str, str, str]  # of the matrix, its bias and the scales
Block = Callable[[Data], Data]


def weigh_streams(c: Any, x: Data, names: Names, n_weights: Size, n_scales: Size, **rules: Any) -> Data:
    """The weights by which all streams of a token are mixed. Reads n_streams, norm_eps and streams_eps of c."""
    matrix, bias, scales = names
    weights = (
        Weight(matrix, "other", (n_weights, c.n_streams * x.shape[-1])),
        Weight(bias, "other", (n_weights,)),
        Weight(scales, "other", (n_scales,)),
    )
    return stream_weights(x, weights, StreamWeights(c.n_streams, c.norm_eps, c.streams_eps, **rules))


def connect_all(c: Any, x: Data, names: Names, block: Block) -> Data:
    """A block between streams: it reads their sum; what it returns is added to each beside a mixture of all."""
    n = c.n_streams
    weights = weigh_streams(c, x, names, n * n + 2 * n, 3, iterations=c.sinkhorn_iterations)
    read, returned, across = split(weights, n, n, n * n)
    return to_streams(block(collapse(x, read)), returned) + mix_streams(x, across)


def connect_apart(c: Any, x: Data, names: Names, block: Block) -> Data:
    """The same, but every stream keeps to itself apart from what the block returns."""
    rules = {"magnitude": c.streams_magnitude, "output_eps": c.streams_eps}
    read, returned = split(weigh_streams(c, x, names, 2 * c.n_streams, 2, **rules), c.n_streams, c.n_streams)
    return x + to_streams(block(collapse(x, read)), returned)


def collapse_streams(c: Any, x: Data, names: Names) -> Data:
    """The streams' weighted sum behind the last layer."""
    return collapse(x, weigh_streams(c, x, names, c.n_streams, 1))
