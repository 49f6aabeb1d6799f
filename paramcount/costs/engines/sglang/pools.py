"""The pools of SGLang: bytes per token, tokens of sliding windows, slots of recurrent states.

Source: SGLang 0.5.23, srt/model_executor/pool_configurator.py, srt/mem_cache/kv_cache_configurator.py, memory_pool.py
and srt/configs/model_config.py (is_hybrid_swa_model).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.engines.support import read_classes

PACKED_LATENT = 656  # bytes per token of sparse attention in FP8: 512 FP8 values, 4 scales in FP32, 64 values in BF16
INDEX_SCALE = 4  # bytes per token and 128 values of an indexer, which are in FP8
MTP_DRAFTS = ("EAGLE", "EAGLE3", "NEXTN")  # speculative algorithms whose draft is one layer like those of the model
SLOTS_PER_REQUEST = 3  # recurrent states per running request with a radix cache, which keeps earlier ones
EVICTION_INTERVAL = 128  # tokens after which a window drops what it no longer needs


VERSIONS = (*(f"v0.5.{n}" for n in range(23, -1, -1)), *(f"v0.4.{n}" for n in range(10, -1, -1)))
FIRST_COUNTING_SCALES = (5, 17)  # of latents in FP8, in the bytes by which the pool is sized
FIRST_COUNTING_NPU = (5, 20)  # that an NPU keeps the indexer's keys in BF16


class SglangOptions(NamedTuple):
    """Flags of the server; 0 for what it computes from the GPU."""

    version: str = VERSIONS[0]  # the last of its post releases
    quantization: str = "auto"  # the kernels: awq has none for experts, which it keeps in BF16 (awq/awq.py)
    mem_fraction_static: float = 0.0  # of the memory that is free before loading: weights and pools
    max_total_tokens: int = 0
    max_running_requests: int = 0
    chunked_prefill_size: int = 0  # -1: prompts are not divided
    max_prefill_tokens: int = 16384
    cuda_graph_max_bs: int = 0
    disable_cuda_graph: bool = False
    disable_prefill_cuda_graph: bool = False  # as in versions before graphs of prompts
    page_size: int = 1
    attention_backend: str = "auto"
    disable_radix_cache: bool = False
    swa_full_tokens_ratio: float = 0.8
    disable_hybrid_swa_memory: bool = False
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: int = 0
    enable_dp_attention: bool = False
    dp_size: int = 1
    enable_dp_lm_head: bool = False
    moe_dense_tp_size: int = 0
    moe_a2a_backend: str = "none"
    mm_enable_dp_encoder: bool = False
    cpu_offload_gb: int = 0  # GiB of each GPU's weights that lie on the CPU
    speculative_algorithm: str = "none"
    speculative_num_draft_tokens: int = 0

    @property
    def release(self) -> tuple[int, ...]:
        """(5, 23) for v0.5.23."""
        return tuple(int(n) for n in self.version.removeprefix("v0.").split("."))

    @property
    def attention_replicas(self) -> int:
        """Data-parallel ranks of attention, which have their own requests, caches and attention weights."""
        return self.dp_size if self.enable_dp_attention else 1

    @property
    def drafts_with_layer(self) -> bool:
        """Whether a layer like those of the model drafts tokens, whose cache lies beside the others."""
        return self.speculative_algorithm in MTP_DRAFTS

    @property
    def page(self) -> int:
        """Tokens of a page, which some backends of attention force."""
        allowed = PAGE_SIZES.get(self.attention_backend, ())
        return self.page_size if not allowed or self.page_size in allowed else allowed[-1]


# {backend of attention: the page sizes that it takes}; the last one is taken for others
PAGE_SIZES = {
    "ascend": (128,),
    "cutlass_mla": (128,),
    "fa4": (128,),
    "flashmla": (64,),
    "trtllm_mla": (32, 64),
    "cutedsl_mla": (32, 64),
    "trtllm_mha": (16, 32, 128, 64),
    "dsa": (64,),
}
BACKENDS = ("auto", "aiter", "fa3", "flashinfer", "torch_native", "triton", *PAGE_SIZES)


class Pools(NamedTuple):
    """The pools of one device."""

    full_bytes: int  # of one token in all layers that keep every token
    window_bytes: int  # of one token in all layers with a window
    window: int  # tokens
    page: int
    ratio: Fraction  # tokens of layers with a window for each of the others
    window_tokens: int  # that the running requests need; 0: by the ratio

    @property
    def token_bytes(self) -> Fraction:
        """Bytes of one token in all layers."""
        return self.full_bytes + (Fraction(0) if self.window_tokens else self.ratio) * self.window_bytes

    def count_window_tokens(self, tokens: int) -> int:
        """The tokens of layers with a window if the others hold `tokens`."""
        if not self.window_bytes:
            return 0
        return self.window_tokens or align_down(int(tokens * self.ratio), self.page)

    def count_bytes(self, tokens: int) -> int:
        """Bytes of pools for so many tokens: each has a page for padding, and a window fits into its own."""
        if self.window_bytes and not self.window_tokens:
            least = align_up(self.window + self.page, self.page) + self.page
            tokens = max(tokens, align_up(-int(-least // self.ratio), self.page))
        size = (tokens + self.page) * self.full_bytes
        return size + (self.count_window_tokens(tokens) + self.page) * self.window_bytes

    def count_tokens(self, available_bytes: int) -> int:
        """The tokens for which so many bytes suffice; padding is taken from elsewhere."""
        rest = available_bytes - self.window_tokens * self.window_bytes
        return align_down(max(0, int(rest // self.token_bytes)), self.page) if self.token_bytes else 0


def make_pools(
    groups: Sequence[CacheGroup], request: CacheRequest, options: SglangOptions, *, is_budget: bool = False
) -> Pools:
    """The pools of the attention layers. `is_budget`: with the bytes of a token by which the version sizes them."""
    attention = [group for group in groups if group.stream == "tokens"]
    has_window_pool = request.reference in read_classes("sglang_windows") and not options.disable_hybrid_swa_memory
    windows = [group for group in attention if group.longest is not None and has_window_pool]
    full = [group for group in attention if group not in windows]
    if not full:
        full, windows = windows, []
    count = count_budget_bytes if is_budget else count_token_bytes
    sizes = [group.layers * count(group, request, options) for group in full]
    n_layers = sum(group.layers for group in attention)
    full_bytes = sum(sizes)
    if options.drafts_with_layer and full and not request.has_draft:
        full_bytes += full_bytes // (sum(group.layers for group in full) if windows else n_layers)
    window = max((group.longest + 1 for group in windows if group.longest is not None), default=0)
    return Pools(
        full_bytes=full_bytes,
        window_bytes=sum(group.layers * count(group, request, options) for group in windows),
        window=window,
        page=options.page,
        ratio=Fraction(str(options.swa_full_tokens_ratio)),
        window_tokens=count_request_windows(window, options) if windows else 0,
    )


def count_token_bytes(group: CacheGroup, request: CacheRequest, options: SglangOptions) -> int:
    """Bytes of one token in one layer."""
    if len(group.shapes) < 3 or not group.expanded:
        return -(-group.count_bytes(request.kv_dtype, request.tp) // group.block)
    # Sparse attention with an indexer, whose keys are in FP8 except on NPUs.
    latent, index = group._replace(shapes=group.shapes[:2]), prod(group.shapes[2])
    size = latent.count_bytes(request.kv_dtype, request.tp)
    if options.attention_backend == "ascend":
        return size + request.kv_dtype.keys.count_bytes(index)
    is_packed = request.kv_dtype.keys.name == "fp8" and not options.attention_backend.startswith("trtllm")
    return (PACKED_LATENT if is_packed else size) + count_index_bytes(index)


def count_index_bytes(index: int) -> int:
    """Bytes of an indexer's keys in FP8, with their scales."""
    return index + INDEX_SCALE * -(-index // 128)


def count_budget_bytes(group: CacheGroup, request: CacheRequest, options: SglangOptions) -> int:
    """Bytes of one token in one layer by which the pool is sized: those that it takes, except in earlier versions.

    Source: model_runner_kv_cache_mixin.py of 0.5.9 (get_cell_size_per_token), pool_configurator.py of 0.5.16 to 0.5.20.
    """
    first = FIRST_COUNTING_NPU if options.attention_backend == "ascend" else FIRST_COUNTING_SCALES
    if len(group.shapes) < 3 or not group.expanded or options.release >= first:
        return count_token_bytes(group, request, options)
    latent = group._replace(shapes=group.shapes[:2])
    return latent.count_bytes(request.kv_dtype, request.tp) + count_index_bytes(prod(group.shapes[2]))


def count_request_windows(window: int, options: SglangOptions) -> int:
    """The tokens of windows that the running requests need at most; 0 if the ratio of the pools decides.

    Without a radix cache and with a limit of requests, nothing else lies in these pools (compute_swa_request_cap).
    """
    chunk = options.chunked_prefill_size
    if not (options.disable_radix_cache and options.max_running_requests and chunk > 0):
        return 0
    page, drafts = options.page, max(1, options.speculative_num_draft_tokens)
    per_request = window + EVICTION_INTERVAL * drafts + 2 * page
    requests = max(1, options.max_running_requests // options.attention_replicas)
    return align_up(per_request * requests + 2 * chunk + page, page)


class Slots(NamedTuple):
    """How many recurrent states are kept."""

    fixed: int  # 0: as many as their share of the memory allows
    per_request: int
    drafted: int  # states that each running request keeps for drafted tokens


def count_slots(options: SglangOptions) -> Slots:
    """The slots of recurrent states on one device."""
    replicas = options.attention_replicas
    drafted = options.speculative_num_draft_tokens
    if options.max_mamba_cache_size:
        fixed = options.max_mamba_cache_size // replicas
    elif options.disable_radix_cache and options.max_running_requests:
        fixed = max(1, options.max_running_requests // replicas)
    else:
        fixed = 0
    return Slots(fixed, 1 if options.disable_radix_cache else SLOTS_PER_REQUEST, drafted)


def align_up(n: int, page: int) -> int:
    return -(-n // page) * page


def align_down(n: int, page: int) -> int:
    return n // page * page
