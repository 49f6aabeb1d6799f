"""How much memory an inference engine allocates for the KV cache and the recurrent state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import KVDtype


class Request(NamedTuple):
    """What is cached."""

    context: int  # tokens per sequence, prompt and answer
    batch: int  # sequences
    kv_dtype: KVDtype
    source: int | None = None  # encoder input length


class Allocation(NamedTuple):
    """Bytes of all sequences together."""

    kv_bytes: int
    state_bytes: int
    notes: tuple[str, ...] = ()  # the rules that apply, where they add to what the computation needs


Policy: TypeAlias = Callable[[Sequence[CacheGroup], Request], Allocation]


def allocate_minimum(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """What the computation needs: a sliding window keeps the tokens that the next one attends to besides itself."""
    kv_bytes, state_bytes = 0, 0
    for group in groups:
        size = group.count_bytes(group.count_tokens(request.context, request.source), request.kv_dtype)
        if group.is_state:
            state_bytes += size
        else:
            kv_bytes += size
    return Allocation(request.batch * kv_bytes, request.batch * state_bytes)


ENGINES: Mapping[str, Policy] = {"minimal": allocate_minimum}
