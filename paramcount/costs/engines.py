"""How much memory an inference engine allocates for the KV cache and the recurrent state.

Sources: vLLM 0.33.0, vllm/v1/kv_cache_interface.py and v1/core/kv_cache_planning.py; llama.cpp, commit 0c1e57098,
src/llama-context.cpp, llama-kv-cache.cpp, llama-kv-cache-iswa.cpp and llama-memory-recurrent.cpp; transformers 5.23,
cache_utils.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import KVDtype, parse_kv_dtype

BLOCK = 16  # tokens per block of vLLM
BATCHED_TOKENS = 8192  # vLLM's max_num_batched_tokens on GPUs with at least 70 GiB
STATE_BLOCKS = 2  # blocks of a recurrent layer per request, with prefix caching
CELLS = 256  # llama.cpp allocates multiples of this number of cells
UBATCH = 512  # llama.cpp's n_ubatch


class Request(NamedTuple):
    """What is cached."""

    context: int  # tokens per sequence, prompt and answer
    batch: int  # sequences
    kv_dtype: KVDtype
    source: int | None = None  # encoder input length
    tp: int = 1  # GPUs that share the heads; the allocation is that of one of them
    batched_tokens: int = BATCHED_TOKENS  # tokens that vLLM computes at once


class Allocation(NamedTuple):
    """Bytes of all sequences together, on one GPU."""

    kv_bytes: int
    state_bytes: int
    notes: tuple[str, ...] = ()  # the engine's rules that apply


Policy: TypeAlias = Callable[[Sequence[CacheGroup], Request], Allocation]


def allocate_minimum(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """What the computation needs: a sliding window keeps the tokens that the next one attends to besides itself."""
    kv_bytes, state_bytes = 0, 0
    for group in groups:
        tokens = group.count_tokens(request.context, request.source)
        size = group.layers * tokens * group.count_bytes(request.kv_dtype if not group.is_state else BF16, request.tp)
        if group.is_state:
            state_bytes += size
        else:
            kv_bytes += size
    return Allocation(request.batch * kv_bytes, request.batch * state_bytes)


def allocate_transformers(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """DynamicCache: as little as the computation needs, but a convolution keeps as many inputs as it is wide."""
    widened = []
    for group in groups:
        if group.is_convolution:
            group = group._replace(shapes=tuple((*shape[:-1], shape[-1] + 1) for shape in group.shapes))
        widened.append(group)
    notes = ("convolutions keep as many inputs as they are wide",) if any(g.is_convolution for g in groups) else ()
    return allocate_minimum(widened, request)._replace(notes=notes)


# ---- vLLM


class Layers(NamedTuple):
    """Layers whose caches vLLM manages alike."""

    number: int
    page: int  # bytes of one block in one layer
    blocks: int  # that one request reserves in each layer


def allocate_vllm(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """One pool of blocks for all layers, in groups of equally many layers; a request reserves blocks in each group."""
    states = [group for group in groups if group.is_state]
    attention = [group for group in groups if not group.is_state]
    page_of_state = count_state_page(states, request)
    block, page = BLOCK, 0
    per_token = [group.count_bytes(request.kv_dtype, request.tp) for group in attention]
    if states and attention:
        # The blocks of attention grow until one is as large as the state of a recurrent layer.
        block = max(block, BLOCK * -(-page_of_state // (BLOCK * max(per_token))))
    if attention:
        page = block * max(per_token)
    buckets = []
    for group, size in zip(attention, per_token):
        own_block = block * (max(per_token) // size) if max(per_token) % size == 0 else block
        buckets.append(Layers(group.layers, page, count_vllm_blocks(group, own_block, request)))
    if states:
        layers = count_recurrent_layers(states)
        buckets.append(Layers(layers, page or page_of_state, STATE_BLOCKS if attention else 1))
    if not buckets:
        return Allocation(0, 0)
    numbers = [bucket.number for bucket in buckets]
    # Padding the last group with empty layers wastes less than smaller groups would.
    size = max(numbers) if max(numbers) < 1.5 * min(numbers) else min(numbers)
    kv_bytes = state_bytes = 0
    for i, bucket in enumerate(buckets):
        needed = -(-bucket.number // size) * size * bucket.blocks * bucket.page * request.batch
        if states and i == len(buckets) - 1:
            state_bytes += needed
        else:
            kv_bytes += needed
    return Allocation(kv_bytes, state_bytes, describe_vllm(attention, states, block, request))


def count_vllm_blocks(group: CacheGroup, block: int, request: Request) -> int:
    """The blocks that one request reserves in a layer."""
    if group.longest is not None:
        tokens = min(group.longest + request.batched_tokens, request.context)
        return -(-tokens // block) + 1
    return -(-group.count_tokens(request.context, request.source) // block)


def count_state_page(states: Sequence[CacheGroup], request: Request) -> int:
    """Bytes of the states of one recurrent layer."""
    layers = count_recurrent_layers(states)
    total = sum(group.layers * group.count_bytes(BF16, request.tp) for group in states)
    return total // layers if layers else 0


def count_recurrent_layers(states: Sequence[CacheGroup]) -> int:
    """The number of recurrent layers; a layer may have several convolutions."""
    recurrent = sum(group.layers for group in states if not group.is_convolution)
    return recurrent or sum(group.layers for group in states)


def describe_vllm(
    attention: Sequence[CacheGroup], states: Sequence[CacheGroup], block: int, request: Request
) -> tuple[str, ...]:
    notes = [f"vLLM allocates blocks of {block:,} tokens"] if attention else []
    if any(group.longest is not None for group in attention):
        notes.append(f"sliding windows reserve {request.batched_tokens:,} more tokens (max_num_batched_tokens)")
    if states and attention:
        notes.append("states are padded to a block, two per sequence with prefix caching")
    return tuple(notes)


# ---- llama.cpp


def allocate_llama_cpp(groups: Sequence[CacheGroup], request: Request) -> Allocation:
    """Cells in multiples of 256 for each sequence; sliding windows also hold a micro-batch; states are in F32."""
    kv_bytes, state_bytes = 0, 0
    cells = pad_cells(request.context)
    for group in groups:
        if group.is_state:
            state_bytes += group.layers * group.count_bytes(F32, request.tp)
            continue
        n = cells if group.stream == "tokens" else pad_cells(group.count_tokens(request.context, request.source))
        if group.longest is not None:
            n = pad_cells(min(cells, group.longest + 1 + UBATCH))
        kv_bytes += group.layers * n * group.count_bytes(request.kv_dtype, request.tp)
    notes = [f"llama.cpp allocates multiples of {CELLS} cells per sequence"]
    if any(group.longest is not None for group in groups):
        notes.append(f"sliding windows hold {UBATCH} more cells (n_ubatch)")
    if state_bytes:
        notes.append("states are in F32")
    return Allocation(request.batch * kv_bytes, request.batch * state_bytes, tuple(notes))


def pad_cells(n: int) -> int:
    return -(-n // CELLS) * CELLS


BF16, F32 = parse_kv_dtype("bf16"), parse_kv_dtype("f32")
ENGINES: Mapping[str, Policy] = {
    "minimal": allocate_minimum,
    "transformers": allocate_transformers,
    "vllm": allocate_vllm,
    "llama.cpp": allocate_llama_cpp,
}
