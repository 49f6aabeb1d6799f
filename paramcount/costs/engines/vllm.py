"""What vLLM allocates for the KV cache and the recurrent state.

Source: vLLM 0.33.0, vllm/v1/kv_cache_interface.py, v1/core/kv_cache_planning.py, platforms/interface.py,
model_executor/layers/mamba/mamba_utils.py and model_executor/layers/attention/mla_attention.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.engine import BF16, F32, Allocation, CacheRequest, Engine, join_command

if TYPE_CHECKING:
    from paramcount.costs.fit import Deployment

PACKED_LATENT = 656  # bytes per token of fp8_ds_mla: 512 FP8 values, 4 scales in FP32, 64 values in BF16
INDEX_SCALE = 4  # bytes per token and 128 values of an indexer, which are in FP8
KERNEL_BLOCK_OF_MLA = 128  # of which blocks next to recurrent layers are multiples


class VllmOptions(NamedTuple):
    """Options of the engine."""

    block_size: int = 16
    max_num_batched_tokens: int = 8192  # on GPUs with 70 to 160 GiB, except A100; 2048 on smaller ones
    max_concurrent_batches: int = 2  # with asynchronous scheduling; 1 before version 0.12
    prefix_caching: bool = True  # a recurrent layer then keeps two states per request
    hybrid_kv_cache_manager: bool = True  # without it, sliding windows keep all tokens


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

    def count_groups(self, bucket: Bucket) -> int:
        return -(-bucket.layers // self.group_size)

    def count_blocks(self, *, is_state: bool) -> int:
        """The blocks that one request reserves for attention, or for states."""
        return sum(self.count_groups(b) * b.blocks for b in self.buckets if b.is_state == is_state)


class Vllm(Engine):
    name = "vllm"
    options = MappingProxyType(VllmOptions()._asdict())
    utilization = 0.92

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        """One pool of blocks for all layers; one more block holds nothing."""
        pool = self.plan_pool(groups, request)
        if pool is None:
            return Allocation(0, 0)
        unit = pool.block_bytes
        kv_bytes, state_bytes = (request.batch * unit * pool.count_blocks(is_state=kind) for kind in (False, True))
        if kv_bytes:
            kv_bytes += unit
        else:
            state_bytes += unit
        return Allocation(kv_bytes, state_bytes, describe(groups, pool, VllmOptions(**request.options)), unit, unit)

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        """Convolutions are in the dtype of the model; other states as the config says, or in FP32 if channels decay."""
        if state.is_convolution:
            return BF16
        return request.config_state_dtype or (F32 if state.decays_per_channel else BF16)

    def write_command(self, deployment: Deployment, name: str) -> str:
        """`vllm serve`. Experts are divided among the tensor-parallel GPUs, and those of further replicas of the rest.

        Source: engine/arg_utils.py.
        """
        request, parallel, utilization = deployment.request, deployment.parallel, deployment.device.utilization
        keys, replicas = request.kv_dtype.keys.name, -(-parallel.ep // parallel.tp)
        flags = {
            "--tensor-parallel-size": parallel.tp if parallel.tp > 1 else None,
            "--pipeline-parallel-size": parallel.pp if parallel.pp > 1 else None,
            "--data-parallel-size": replicas if replicas > 1 else None,
            "--enable-expert-parallel": parallel.ep > 1,
            "--max-model-len": request.context,
            "--max-num-seqs": request.batch,
            "--kv-cache-dtype": keys if keys == "fp8" else None,
            "--gpu-memory-utilization": None if utilization == self.utilization else utilization,
            "--block-size": request.options.get("block_size"),
            "--max-num-batched-tokens": request.options.get("max_num_batched_tokens"),
            "--no-enable-prefix-caching": request.options.get("prefix_caching") is False,
            "--disable-hybrid-kv-cache-manager": request.options.get("hybrid_kv_cache_manager") is False,
        }
        return join_command("vllm serve", name, flags)

    def plan_pool(self, groups: Sequence[CacheGroup], request: CacheRequest) -> CachePool | None:
        """The blocks of all layers; None if nothing is cached."""
        options = VllmOptions(**request.options)
        states = [group for group in groups if group.is_state]
        attention = [group for group in groups if not group.is_state]
        if not options.hybrid_kv_cache_manager:
            attention = [group._replace(longest=None, kind="") if group.longest else group for group in attention]
        block, n_recurrent = options.block_size, count_recurrent_layers(states)
        state_page = self.count_state_bytes(states, request) // n_recurrent if states else 0  # of one layer
        per_token = [count_token_bytes(group, request) for group in attention]
        if states and attention:
            # The blocks of attention grow until one is as large as the state of a recurrent layer.
            multiple = max(block, KERNEL_BLOCK_OF_MLA) if any(group.expanded for group in attention) else block
            block = multiple * -(-state_page // (multiple * max(per_token)))
        if not states and len({(group.longest, group.kind, group.stream) for group in attention}) == 1:
            # Layers that need as many tokens are one group, whatever the size of a token.
            size = sum(group.layers * n for group, n in zip(attention, per_token))
            return CachePool(block * size, (Bucket(1, block, count_blocks(attention[0], block, request), False),), 1)
        page = block * max(per_token) if attention else state_page
        buckets = []
        for group, size in zip(attention, per_token):
            # Blocks of smaller tokens have more of them, so that all are equally large.
            own = block * (max(per_token) // size) if max(per_token) % size == 0 else block
            buckets.append(Bucket(group.layers, own, count_blocks(group, own, request), False))
        if states:
            kept = 2 if attention and options.prefix_caching else 1
            buckets.append(Bucket(n_recurrent, block, kept, True))
        if not buckets:
            return None
        numbers = [bucket.layers for bucket in buckets]
        # Padding the last group with empty layers wastes less than smaller groups would.
        size = max(numbers) if max(numbers) < 1.5 * min(numbers) else min(numbers)
        return CachePool(page * size, tuple(buckets), size)


def count_token_bytes(group: CacheGroup, request: CacheRequest) -> int:
    """Bytes of one token in one layer."""
    if len(group.shapes) < 3 or not group.expanded:
        return group.count_bytes(request.kv_dtype, request.tp)
    # Sparse attention with an indexer: latents in FP8 are packed with their scales, the indexer's keys always are.
    latent, index = group._replace(shapes=group.shapes[:2]), prod(group.shapes[2])
    is_packed = request.kv_dtype.keys.name == "fp8"
    size = PACKED_LATENT if is_packed else latent.count_bytes(request.kv_dtype, request.tp)
    return size + index + INDEX_SCALE * -(-index // 128)


def count_blocks(group: CacheGroup, block: int, request: CacheRequest) -> int:
    """The blocks that one request reserves in a layer."""
    if group.longest is None:
        return -(-group.count_tokens(request.context, request.source) // block)
    options = VllmOptions(**request.options)
    in_flight = options.max_num_batched_tokens * options.max_concurrent_batches
    if group.is_chunked:
        return -(-min(group.longest + 1 + in_flight, request.context) // block)
    # A window may begin within a block.
    return -(-min(group.longest + in_flight, request.context) // block) + 1


def count_recurrent_layers(states: Sequence[CacheGroup]) -> int:
    """The number of recurrent layers; a layer may have several convolutions."""
    recurrent = sum(group.layers for group in states if not group.is_convolution)
    return recurrent or sum(group.layers for group in states)


def describe(groups: Sequence[CacheGroup], pool: CachePool, options: VllmOptions) -> tuple[str, ...]:
    sizes = sorted({bucket.block_size for bucket in pool.buckets if not bucket.is_state})
    notes = [f"vLLM allocates blocks of {' and '.join(f'{n:,}' for n in sizes)} tokens"] if sizes else []
    if any(group.longest is not None for group in groups) and options.hybrid_kv_cache_manager:
        notes.append(
            f"sliding windows reserve {options.max_concurrent_batches} × {options.max_num_batched_tokens:,} "
            "more tokens (max_concurrent_batches, max_num_batched_tokens)"
        )
    if sizes and any(bucket.is_state for bucket in pool.buckets):
        number = "two per sequence with prefix caching" if options.prefix_caching else "one per sequence"
        notes.append(f"states are padded to a block, {number}")
    return tuple(notes)


VLLM = Vllm()
