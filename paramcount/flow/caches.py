"""What operations keep for later tokens: KV caches, compressed latents and recurrent states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcount.flow.graph import Data, Repeat, Size, multiply
from paramcount.flow.operations import Attention, Convolve, DeltaRule, Join
from paramcount.flow.walk import list_steps

KEYS_AND_VALUES, LATENT, STATE, LAST_INPUTS = "keys and values", "compressed KV latent", "state", "last inputs"
CROSS_ATTENTION, SLIDING_WINDOW, CHUNK = "cross-attention", "sliding window", "chunked attention"


class Cached(NamedTuple):
    """The tensors that one operation keeps for later tokens, per sequence."""

    what: str  # keys and values | compressed KV latent | state | last inputs
    shapes: tuple[tuple[Size, ...], ...]  # the first axis may be a stream: "tokens", "source", …
    longest: Size | None = None  # tokens that are kept at most; None for all
    kind: str = ""  # cross-attention | sliding window | chunked attention; "" for all earlier tokens, and for states
    layers: Size = 1
    stack: Repeat | None = None  # the innermost layers that contain it
    expanded: tuple[tuple[Size, ...], ...] = ()  # of a compressed latent: keys and values per token
    block: Size = 1  # tokens per row of the shapes that do not begin with "tokens"
    decays_per_channel: bool = False  # of a state
    in_float32: bool = False  # of a state: whether the reference keeps it in float32, whatever the model's dtype
    front: tuple[Size | str, ...] = ()  # rows kept in front of the tokens; "source": as many as an encoder reads

    @property
    def is_state(self) -> bool:
        """Whether it is a recurrent state, whose size does not depend on the number of tokens."""
        return self.what in (STATE, LAST_INPUTS)

    @property
    def grows(self) -> bool:
        """Whether every further token makes it larger, however long the text is."""
        return not self.is_state and self.shapes[0][0] == "tokens" and self.longest is None


def find_cached(data: Data) -> tuple[Cached, ...]:
    """What an operation keeps for later tokens."""
    operation = data.operation
    if isinstance(operation, Attention):
        if not operation.cached:
            return ()
        q, k, v = data.inputs[:3]
        if operation.has_memory:
            own = tuple(x.shape for x in operation.cached if x.shape[0] != "source")
            memory = tuple(x.shape for x in operation.cached if x.shape[0] == "source")
            longest = None if operation.trimmed_to is None else operation.trimmed_to - 1
            crossing = Cached(KEYS_AND_VALUES, memory, None, CROSS_ATTENTION)
            return Cached(KEYS_AND_VALUES, own, longest, describe_kind(operation, q, q, longest)), crossing
        what = KEYS_AND_VALUES if operation.cached == (k, v) else LATENT
        # A window includes the token that attends.
        longest = None if operation.trimmed_to is None else operation.trimmed_to - 1
        expanded = (k.shape[1:], v.shape[1:]) if what == LATENT else ()
        shapes = tuple(x.shape for x in operation.cached)
        kind = describe_kind(operation, q, k, longest)
        block = 1 if operation.compressed_block is None else operation.compressed_block
        return (Cached(what, shapes, longest, kind, expanded=expanded, block=block),)
    if shapes := operation.state_shapes:
        per_channel = isinstance(operation, DeltaRule) and len(data.inputs[3].shape) == 3
        what = LAST_INPUTS if isinstance(operation, Convolve) else STATE
        return (Cached(what, shapes, decays_per_channel=per_channel, in_float32=operation.state_in_float32),)
    return ()


def describe_kind(operation: Attention, q: Data, k: Data, longest: Size | None) -> str:
    """Which earlier tokens it keeps; "" for all."""
    if k.shape[0] != q.shape[0]:
        return CROSS_ATTENTION
    if longest is None:
        return ""
    return SLIDING_WINDOW if operation.chunk is None else CHUNK


def list_rows_in_front(out: Data) -> tuple[Size | str, ...]:
    """How many rows the first part of a text gets in front of its tokens: a prompt, an encoder's output."""
    return tuple(
        data.inputs[0].shape[0]
        for data, *_ in list_steps(out)
        if isinstance(data.operation, Join) and data.operation.once and len(data.shape) > 1  # vectors, not what ids say
    )


def list_cached(out: Data, part: str = "decoder") -> Iterator[Cached]:
    """What the operations that `out` depends on keep for later tokens, in execution order."""
    # The patches of an image are as many as its size says, and a text may have none.
    front = tuple(n for n in list_rows_in_front(out) if not isinstance(n, str) or n == "source")
    for data, _, repeats, _ in list_steps(out, part):
        for cached in find_cached(data):
            layers = [repeat for repeat in repeats if repeat.axis == "layer"]
            if not cached.is_state and cached.shapes[0][0] == "tokens":
                cached = cached._replace(front=front)
            yield cached._replace(
                layers=multiply(repeat.count for repeat in layers), stack=layers[-1] if layers else None
            )
