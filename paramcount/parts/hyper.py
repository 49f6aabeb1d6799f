"""Hyper-connections: instead of one residual stream there are several, which every sublayer reads as a mixture and writes back to each.

Source: arXiv:2409.19606, section 2.
"""

from __future__ import annotations

from collections.abc import Callable

from paramcount.flow import Data, Size, act, fused, split, weigh


def streams(x: Data, n: Size) -> Data:
    """The residual stream n times."""
    return Data("copy", (x,), (*x.shape[:1], n, x.shape[-1]))


def collapse(x: Data, weights: Data) -> Data:
    """The streams summed, each with its weight."""
    return Data("sum of streams", (x, weights), (*x.shape[:1], x.shape[-1]))


def mixed(x: Data, names: tuple[str, str, str], width: Size, n_scales: int) -> Data:
    """`width` numbers out of all streams together: a matrix, a scale for each group of numbers, a bias. `names`: of the three."""
    fn, base, scale = names
    y = fused(x, fn, {"other": width}, suffixes=("", ""))[0]
    return act(weigh(weigh(y, "scale", scale, "other", n_scales), "bias", base, "other", width), "sigmoid")


def connected(x: Data, names: tuple[str, str, str], body: Callable[[Data], Data]) -> Data:
    """A sublayer on a mixture of the streams x, its output added to each stream by a factor of its own: HY-V4."""
    n = x.shape[1]
    read, write = split(mixed(x, names, n + n, 2), n, n)
    return x + Data("to every stream", (body(collapse(x, read)), write), x.shape)
