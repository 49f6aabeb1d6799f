"""Whole attentions, and what operations keep for later tokens: KV caches, compressed latents, recurrent states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paramcount.flow import Cache, JoinPrompt, Scored, WeightedSum, list_scored
from paramcount.flow.graph import Data, Repeat, Size, multiply
from paramcount.flow.masks import Chunk, CompressedBlocks, Mask
from paramcount.flow.walk import Step, list_steps

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


class Attention(NamedTuple):
    """The steps of one attention in a flow."""

    out: Data  # the weighted sum of values
    scored: tuple[Scored, ...]  # the scores of each kind of keys, with what hides them
    caches: tuple[Data, ...]  # what it reads of earlier tokens, unless an attention before it does

    @property
    def q(self) -> Data:
        return self.scored[0].scores.inputs[0]

    @property
    def k(self) -> Data:
        """The keys of the first kind."""
        return self.scored[0].scores.inputs[1]

    @property
    def values(self) -> tuple[Data, ...]:
        return self.out.inputs[1:]

    @property
    def mask(self) -> Mask:
        """What hides keys of the text: those of an encoder's output, and compressed blocks, have others."""
        masks = (mask for _, mask, _ in self.scored if mask is not None and mask.find(CompressedBlocks) is None)
        return next(masks, Mask())

    @property
    def trim(self) -> Size | None:
        """Tokens that its cache keeps at most, the newest included; None for all."""
        caches = (data.operation for data in self.caches if data.shape[0] == "tokens")
        return next((operation.mask.trim for operation in caches if isinstance(operation, Cache)), None)

    @property
    def continues_text(self) -> bool:
        """Whether a further token may follow those that it reads."""
        return self.mask.is_causal or {data.shape[0] for data in self.caches} == {"tokens"}


def find_attentions(steps: Sequence[Step]) -> dict[int, Attention]:
    """{id of the weighted sum of values: its attention} in execution order. A cache belongs to the next attention."""
    found: dict[int, Attention] = {}
    caches: list[Data] = []
    for data, *_ in steps:
        if isinstance(data.operation, Cache):
            caches.append(data)
        elif isinstance(data.operation, WeightedSum):
            found[id(data)] = Attention(data, list_scored(data.inputs[0]), tuple(caches))
            caches = []
    return found


def list_kept(attention: Attention) -> Iterator[Cached]:
    """What an attention keeps for later tokens."""
    caches, trim = attention.caches, attention.trim
    longest = None if trim is None else trim - 1  # a window includes the token that attends
    memory = tuple(data.shape for data in caches if data.shape[0] == "source")
    if 0 < len(memory) < len(caches):  # of an encoder's output beside that of the tokens
        own = tuple(data.shape for data in caches if data.shape[0] != "source")
        yield Cached(KEYS_AND_VALUES, own, longest, describe_kind(caches[0], longest))
        yield Cached(KEYS_AND_VALUES, memory, None, CROSS_ATTENTION)
    elif caches:
        k, v = attention.k, attention.values[0]
        what = KEYS_AND_VALUES if caches == (k, v) else LATENT
        expanded = (k.shape[1:], v.shape[1:]) if what == LATENT else ()
        kind = CROSS_ATTENTION if k.shape[0] != attention.q.shape[0] else describe_kind(caches[0], longest)
        masks = (mask.find(CompressedBlocks) for _, mask, _ in attention.scored if mask is not None)
        block = next((mask.size for mask in masks if mask is not None), 1)
        yield Cached(what, tuple(data.shape for data in caches), longest, kind, expanded=expanded, block=block)


def describe_kind(cache: Data, longest: Size | None) -> str:
    """Which earlier tokens a cache keeps; "" for all."""
    if longest is None:
        return ""
    operation = cache.operation
    return CHUNK if isinstance(operation, Cache) and operation.mask.find(Chunk) else SLIDING_WINDOW


def find_state(data: Data) -> Cached | None:
    """The recurrent state of an operation."""
    if not (shapes := data.operation.state_shapes):
        return None
    from paramcount.flow import CausalConvolution, DeltaRule  # imported here: a flow without states does without

    per_channel = isinstance(data.operation, DeltaRule) and len(data.inputs[3].shape) == 3
    what = LAST_INPUTS if isinstance(data.operation, CausalConvolution) else STATE
    return Cached(what, shapes, decays_per_channel=per_channel, in_float32=data.operation.state_in_float32)


def list_rows_in_front(out: Data) -> tuple[Size | str, ...]:
    """How many rows the first part of a text gets in front of its tokens: a prompt, an encoder's output."""
    return tuple(
        data.inputs[0].shape[0]
        for data, *_ in list_steps(out)
        if isinstance(data.operation, JoinPrompt) and len(data.shape) > 1  # vectors, not what ids say
    )


def list_cached(out: Data, part: str = "decoder") -> Iterator[Cached]:
    """What the operations that `out` depends on keep for later tokens, in execution order."""
    # The patches of an image are as many as its size says, and a text may have none.
    front = tuple(n for n in list_rows_in_front(out) if not isinstance(n, str) or n == "source")
    steps = list_steps(out, part)
    attentions = find_attentions(steps)
    for data, _, repeats, _ in steps:
        state = find_state(data)
        layers = [repeat for repeat in repeats if repeat.axis == "layer"]
        for cached in (state,) if state else list_kept(attentions[id(data)]) if id(data) in attentions else ():
            if not cached.is_state and cached.shapes[0][0] == "tokens":
                cached = cached._replace(front=front)
            yield cached._replace(
                layers=multiply(repeat.count for repeat in layers), stack=layers[-1] if layers else None
            )
