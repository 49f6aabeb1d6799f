"""What vLLM allocates for the KV cache and the recurrent state.

Source: vLLM 0.33.0, vllm/v1/kv_cache_interface.py, v1/core/kv_cache_planning.py, platforms/interface.py,
model_executor/layers/mamba/mamba_utils.py and model_executor/layers/attention/mla_attention.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.engines.vllm.options import VllmOptions, complete_options
from paramcount.errors import count_noun

PACKED_LATENT = 656  # bytes per token of fp8_ds_mla: 512 FP8 values, 4 scales in FP32, 64 values in BF16
INDEX_SCALE = 4  # bytes per token and 128 values of an indexer, which are in FP8
LAST_POOL_TOKENS = 20  # minor version that prints the tokens of the pool, whatever the length of a sequence
KERNEL_BLOCK_OF_MLA = 128  # of which blocks next to recurrent layers are multiples


class Bucket(NamedTuple):
    """Layers whose caches are managed alike."""

    layers: int
    block_size: int  # tokens
    blocks: int  # that one request reserves in each layer
    is_state: bool


class CachePool(NamedTuple):
    """The blocks that all layers share. Groups of layers, each as large as the others, draw from them."""

    block_bytes: int  # of one block in all layers of a group
    buckets: tuple[Bucket, ...]
    group_size: int  # layers
    state_page: int = 0  # bytes of the state of one recurrent layer
    token_bytes: int = 0  # of attention, in one layer, the most

    def count_groups(self, bucket: Bucket) -> int:
        return -(-bucket.layers // self.group_size)

    def count_blocks(self, *, is_state: bool) -> int:
        """The blocks that one request reserves for attention, or for states."""
        return sum(self.count_groups(b) * b.blocks for b in self.buckets if b.is_state == is_state)

    @property
    def shortest_block(self) -> int:
        """Tokens."""
        return min(bucket.block_size for bucket in self.buckets)

    @property
    def n_groups(self) -> int:
        return sum(map(self.count_groups, self.buckets))


def plan_pool(groups: Sequence[CacheGroup], request: CacheRequest, state_bytes: int) -> CachePool | None:
    """The blocks of all layers; None if nothing is cached. `state_bytes`: the states of all layers of a sequence."""
    options = complete_options(request)
    states = [group for group in groups if group.is_state]
    attention = [group for group in groups if not group.is_state]
    if options.disable_hybrid_kv_cache_manager:
        attention = [group._replace(longest=None, kind="") if group.longest else group for group in attention]
    block, n_recurrent = options.block_size, count_recurrent_layers(states)
    state_page = state_bytes // n_recurrent if states else 0  # of one layer
    per_token = [count_token_bytes(group, request) for group in attention]
    if states and attention:
        # The blocks of attention grow until one is as large as the state of a recurrent layer.
        multiple = max(block, KERNEL_BLOCK_OF_MLA) if any(group.expanded for group in attention) else block
        block = multiple * -(-state_page // (multiple * max(per_token)))
    if not states and len({(group.longest, group.kind, group.stream) for group in attention}) == 1:
        # Layers that need as many tokens are one group, whatever the size of a token.
        size = sum(group.layers * n for group, n in zip(attention, per_token))
        blocks = count_blocks(attention[0], block, request, options)
        return CachePool(block * size, (Bucket(1, block, blocks, False),), 1)
    page = block * max(per_token) if attention else state_page
    buckets = []
    for group, size in zip(attention, per_token):
        # Blocks of smaller tokens have more of them, so that all are equally large.
        own = block * (max(per_token) // size) if max(per_token) % size == 0 else block
        buckets.append(Bucket(group.layers, own, count_blocks(group, own, request, options), False))
    if states:
        kept = options.states_per_request if attention else 1 + options.num_speculative_tokens
        buckets.append(Bucket(n_recurrent, block, kept, True))
    if not buckets:
        return None
    numbers = [bucket.layers for bucket in buckets]
    # Padding the last group with empty layers wastes less than smaller groups would.
    size = max(numbers) if max(numbers) < 1.5 * min(numbers) else min(numbers)
    return CachePool(page * size, tuple(buckets), size, state_page, max(per_token, default=0))


def count_token_bytes(group: CacheGroup, request: CacheRequest) -> int:
    """Bytes of one token in one layer."""
    if len(group.shapes) < 3 or not group.expanded:
        return group.count_bytes(request.kv_dtype, request.tp)
    # Sparse attention with an indexer: latents in FP8 are packed with their scales, the indexer's keys always are.
    latent, index = group._replace(shapes=group.shapes[:2]), prod(group.shapes[2])
    is_packed = request.kv_dtype.keys.name == "fp8"
    size = PACKED_LATENT if is_packed else latent.count_bytes(request.kv_dtype, request.tp)
    return size + index + INDEX_SCALE * -(-index // 128)


def count_blocks(group: CacheGroup, block: int, request: CacheRequest, options: VllmOptions) -> int:
    """The blocks that one request reserves in a layer, on one of the GPUs that divide the tokens."""
    if group.longest is None:
        tokens = group.count_tokens(request.context, request.source)
        share = -(-tokens // options.decode_context_parallel_size)
        return -(-share // block)
    in_flight = options.max_num_batched_tokens * options.batches_in_flight
    if group.is_chunked:
        return -(-min(group.longest + 1 + in_flight, request.context) // block)
    # A window may begin within a block.
    return -(-min(group.longest + in_flight, request.context) // block) + 1


def count_recurrent_layers(states: Sequence[CacheGroup]) -> int:
    """The number of recurrent layers; a layer may have several convolutions."""
    recurrent = sum(group.layers for group in states if not group.is_convolution)
    return recurrent or sum(group.layers for group in states)


def describe_pool(groups: Sequence[CacheGroup], pool: CachePool, options: VllmOptions) -> tuple[str, ...]:
    """The rules of the engine that apply."""
    sizes = sorted({bucket.block_size for bucket in pool.buckets if not bucket.is_state})
    notes = [f"vLLM allocates blocks of {' and '.join(f'{n:,}' for n in sizes)} tokens"] if sizes else []
    if any(group.longest is not None for group in groups) and not options.disable_hybrid_kv_cache_manager:
        notes.append(
            f"sliding windows reserve {options.batches_in_flight} × {options.max_num_batched_tokens:,} "
            "more tokens (async_scheduling, max_num_batched_tokens)"
        )
    if sizes and any(bucket.is_state for bucket in pool.buckets):
        number = {1: "one", 2: "two"}.get(options.states_per_request, str(options.states_per_request))
        reason = " with prefix caching" if options.states_per_request == 2 + options.num_speculative_tokens else ""
        notes.append(f"states are padded to a block, {number} per sequence{reason}")
    return tuple(notes)


def describe_available(pool: CachePool, request: CacheRequest, available_bytes: int) -> tuple[str, ...]:
    """What the log prints beside the size of the cache: blocks, and what their size follows from."""
    options = complete_options(request)
    blocks = max(0, available_bytes) // pool.block_bytes
    notes = [f"{blocks:,} blocks of {pool.block_bytes:,} bytes in {count_noun(pool.n_groups, 'group')} of layers"]
    if pool.state_page and pool.token_bytes:
        block = pool.buckets[0].block_size
        padded = block * pool.token_bytes
        notes.append(
            f"block size {block:,}: the state of a recurrent layer takes {pool.state_page:,} bytes, "
            f"a token in an attention layer {pool.token_bytes:,}; padded by {padded / pool.state_page - 1:.2%}"
        )
    notes += describe_refusal(pool, blocks, options)
    older = count_pool_tokens(pool, blocks, options)
    one = sum(pool.count_blocks(is_state=kind) for kind in (False, True))
    newer = blocks * request.context // one if one else 0
    if older != newer and options.minor > LAST_POOL_TOKENS:
        notes.append(f"up to version 0.{LAST_POOL_TOKENS}, vLLM prints {older:,} tokens: blocks / groups × block size")
    elif older != newer:
        notes.append(f"later versions print {newer:,} tokens: concurrency × context")
    return tuple(notes)


def describe_refusal(pool: CachePool, blocks: int, options: VllmOptions) -> list[str]:
    """Why vLLM does not start although the cache fits: a CUDA graph of all sequences needs a block for each state.

    Source: config/compilation.py.
    """
    has_states = any(bucket.is_state for bucket in pool.buckets)
    if options.enforce_eager or blocks >= options.max_num_seqs or not has_states:
        return []
    found = f"max_num_seqs = {options.max_num_seqs:,} exceeds the {blocks:,} Mamba cache blocks"
    return [f"{found}: vLLM refuses to start; choose max_num_seqs = {blocks:,} or less"]


def count_pool_tokens(pool: CachePool, blocks: int, options: VllmOptions) -> int:
    """What versions up to 0.20 print as the size of the KV cache."""
    return blocks // pool.n_groups * pool.shortest_block * options.decode_context_parallel_size
