"""Hyper-connections: several residual streams that every block reads from and writes to.

Source: arXiv:2409.19606; constrained as in arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Callable

from paramcount.flow import Data, Size, Weight, split


def widen(x: Data, n_streams: Size) -> Data:
    """The same in every stream."""
    return Data("to every stream", (x,), (*x.shape[:1], n_streams, *x.shape[1:]))


def mixing(x: Data, n: Size, n_numbers: Size, n_scales: Size, names: tuple[str, str, str]) -> Data:
    """All streams of a token, normalized, to the numbers by which they are mixed.

    `names`: of the matrix, its bias and the scales.
    """
    matrix, bias, scales = names
    held = (
        Weight(matrix, "other", (n_numbers, n * x.shape[-1])),
        Weight(bias, "other", (n_numbers,)),
        Weight(scales, "other", (n_scales,)),
    )
    return Data("mixing weights", (x,), (*x.shape[:1], n_numbers), held)


def collapse(x: Data, weights: Data) -> Data:
    """The streams' weighted sum."""
    return Data("collapse", (x, weights), (*x.shape[:1], *x.shape[2:]))


def through(x: Data, n_streams: Size, names: tuple[str, str, str], block: Callable[[Data], Data]) -> Data:
    """A block between streams: it reads their sum, and what it returns is added to each beside a mixture of all."""
    n = n_streams
    before, behind, across = split(mixing(x, n, n * n + 2 * n, 3, names), n, n, n * n)
    y = block(collapse(x, before))
    return Data("to every stream", (y, behind), x.shape) + Data("mix streams", (x, across), x.shape)


def beside(x: Data, n_streams: Size, names: tuple[str, str, str], block: Callable[[Data], Data]) -> Data:
    """The same where every stream keeps to itself but for what the block returns."""
    before, behind = split(mixing(x, n_streams, 2 * n_streams, 2, names), n_streams, n_streams)
    return x + Data("to every stream", (block(collapse(x, before)), behind), x.shape)
