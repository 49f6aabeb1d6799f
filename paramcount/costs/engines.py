"""How much memory an inference engine allocates for the KV cache and the recurrent state.

Source of the policy of transformers: version 5.23, cache_utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paramcount.costs.allocation import BF16, F32, Allocation, Engine, Request, count_state_bytes
from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.llama_cpp import LLAMA_CPP
from paramcount.costs.vllm import VLLM


def allocate_minimum(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """What the computation needs: a sliding window keeps the tokens that the next one attends to besides itself."""
    kv_bytes = count_kv_bytes(groups, request)
    return Allocation(kv_bytes, request.batch * count_state_bytes(choose_bf16, groups, request))


def count_kv_bytes(groups: Sequence[CacheGroup], request: Request) -> int:
    """Bytes of the tokens of all sequences."""
    return request.batch * sum(
        group.layers
        * group.count_tokens(request.context, request.source)
        * group.count_bytes(request.kv_dtype, request.tp)
        for group in groups
        if not group.is_state
    )


def choose_bf16(state: CacheGroup, request: Request) -> KVDtype:
    return BF16


def allocate_transformers(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """DynamicCache: as little as the computation needs, but a convolution keeps as many inputs as it is wide."""
    widened = [
        group._replace(shapes=tuple(map(widen, group.shapes))) if group.is_convolution else group for group in groups
    ]
    state_bytes = request.batch * count_state_bytes(choose_reference_dtype, widened, request)
    notes = (
        ("convolutions keep as many inputs as they are wide",) if any(group.is_convolution for group in groups) else ()
    )
    return Allocation(count_kv_bytes(groups, request), state_bytes, notes)


def choose_reference_dtype(state: CacheGroup, request: Request) -> KVDtype:
    return F32 if state.in_float32 else BF16


def widen(shape: tuple[int, ...]) -> tuple[int, ...]:
    """[channels, width - 1] with one more."""
    return (shape[0], shape[1] + 1)


ENGINES: Mapping[str, Engine] = {
    "minimal": Engine(allocate_minimum, choose_bf16),
    "transformers": Engine(allocate_transformers, choose_reference_dtype),
    "vllm": VLLM,
    "llama.cpp": LLAMA_CPP,
}
