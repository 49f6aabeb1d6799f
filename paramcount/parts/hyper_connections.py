"""Hyper-connections: several residual streams that every block reads from and writes to.

Source: arXiv:2409.19606; manifold-constrained as in arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.flow import (
    ConnectionWeights,
    Data,
    ReadAndWriteWeights,
    ReadWeights,
    Size,
    Weight,
    collapse,
    mix_streams,
    split,
    stream_weights,
    to_streams,
)

Names = tuple[str, str, str]  # of the matrix, its bias and the scales
Block = Callable[[Data], Data]


def weigh_streams(x: Data, names: Names, n_weights: Size, n_scales: Size, operation: ReadWeights) -> Data:
    """The weights by which all streams of a token are mixed."""
    shapes = ((n_weights, operation.n_streams * x.shape[-1]), (n_weights,), (n_scales,))
    matrix, bias, scales = (Weight(name, "other", shape) for name, shape in zip(names, shapes))
    return stream_weights(x, (matrix, bias, scales), operation)


def connect_all(c: Any, x: Data, names: Names, block: Block) -> Data:
    """A block between streams: it reads their sum; what it returns is added to each beside a mixture of all."""
    n = c.n_streams
    operation = ConnectionWeights(n, c.norm_eps, c.streams_eps, c.sinkhorn_iterations)
    read, written, across = split(weigh_streams(x, names, n * n + 2 * n, 3, operation), n, n, n * n)
    return to_streams(block(collapse(x, read)), written) + mix_streams(x, across)


def connect_apart(c: Any, x: Data, names: Names, block: Block) -> Data:
    """The same, but every stream keeps to itself apart from what the block returns."""
    n = c.n_streams
    operation = ReadAndWriteWeights(n, c.norm_eps, c.streams_eps, c.streams_magnitude, c.streams_eps)
    read, written = split(weigh_streams(x, names, 2 * n, 2, operation), n, n)
    return x + to_streams(block(collapse(x, read)), written)


def collapse_streams(c: Any, x: Data, names: Names) -> Data:
    """The streams' weighted sum behind the last layer."""
    return collapse(x, weigh_streams(x, names, c.n_streams, 1, ReadWeights(c.n_streams, c.norm_eps, c.streams_eps)))
