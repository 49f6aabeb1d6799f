"""The KV cache and the recurrent state of a model: what its layers keep, and how many bytes that takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from paramcount.costs.dtypes import KVDtype
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import Repeat, Size
from paramcount.flow.caches import CHUNK, KEYS_AND_VALUES, LAST_INPUTS, Cached, list_cached
from paramcount.sizes import Sizes
from paramcount.zoo import Model

BLOCKS = "compressed blocks of tokens"


class CacheGroup(NamedTuple):
    """Layers that cache alike."""

    what: str  # keys and values | compressed KV latent | compressed blocks of tokens | state | last inputs
    kind: str  # cross-attention | sliding window | chunked attention; "" for all earlier tokens, and for states
    layers: int
    shapes: tuple[
        tuple[int, ...], ...
    ]  # of each tensor in one layer, per token: [heads, size] or [size]; of states whole
    stream: str  # what its length is: "tokens", "source", another input, or "" for a state
    longest: int | None = None  # tokens that one layer keeps at most; None for all
    expanded: tuple[tuple[int, ...], ...] = ()  # of a compressed latent: keys and values, per token
    block: int = 1  # tokens that share a row of the cache
    decays_per_channel: bool = False  # of a state
    in_float32: bool = False  # of a state: whether the reference keeps it in float32, whatever the model's dtype
    front: tuple[int | str, ...] = ()  # rows that stand in front of the tokens; "source": as many as an encoder reads

    @property
    def is_state(self) -> bool:
        """Whether its size does not depend on the number of tokens."""
        return not self.stream

    @property
    def reads_source(self) -> bool:
        """Whether its length depends on another input than the tokens."""
        return self.stream not in ("tokens", "") or "source" in self.front

    @property
    def is_convolution(self) -> bool:
        """Whether it is the last inputs of a convolution."""
        return self.what == LAST_INPUTS

    @property
    def grows(self) -> bool:
        """Whether every further token makes it larger, however long the text is."""
        return self.stream == "tokens" and self.longest is None

    def count_tokens(self, context: int, source: int | None) -> int:
        """The tokens that one layer keeps after a text of `context` tokens; 1 for a state."""
        if self.is_state:
            return 1
        of_source = 0 if source is None else source
        n = context // self.block if self.stream == "tokens" else of_source
        n += sum(of_source if isinstance(rows, str) else rows for rows in self.front)  # others may be symbols
        return n if self.longest is None else min(n, self.longest)

    @property
    def is_chunked(self) -> bool:
        """Whether a token attends to its own chunk of the text alone."""
        return self.kind == CHUNK

    def count_bytes(self, dtype: KVDtype, tp: int = 1) -> int:
        """Bytes of one token in one layer, or of one state, on each of `tp` GPUs that share the heads."""
        sizes = [prod(split_heads(shape, tp, self.is_state)) for shape in self.shapes]
        if self.what != KEYS_AND_VALUES:
            return sum(map(dtype.keys.count_bytes, sizes))
        keys, values = sizes
        return dtype.keys.count_bytes(keys) + dtype.values.count_bytes(values)

    def count_growth(self, dtype: KVDtype) -> int:
        """Bytes that every further token adds in all layers, if the cache grows."""
        row = self.layers * self.count_bytes(dtype)
        return row if self.block == 1 else row // self.block  # the first may be a symbol


def count_growth(groups: Iterable[CacheGroup], dtype: KVDtype) -> int:
    """Bytes that every further token adds to the cache of one sequence, beyond all windows."""
    return sum(group.count_growth(dtype) for group in groups if group.grows)


def count_windows(groups: Iterable[CacheGroup], dtype: KVDtype) -> int:
    """The most bytes that layers with a window cache per sequence."""
    return sum(group.layers * (group.longest or 0) * group.count_bytes(dtype) for group in groups)


def count_source(groups: Iterable[CacheGroup], dtype: KVDtype, source: int) -> int:
    """Bytes that one sequence caches of another input than the tokens, such as an encoder's output."""
    of_source = [group for group in groups if group.stream not in ("tokens", "")]
    return sum(group.layers * group.count_tokens(0, source) * group.count_bytes(dtype) for group in of_source)


def count_states(groups: Iterable[CacheGroup], dtype: KVDtype) -> int:
    """Bytes of the recurrent states of one sequence, all in one dtype."""
    return sum(group.layers * group.count_bytes(dtype) for group in groups if group.is_state)


def split_heads(shape: tuple[int, ...], tp: int, is_state: bool) -> tuple[int, ...]:
    """The shape on one of `tp` GPUs: heads, or the channels of a state, are divided; latents are not."""
    if tp == 1 or (len(shape) < 2 and not is_state):
        return shape
    return (max(1, shape[0] // tp), *shape[1:])


def list_cache_groups(model: Model) -> tuple[CacheGroup, ...]:
    """What the layers of a model cache, in execution order; equal kinds of layers are one group."""
    return merge_groups(list_flow_groups(model.sizes, model.reading.head))


def list_flow_groups(sizes: Sizes, head: bool) -> Iterator[CacheGroup]:
    """What each operation caches in all its layers, in execution order. Sizes may be symbols."""
    return (group for cached in list_flow_cached(sizes, head) for group in make_groups(cached))


class LayerCaches(NamedTuple):
    """What each layer of one kind caches by one operation."""

    repeat: Repeat | None  # the layers; None for what is outside of any
    groups: tuple[CacheGroup, ...]  # of one layer


def list_layer_caches(model: Model) -> tuple[LayerCaches, ...]:
    """What the layers of each kind cache, in execution order."""
    caches = []
    for cached in list_flow_cached(model.sizes, model.reading.head):
        n = sum(length for _, length in cached.stack.runs) if cached.stack else 1
        groups = tuple(group._replace(layers=group.layers // n) for group in make_groups(cached))
        caches.append(LayerCaches(cached.stack, groups))
    return tuple(caches)


def list_flow_cached(sizes: Sizes, head: bool) -> Iterator[Cached]:
    out, part = next(iter(list_flows(sizes, head)))
    return list_cached(out, part)


def merge_groups(groups: Iterable[CacheGroup]) -> tuple[CacheGroup, ...]:
    """Equal groups as one, with all their layers."""
    layers: dict[CacheGroup, int] = {}
    for group in groups:
        key = group._replace(layers=0)
        layers[key] = layers.get(key, 0) + group.layers
    return tuple(group._replace(layers=n) for group, n in layers.items() if not is_zero(n))


def is_zero(n: Size) -> bool:
    """Whether a number, or an expression for all values of its symbols, is 0."""
    if isinstance(n, int):
        return n == 0
    from paramcount.symbolic.polynomials import has_same_terms

    return has_same_terms(n, 0)


def make_groups(cached: Cached) -> list[CacheGroup]:
    """What one operation caches in all its layers: a group for tokens, and one for blocks of tokens."""
    if cached.is_state:
        state = CacheGroup(cached.what, cached.kind, cached.layers, cached.shapes, "")
        return [state._replace(decays_per_channel=cached.decays_per_channel, in_float32=cached.in_float32)]
    stream = str(cached.shapes[0][0])
    whole = CacheGroup(
        cached.what, cached.kind, cached.layers, (), stream, cached.longest, cached.expanded, front=cached.front
    )
    own, others = (
        tuple(shape[1:] for shape in cached.shapes if (shape[0] == stream) == is_own) for is_own in (True, False)
    )
    groups = [whole._replace(shapes=own)]
    if others:
        groups.append(CacheGroup(BLOCKS, "", cached.layers, others, stream, block=cached.block))
    return groups
