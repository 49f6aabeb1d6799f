"""The attention of declarations that are still written with options, as steps."""

from __future__ import annotations

from typing import Any, Literal

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.masks import (
    Causal,
    Chosen,
    Chunk,
    CompressedBlocks,
    GlobalTokens,
    Groups,
    Largest,
    Mask,
    Window,
)  # fmt: skip
from paramcount.flow.operation import Unknown
from paramcount.flow.operations.attention import Cache, add_bias, cache, hide, scores, softmax, weighted_sum
from paramcount.flow.operations.elementwise import soft_cap as cap_scores
from paramcount.flow.operations.scores import (
    add_own,
    bias_by_distance,
    bias_by_place,
    collisions,
    own_scores,
    pseudoinverse,
    put_itself_last,
    scores_of_two,
)


def attend(
    q: Data,
    k: Data,
    v: Data,
    *biases: Data,
    window: Size | None = None,
    cached: tuple[Data, ...] | None = None,
    sinks: Weight | None = None,
    causal: bool | None = None,
    keeps_all: bool = False,
    scale: float | Unknown | None = None,
    soft_cap: float | Unknown | None = None,
    chunk: Size | Unknown | None = None,
    chosen: Data | None = None,
    longest: int | Unknown | None = None,
    by_key: bool = False,
    by_distance: Literal["no", "in tokens", "in rows and columns"] = "no",
    places: Data | None = None,
    n_kept: int | Unknown | None = None,
    blocks: tuple[Data, Size] | None = None,
    chosen_block: Size = 1,
    within: Data | tuple[Data, Data] | None = None,
    except_in: tuple[int, ...] | Unknown = (),
    own: tuple[Data, Data, Data] | None = None,
    chunk_offset: Size = 0,
    weighs: Literal["softmax", "inverse", "collisions"] = "softmax",
    exponent: int | Unknown = 1,
    marked: Data | None = None,
    behind: Size | None = None,
    caps_biases: bool = False,
    others: tuple[Data, Data] | None = None,
    more_chunks: tuple[int, int] = (0, 0),
    itself_last: bool = False,
    front_in_order: bool = False,
    kept: Size | None = None,
) -> Data:
    contents = (k, v) if cached is None else cached
    if causal is None:
        causal = bool(contents) and q.shape[0] is k.shape[0]
    masks: list[Mask] = [Causal(front_in_order) if front_in_order else Causal()] if causal else []
    if window is not None:
        masks.append(Window(window) if causal else Window((window if behind is None else behind) + 1, window))
    if chunk is not None:
        masks.append(Chunk(chunk, chunk_offset, *more_chunks))
    trim = kept if kept is not None else None if keeps_all else window
    kind = Chunk(chunk) if chunk is not None and trim is not None else None if trim is None else Window(trim)
    of_cache = Mask() if kind is None else kind
    for data in contents:
        if data.inputs or data.weights:
            insert_cache(data, of_cache)
    k, v = (cache(x, of_cache) if x in contents and not (x.inputs or x.weights) else x for x in (k, v))
    if marked is not None and masks:
        masks = [join_masks(masks) | GlobalTokens(marked)]
    if within is not None:
        groups = within if isinstance(within, tuple) else (within,)
        masks.append(Groups(groups[0], groups[1] if len(groups) > 1 else None, except_in))
    if n_kept is not None:
        masks.append(Largest(biases[0], n_kept))
    lengths = {x.shape[0] for x in contents}
    parts, values = [k], [v]
    if {"source", "tokens"} <= lengths:
        (far, k), (seen, v) = k.inputs, v.inputs
        parts, values = [far, k], [seen, v]
    s = scores(q, k, scale, longest=longest) if others is None else scores_of_two(q, others[0], k, others[1])
    if not caps_biases:
        s = cap_scores(s, soft_cap)
    for axis, bias in enumerate(biases):
        if by_distance == "in tokens":
            bias = bias_by_distance(bias, k)
        elif places is not None:
            bias = bias_by_place(bias, places, "columns" if axis else "rows")
        s = add_bias(s, bias, by_key=by_key)
    if caps_biases:
        s = cap_scores(s, soft_cap)
    if itself_last:
        s = put_itself_last(s)
    if chosen is not None and blocks is None:
        s = hide(s, Chosen(chosen, chosen_block))
    if masks:
        s = hide(s, join_masks(masks))
    more: list[Data] = []
    if blocks is not None:
        ended: Mask = CompressedBlocks(blocks[1])
        of_blocks = scores(q, blocks[0], scale)
        if chosen is not None:
            of_blocks = hide(of_blocks, Chosen(chosen))
        more.append(hide(of_blocks, ended))
        values.append(blocks[0])
    if len(parts) > 1:
        more, s = [s], scores(q, parts[0], scale)
    if own is not None:
        more.append(own_scores(q, own[0], own[2]))
    a = collisions(s, exponent) if weighs == "collisions" else softmax(s, *more, sinks=sinks)
    if weighs == "inverse":
        a = pseudoinverse(a)
    y = weighted_sum(a, *values)
    return y if own is None else add_own(y, a, own[1])


def join_masks(masks: list[Mask]) -> Mask:
    found = masks[0]
    for mask in masks[1:]:
        found = found & mask
    return found


def insert_cache(data: Data, mask: Mask) -> None:
    """Makes data its own cache: whatever reads it reads what is cached."""
    if isinstance(data.operation, Cache):
        return
    inner: Any = Data(data.operation, data.inputs, data.shape, data.weights, bodies=data.bodies, part=data.part)
    inner.prefix = data.prefix
    data.operation, data.inputs, data.weights = Cache(mask, data.shape[0] == "tokens"), (inner,), ()
    data.prefix, data.bodies, data.part = "", (), None
