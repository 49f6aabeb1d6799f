"""A hierarchical MLP over pixels: each layer merges squares of the one before, so that no patch sees another.

Source: arXiv:2203.09795, section 5; InklingVisionModel and plan_out_scales of the reference.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import inf, log
from typing import NamedTuple

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data


class HmlpScale(NamedTuple):
    """What one vector stands for behind a layer, and how many channels it has."""

    n_frames: int
    side: int  # of a square of pixels
    n_channels: int


class HierarchicalMLP(sizes.Tower):
    """Of each layer: the side of the squares and the number of frames that it merges, and, but for the last, the size
    of its vectors.
    """

    config_class = "InklingVisionConfig"

    unused_keys = ("hidden_size", "num_attention_heads", "text_hidden_size")

    n_channels: sizes.Positive = sizes.hf("num_channels")
    folds: sizes.Widths = sizes.derived(lambda js, c: merged(js, c, "side"))
    frame_folds: sizes.Widths = sizes.derived(lambda js, c: merged(js, c, "n_frames"))
    widths: sizes.Indices = sizes.derived(lambda js, c: tuple(scale.n_channels for scale in read_scales(js, c)[1:-1]))

    def image(c) -> Data:
        """The input: one image, all of whose frames are equal."""
        return ops.given("pixels", c.n_channels, "height", "width")

    def encode(c, pixels: Data, d_out: ops.Size) -> Data:
        x, side = ops.reshape(ops.cut(pixels, 1, 1), c.n_channels), 1
        widths: list[ops.Size] = [*c.widths, d_out]
        for i, (fold, n_frames) in enumerate(zip(c.folds, c.frame_folds)):
            if fold > 1:
                x, side = ops.merge_squares(x, fold * fold, ops.patch_places(pixels, side, side)), side * fold
            x = reduce(ops.join, [x] * n_frames)
            x = ops.linear(x, f"layers.linear_{i}", "mlp", widths[i])
            if i < len(c.widths):
                x = ops.activate(ops.rms_norm(x, f"layers.norm_{i}", 1e-6), "gelu")
        return ops.rms_norm(x, "final_norm", 1e-6)

    def check(c) -> None:
        for name, values in (("frame_folds", c.frame_folds), ("widths", (*c.widths, 0))):
            if len(values) != len(c.folds):
                raise ParamcountError(
                    f"has {len(values)} values", where=FieldName(name), expected=f"{len(c.folds)}, as folds"
                )


def merged(js: sizes.ConfigJson, c: sizes.FieldValues, name: str) -> tuple[int, ...]:
    """How many times as large each scale is as the one before, in its side or its number of frames."""
    sizes = [getattr(scale, name) for scale in read_scales(js, c)]
    return tuple(after // before for before, after in pairwise(sizes))


def read_scales(js: sizes.ConfigJson, c: sizes.FieldValues) -> list[HmlpScale]:
    n_frames, side = sizes.check_no_types(js, "temporal_patch_size", 2), sizes.check_no_types(js, "patch_size", 40)
    n_layers = sizes.check_no_types(js, "n_layers", sizes.check_no_types(js, "num_hidden_layers", 24))
    for key, value, least in (("patch_size", side, 2), ("temporal_patch_size", n_frames, 2), ("n_layers", n_layers, 1)):
        if value < least:
            raise ParamcountError(
                f"= {value}", where=f"vision_config.{key}", expected=f"an integer of at least {least}"
            )
    return plan_scales(n_frames, side, n_layers, c["n_channels"])


def plan_scales(n_frames: int, side: int, n_layers: int, n_channels: int) -> list[HmlpScale]:
    """The scale of the pixels and of the output of each layer, which shrink an image as evenly as possible."""
    sides, times = multiply_factors(side), multiply_factors(n_frames)
    spatial = [HmlpScale(1, n, -(-n * n * n_channels // 64) * 64) for n in sides]
    temporal = [HmlpScale(n, side, side * side * n_channels * n * 64) for n in times]
    scales = [HmlpScale(1, 1, n_channels), *spatial, *temporal]
    reached = [single(log(scale.n_frames * scale.side * scale.side)) for scale in scales]
    whole = single(log(side * side * n_frames * n_channels))
    step, half = single(whole / n_layers), (n_layers + 1) // 2
    ideal = [
        single(step * i) if i < half else single(whole - single(step * (n_layers - i))) for i in range(n_layers + 1)
    ]
    costs = [[single(abs(single(a - b))) for b in reached] for a in ideal]
    nearest = [row.index(min(row)) for row in costs]
    chosen = nearest if n_layers >= len(scales) else assign_columns(costs)
    return [scales[i] for i in (0, *chosen[1:-1], -1)]


def multiply_factors(n: int) -> list[int]:
    """The products of the first prime factors of n, the largest factor first: 5, 10, 20 and 40 of 40."""
    factors, factor, rest = [], 2, n
    while rest > 1:
        if factor * factor > rest:
            factor = rest
        if rest % factor:
            factor += 1
        else:
            factors.append(factor)
            rest //= factor
    products = [1]
    for factor in reversed(factors):
        products.append(products[-1] * factor)
    return products[1:]


def single(x: float) -> float:
    """The nearest number in single precision, in which the reference compares."""
    return struct.unpack("f", struct.pack("f", x))[0]


def assign_columns(costs: Sequence[Sequence[float]]) -> list[int]:
    """A column for each row, at the lowest cost in all: shortest augmenting paths, and among equals those that SciPy's
    linear_sum_assignment finds. Source: D. Crouse, doi:10.1109/TAES.2016.140952.
    """
    n_rows, n_columns = len(costs), len(costs[0])
    of_rows, of_columns = [0.0] * n_rows, [0.0] * n_columns  # the dual variables
    row_of, column_of = [-1] * n_columns, [-1] * n_rows
    for start in range(n_rows):
        shortest, previous = [inf] * n_columns, [-1] * n_columns
        open_columns = list(reversed(range(n_columns)))
        rows, columns, row, end, least = set(), set(), start, -1, 0.0
        while end < 0:
            rows.add(row)
            for j in open_columns:
                length = least + costs[row][j] - of_rows[row] - of_columns[j]
                if length < shortest[j]:
                    shortest[j], previous[j] = length, row
            least = min(shortest[j] for j in open_columns)
            nearest = [at for at, j in enumerate(open_columns) if shortest[j] == least]
            free = [at for at in nearest if row_of[open_columns[at]] < 0]
            at = free[-1] if free else nearest[0]
            found, last = open_columns[at], open_columns.pop()
            if at < len(open_columns):
                open_columns[at] = last
            columns.add(found)
            row, end = row_of[found], found if row_of[found] < 0 else -1
        of_rows[start] += least
        for i in rows - {start}:
            of_rows[i] += least - shortest[column_of[i]]
        for j in columns:
            of_columns[j] -= least - shortest[j]
        row = -1
        while row != start:
            row = row_of[end] = previous[end]
            column_of[row], end = end, column_of[row]
    return column_of
