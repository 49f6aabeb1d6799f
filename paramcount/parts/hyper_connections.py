"""Hyper-connections: several residual streams that every block reads from and writes to.

Source: arXiv:2409.19606; manifold-constrained as in arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount import flow as ops
from paramcount.flow import Data

Names = tuple[str, str, str]  # of the matrix, its bias and the scales
Block = Callable[[Data], Data]


def weigh_streams(x: Data, names: Names, n_weights: ops.Size, n_scales: ops.Size, operation: ops.ReadWeights) -> Data:
    """The weights by which all streams of a token are mixed."""
    shapes = ((n_weights, operation.n_streams * x.shape[-1]), (n_weights,), (n_scales,))
    matrix, bias, scales = (ops.Weight(name, "other", shape) for name, shape in zip(names, shapes))
    return ops.stream_weights(x, (matrix, bias, scales), operation)


def connect_all(c: Any, x: Data, names: Names, block: Block) -> Data:
    """A block between streams: it reads their sum; what it returns is added to each beside a mixture of all."""
    n = c.n_streams
    operation = ops.ConnectionWeights(n, c.norm_eps, c.streams_eps, c.sinkhorn_iterations)
    read, written, across = ops.split(weigh_streams(x, names, n * n + 2 * n, 3, operation), n, n, n * n)
    return ops.to_streams(block(ops.collapse(x, read)), written) + ops.mix_streams(x, across)


def connect_apart(c: Any, x: Data, names: Names, block: Block) -> Data:
    """The same, but every stream keeps to itself apart from what the block returns."""
    n = c.n_streams
    operation = ops.ReadAndWriteWeights(n, c.norm_eps, c.streams_eps, c.streams_magnitude, c.streams_eps)
    read, written = ops.split(weigh_streams(x, names, 2 * n, 2, operation), n, n)
    return x + ops.to_streams(block(ops.collapse(x, read)), written)


def collapse_streams(c: Any, x: Data, names: Names) -> Data:
    """The streams' weighted sum behind the last layer."""
    return ops.collapse(
        x, weigh_streams(x, names, c.n_streams, 1, ops.ReadWeights(c.n_streams, c.norm_eps, c.streams_eps))
    )
