"""What SGLang allocates: pools of the KV cache and of recurrent states, in a share of the memory (mem_fraction_static).

That share of what is free before loading holds weights and pools. The rest is for activations and CUDA graphs.

Source: SGLang 0.5.23, srt/arg_groups/memory_hook.py (the default of the share), srt/mem_cache/kv_cache_configurator.py
(_profile_available_bytes, _handle_max_mamba_cache), srt/configs/mamba_utils.py (dtypes of states) and
srt/layers/vocab_parallel_embedding.py (vocabulary).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paramcount.costs.caches import CacheGroup
from paramcount.costs.devices import Overhead
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.command_line import join_command
from paramcount.costs.engines.engine import BF16, F32, Engine, is_latent
from paramcount.costs.engines.records import Allocation, CacheRequest, Share, Support
from paramcount.costs.engines.sglang.pools import BACKENDS, VERSIONS, Pools, SglangOptions, count_slots, make_pools
from paramcount.costs.engines.sglang.reserve import estimate_reserve
from paramcount.costs.engines.sglang.weights import load_rows, share_rows, store_draft
from paramcount.costs.engines.support import find_sglang_support
from paramcount.costs.sharding import Parallelism, ShardShape, compute_once
from paramcount.errors import ParamcountError
from paramcount.output.numbers import format_bytes

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment
    from paramcount.zoo import Model

SPECULATIVE = ("none", "EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH")


class Sglang(Engine):
    """One pool for layers that keep every token, one for windows, and slots for states."""

    name = "sglang"
    options = MappingProxyType(SglangOptions()._asdict())
    choices = MappingProxyType(
        {
            "version": VERSIONS,
            "attention_backend": BACKENDS,
            "quantization": ("auto", "awq", "awq_marlin"),
            "moe_a2a_backend": ("none", "deepep", "mooncake", "ascend_fuseep", "flashinfer"),
            "speculative_algorithm": SPECULATIVE,
        }
    )
    least = MappingProxyType({"chunked_prefill_size": -1})
    runs_on_apple = False

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        """Pools that hold the sequences, each in whole pages; with data-parallel attention, those of one rank."""
        options = SglangOptions(**request.options)
        request = divide_requests(request, options)
        pools = make_pools(groups, request, options)
        tokens = request.batch * -(-request.context // pools.page) * pools.page
        kv_bytes = pools.count_bytes(tokens) if pools.token_bytes else 0
        kv_bytes += request.batch * count_source_bytes(groups, request)
        state_bytes = 0
        if per_request := self.count_state_bytes(groups, request):
            slots = count_slots(options)
            n = slots.fixed or request.batch * slots.per_request
            state_bytes = per_request * (n + 1 + (request.batch + 1) * slots.drafted)
            if not slots.fixed and kv_bytes:  # states and the other pools share the memory by a ratio
                ratio = Fraction(str(options.mamba_full_memory_ratio))
                kv_bytes, state_bytes = max(kv_bytes, int(state_bytes / ratio)), max(state_bytes, int(kv_bytes * ratio))
        return Allocation(kv_bytes, state_bytes, describe(pools, options, has_states=bool(per_request)))

    def count_tokens(self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int) -> int:
        """The log's max_total_num_tokens: those of one data-parallel rank of attention."""
        options = SglangOptions(**request.options)
        request = divide_requests(request, options)
        pools = make_pools(groups, request, options, is_budget=True)
        rest = available_bytes - self.count_states(groups, request, available_bytes)
        tokens = pools.count_tokens(rest)
        return min(tokens, options.max_total_tokens // pools.page * pools.page) if options.max_total_tokens else tokens

    def count_states(self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int) -> int:
        """Bytes of the slots for recurrent states if so many bytes are there for all pools."""
        options = SglangOptions(**request.options)
        size = self.count_state_bytes(groups, request)
        if not size:
            return 0
        slots = count_slots(options)
        n, running = slots.fixed, max(1, options.max_running_requests // options.attention_replicas)
        if not n:
            ratio = Fraction(str(options.mamba_full_memory_ratio))
            budget = max(0, int(available_bytes * ratio / (1 + ratio)))
            if slots.drafted:
                n = int(
                    (budget - size * (1 + slots.drafted)) // (size * (1 + Fraction(slots.drafted, slots.per_request)))
                )
            else:
                n = budget // size - 1
        drafting = min(running, max(n, 0) // slots.per_request) + 1 if slots.drafted else 0
        return size * (max(n, 0) + 1 + drafting * slots.drafted)

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        """Convolutions are in BF16; other states as the config says, otherwise in FP32 (mamba_ssm_dtype)."""
        return BF16 if state.is_convolution else request.config_state_dtype or F32

    def find_support(self, model: Model, groups: Sequence[CacheGroup], options: Mapping[str, Any]) -> Support:
        return find_sglang_support(model, groups)

    def loads_mtp(self, request: CacheRequest) -> bool:
        """If nothing else drafts."""
        return not request.has_draft and SglangOptions(**request.options).speculative_algorithm in ("EAGLE", "NEXTN")

    def check_parallelism(self, shape: ShardShape, parallel: Parallelism) -> None:
        super().check_parallelism(shape, parallel)
        if parallel.ep > parallel.tp:
            found = f"= {parallel.ep} exceeds tp = {parallel.tp}, but SGLang divides experts among those GPUs"
            raise ParamcountError(found, where="ep", expected=f"at most {parallel.tp}")

    def share_weights(self, deployment: Deployment) -> tuple[int, ...]:
        options, parallel = SglangOptions(**deployment.request.options), deployment.parallel
        rows = [*deployment.rows]
        if self.loads_mtp(deployment.request):
            rows += store_draft(deployment.model)
        key = (self.name, parallel, deployment.request.has_draft, *sorted(deployment.request.options.items()))
        return compute_once(
            deployment.rows,
            key,
            lambda: share_rows(load_rows(rows, options, parallel), deployment.shape, parallel, options),
        )

    def measure(self, deployment: Deployment) -> tuple[Share, ...]:
        """The share of one GPU of each stage, and with cpu_offload_gb that of the CPU."""
        options, shares, offloaded = SglangOptions(**deployment.request.options), [], 0
        if deployment.parallel.tp % options.attention_replicas:
            found = f"= {options.dp_size} does not divide tp = {deployment.parallel.tp}"
            raise ParamcountError(found, where="dp_size")
        for share in super().measure(deployment):
            moved = min(options.cpu_offload_gb * 2**30, share.weights_bytes)
            offloaded += moved * share.devices
            share = share._replace(weights_bytes=share.weights_bytes - moved)
            shares.append(share._replace(overhead=estimate_reserve(deployment, options, share)))
        if offloaded:
            shares.append(
                Share(len(shares), 0, offloaded, 0, 0, Overhead(0, 0, 0), None, extras=("offloaded weights",))
            )
        return tuple(shares)

    def count_replicas(self, request: CacheRequest, parallel: Parallelism) -> int:
        return SglangOptions(**request.options).attention_replicas

    def replicate_attention(self, deployment: Deployment) -> Iterator[Deployment]:
        """With MLA, whose latent every tensor-parallel GPU would cache for all requests: a rank on each GPU, as in the
        cookbook of DeepSeek-V3 (--tp 8 --dp 8 --enable-dp-attention)."""
        request, devices = deployment.request, deployment.parallel.devices
        if devices > 1 and is_latent(deployment) and "dp_size" not in request.options:
            options = {**request.options, "enable_dp_attention": True, "dp_size": devices}
            yield deployment._replace(request=request._replace(options=options), parallel=Parallelism(tp=devices))

    def list_groups(self, deployment: Deployment) -> list[tuple[CacheGroup, ...]]:
        return [*super().list_groups(deployment), ()]

    def describe_available(
        self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int
    ) -> tuple[str, ...]:
        """What the log prints of the pools of sliding windows and of recurrent states."""
        options, notes = SglangOptions(**request.options), []
        tokens = self.count_tokens(groups, request, available_bytes)
        request = divide_requests(request, options)
        pools = make_pools(groups, request, options)
        if pools.window_bytes:
            notes.append(f"full_layer_tokens={tokens:,}, swa_layer_tokens={pools.count_window_tokens(tokens):,}")
        if size := self.count_state_bytes(groups, request):
            states = self.count_states(groups, request, available_bytes)
            drafted = (
                "with those for drafted tokens" if count_slots(options).drafted else f"{states // size - 1:,} slots"
            )
            notes.append(f"recurrent states take {format_bytes(states)}: {drafted} of {size:,} bytes")
        return tuple(notes)

    def write_command(self, deployment: Deployment, name: str) -> str:
        """`python -m sglang.launch_server`. Flags that are options of the engine are those that are given."""
        request, parallel = deployment.request, deployment.parallel
        dtype = request.kv_dtype.keys.name
        flags: dict[str, object] = {
            "--tp-size": parallel.tp if parallel.tp > 1 else None,
            "--pp-size": parallel.pp if parallel.pp > 1 else None,
            "--ep-size": parallel.ep if parallel.ep > 1 else None,
            "--context-length": request.context,
            "--max-running-requests": request.batch,
            "--kv-cache-dtype": {"fp8": "fp8_e4m3", "fp4": "fp4_e2m1", "mxfp8": "mxfp8"}.get(dtype),
        }
        flags |= {"--" + name.replace("_", "-"): value for name, value in request.options.items() if name != "version"}
        if deployment.draft:
            flags.setdefault("--speculative-algorithm", "STANDALONE")  # of a whole model
            flags["--speculative-draft-model-path"] = deployment.draft.place
        return join_command("python -m sglang.launch_server --model-path", name, flags)


def divide_requests(request: CacheRequest, options: SglangOptions) -> CacheRequest:
    """The requests of one data-parallel rank of attention, which fewer GPUs share."""
    replicas = options.attention_replicas
    return request._replace(tp=max(1, request.tp // replicas), batch=-(-request.batch // replicas))


def count_source_bytes(groups: Sequence[CacheGroup], request: CacheRequest) -> int:
    """Bytes of caches whose length is that of another input, for one sequence."""
    others = [group for group in groups if group.stream not in ("tokens", "")]
    return sum(
        group.layers * group.count_tokens(0, request.source) * group.count_bytes(request.kv_dtype, request.tp)
        for group in others
    )


def describe(pools: Pools, options: SglangOptions, *, has_states: bool) -> tuple[str, ...]:
    notes = []
    if pools.page > 1:
        notes.append(f"SGLang allocates pages of {pools.page:,} tokens")
    if pools.window_bytes:
        share = f"{options.swa_full_tokens_ratio:g} × the tokens of the others (swa_full_tokens_ratio)"
        held = f"{pools.window_tokens:,} tokens" if pools.window_tokens else share
        notes.append(f"the pool of sliding windows holds {held}")
    if has_states:
        slots = count_slots(options)
        ratio = f"{options.mamba_full_memory_ratio:g} × the KV cache (mamba_full_memory_ratio)"
        number = f"{slots.fixed:,} slots" if slots.fixed else f"{ratio}, {slots.per_request} slots per request"
        notes.append(f"recurrent states take {number}")
    if options.attention_replicas > 1:
        notes.append(f"each of {options.attention_replicas} data-parallel ranks of attention holds its own requests")
    elif options.dp_size > 1:
        notes.append("dp_size without enable_dp_attention starts copies on other GPUs, which are not included")
    return tuple(notes)


SGLANG = Sglang()
