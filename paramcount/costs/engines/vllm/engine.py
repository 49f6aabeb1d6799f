"""What vLLM keeps on each GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paramcount.costs.caches import CacheGroup
from paramcount.costs.devices import Overhead
from paramcount.costs.dtypes import KVDtype, parse_kv_dtype
from paramcount.costs.engines.command_line import join_command
from paramcount.costs.engines.engine import BF16, F32, Engine, is_latent
from paramcount.costs.engines.records import Allocation, CacheRequest, Share, Support
from paramcount.costs.engines.support import find_vllm_support
from paramcount.costs.engines.vllm.loading import share_loaded
from paramcount.costs.engines.vllm.options import CHOICES, VllmOptions, complete_options
from paramcount.costs.engines.vllm.overhead import add_graphs_beside, estimate_overhead, warn_of_graphs
from paramcount.costs.engines.vllm.pool import (
    LAST_POOL_TOKENS,
    CachePool,
    count_pool_tokens,
    describe_available,
    describe_pool,
    describe_refusal,
    plan_pool,
)
from paramcount.costs.sharding import Parallelism, compute_once
from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment
    from paramcount.zoo import Model


# Minor version up to which a request may take all blocks; later ones keep one that holds nothing.
LAST_WITHOUT_EMPTY_BLOCK = 25
FIRST_092 = 20  # minor version whose default utilization is 0.92


class Vllm(Engine):
    """Source: vLLM 0.33.0; what each file of this package follows stands at its top."""

    name = "vllm"
    options = MappingProxyType(VllmOptions()._asdict())
    choices = CHOICES
    utilization = 0.92
    runs_on_apple = False

    def check_options(self, given: Mapping[str, object]) -> None:
        """Raises: ParamcountError for an unknown option and for a wrong value."""
        super().check_options(given)
        share = given.get("gpu_memory_utilization", 1)
        if isinstance(share, (int, float)) and share > 1:
            raise ParamcountError(f"= {share}", where="gpu_memory_utilization", expected="above 0, at most 1")

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        """One pool of blocks for all layers; one more block holds nothing."""
        pool = self.plan_pool(groups, request)
        if pool is None:
            return Allocation(0, 0)
        options, unit = complete_options(request), pool.block_bytes
        empty = unit if options.minor > LAST_WITHOUT_EMPTY_BLOCK else 0
        kv_bytes, state_bytes = (request.batch * unit * pool.count_blocks(is_state=kind) for kind in (False, True))
        if kv_bytes:
            kv_bytes += empty
        else:
            state_bytes += empty
        notes = [*describe_pool(groups, pool, options), *self.describe_assumption(groups, request)]
        return Allocation(kv_bytes, state_bytes, tuple(notes), unit, empty)

    def describe_assumption(self, groups: Sequence[CacheGroup], request: CacheRequest) -> list[str]:
        """What is assumed of the dtype of states if neither the config nor the user names it."""
        named = request.options.get("mamba_ssm_cache_dtype", "auto") != "auto" or request.state_dtype
        others = [group for group in groups if group.is_state and not group.is_convolution]
        if named or request.config_state_dtype or all(group.decays_per_channel for group in others):
            return []
        return ["states in BF16, as for a config.json without mamba_ssm_dtype; change it with mamba_ssm_cache_dtype"]

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        """Convolutions are in the dtype of the model; other states as the config says, or in FP32 if channels decay."""
        if state.is_convolution:
            return BF16
        named = request.options.get("mamba_ssm_cache_dtype", "auto")
        if named != "auto":
            return parse_kv_dtype(named)
        return request.config_state_dtype or (F32 if state.decays_per_channel else BF16)

    def plan_pool(self, groups: Sequence[CacheGroup], request: CacheRequest) -> CachePool | None:
        """The blocks of all layers; None if nothing is cached."""
        options = complete_options(request)
        if options.speculative_method == "mtp":
            groups = add_mtp_layer(groups)
        n = options.num_speculative_tokens
        if n:  # a convolution then keeps the inputs of the draft tokens, too
            groups = [widen(group, n) if group.is_convolution else group for group in groups]
        return plan_pool(groups, request, self.count_state_bytes(groups, request))

    def find_support(self, model: Model, groups: Sequence[CacheGroup], options: Mapping[str, Any]) -> Support:
        return find_vllm_support(model, groups, VllmOptions(**options).minor)

    def loads_mtp(self, request: CacheRequest) -> bool:
        return complete_options(request).speculative_method == "mtp"

    def share_weights(self, deployment: Deployment) -> tuple[int, ...]:
        options = complete_options(deployment.request)
        key = ("vllm", deployment.parallel, deployment.device.name, options, deployment.limit)
        return compute_once(deployment.rows, key, lambda: share_loaded(deployment))

    def count_tokens(self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int) -> int:
        """What the version prints as the size of the KV cache."""
        options, pool = complete_options(request), self.plan_pool(groups, request)
        if pool is None or options.minor > LAST_POOL_TOKENS:
            return super().count_tokens(groups, request, available_bytes)
        return count_pool_tokens(pool, max(0, available_bytes) // pool.block_bytes, options)

    def describe_available(
        self, groups: Sequence[CacheGroup], request: CacheRequest, available_bytes: int
    ) -> tuple[str, ...]:
        check_context_parallelism(complete_options(request), request.tp)
        pool = self.plan_pool(groups, request)
        return () if pool is None else describe_available(pool, request, available_bytes)

    def estimate_overhead(self, deployment: Deployment, stage: int) -> Overhead:
        return estimate_overhead(deployment, stage)

    def measure(self, deployment: Deployment) -> tuple[Share, ...]:
        """The share of one device of each stage; a cache whose bytes are given has these at least."""
        options = complete_options(deployment.request)
        check_context_parallelism(options, deployment.parallel.tp)
        if (replicas := self.count_replicas(deployment.request, deployment.parallel)) > 1:
            deployment = deployment.change(batch=-(-deployment.request.batch // replicas))
        shares = tuple(add_graphs_beside(share, deployment, options) for share in super().measure(deployment))
        size = self.find_cache_limit(deployment.request)
        if size is None:
            return shares
        return tuple(
            share._replace(kv_cache_bytes=max(share.kv_cache_bytes, size - share.state_bytes)) for share in shares
        )

    def count_replicas(self, request: CacheRequest, parallel: Parallelism) -> int:
        """Those of `--data-parallel-size`, whose experts are divided among all GPUs."""
        return -(-parallel.ep // parallel.tp)

    def replicate_attention(self, deployment: Deployment) -> Iterator[Deployment]:
        """With MLA, whose latent every tensor-parallel GPU would cache for all requests: a rank on each GPU, as in the
        recipe of DeepSeek-V3 (--data-parallel-size 8 --enable-expert-parallel)."""
        devices = deployment.parallel.devices
        if devices > 1 and deployment.shape.n_experts and is_latent(deployment):
            yield deployment._replace(parallel=Parallelism(ep=devices))

    def find_cache_limit(self, request: CacheRequest) -> int | None:
        return complete_options(request).kv_cache_memory_bytes or None

    def warn(self, deployment: Deployment) -> tuple[str, ...]:
        """What keeps the engine from starting although everything fits."""
        options = complete_options(deployment.request)
        request = deployment.request._replace(tp=deployment.parallel.tp)
        measured = deployment.measure()
        for groups, share in zip(deployment.list_stages(), measured.shares):
            pool = self.plan_pool(groups, request)
            room = measured.find_room(share)
            if pool is not None and (found := describe_refusal(pool, max(0, room) // pool.block_bytes, options)):
                return tuple(found)
        return tuple(warn_of_graphs(deployment, options))

    def choose_utilization(self, options: Mapping[str, Any]) -> float:
        chosen = VllmOptions(**options)
        if chosen.kv_cache_memory_bytes:  # which takes the place of the share
            return 1.0
        default = 0.9 if chosen.minor < FIRST_092 else self.utilization
        return float(options.get("gpu_memory_utilization", default))

    def write_command(self, deployment: Deployment, name: str) -> str:
        """`vllm serve`. Experts are divided among the tensor-parallel GPUs, and those of further replicas of the rest.

        Source: engine/arg_utils.py.
        """
        request, parallel, utilization = deployment.request, deployment.parallel, deployment.device.utilization
        options = request.options
        keys, replicas = request.kv_dtype.keys.name, self.count_replicas(request, parallel)
        flags: dict[str, object] = {
            "--tensor-parallel-size": parallel.tp if parallel.tp > 1 else None,
            "--pipeline-parallel-size": parallel.pp if parallel.pp > 1 else None,
            "--data-parallel-size": replicas if replicas > 1 else None,
            "--enable-expert-parallel": parallel.ep > 1,
            "--max-model-len": request.context,
            "--max-num-seqs": options.get("max_num_seqs") or -(-request.batch // replicas),  # of each
            "--kv-cache-dtype": keys if keys == "fp8" else None,
            "--gpu-memory-utilization": None if utilization == self.utilization else utilization,
            "--block-size": options.get("block_size"),
            "--max-num-batched-tokens": options.get("max_num_batched_tokens"),
            "--no-enable-prefix-caching": options.get("enable_prefix_caching") is False,
            "--disable-hybrid-kv-cache-manager": options.get("disable_hybrid_kv_cache_manager"),
            "--enforce-eager": options.get("enforce_eager"),
            "--kv-cache-memory-bytes": options.get("kv_cache_memory_bytes"),
            "--decode-context-parallel-size": options.get("decode_context_parallel_size"),
            "--mm-encoder-tp-mode": options.get("mm_encoder_tp_mode"),
            "--language-model-only": options.get("language_model_only"),
            "--runner": options.get("runner"),
            "--moe-backend": options.get("moe_backend"),
        }
        if deployment.draft:
            flags["--speculative-config"] = self.write_draft(deployment.draft.place, options)
        return join_command("vllm serve", name, flags)

    def write_draft(self, name: str, options: Mapping[str, Any]) -> str:
        """The settings of a draft model, which have no number of tokens by default (config/speculative.py)."""
        n = options.get("num_speculative_tokens")
        if not n:
            raise ParamcountError("= 0", where="num_speculative_tokens", expected="at least 1 with a draft model")
        return json.dumps({"model": name, "num_speculative_tokens": n})


def check_context_parallelism(options: VllmOptions, tp: int) -> None:
    """Raises: ParamcountError if the tensor-parallel GPUs cannot divide the tokens of the cache like this."""
    n = options.decode_context_parallel_size
    if tp % n:
        found = f"= {n} does not divide the {tp} tensor-parallel GPUs"
        choices = [size for size in range(1, tp + 1) if tp % size == 0]
        raise ParamcountError(found, where="decode_context_parallel_size", choices=choices)


def add_mtp_layer(groups: Sequence[CacheGroup]) -> list[CacheGroup]:
    """The same with one more layer that keeps all tokens: MTP layers attend like those."""
    found = list(groups)
    for i, group in enumerate(found):
        if group.grows:
            found[i] = group._replace(layers=group.layers + 1)
            break
    return found


def widen(convolution: CacheGroup, n: int) -> CacheGroup:
    """A convolution that keeps `n` more inputs."""
    return convolution._replace(shapes=tuple((channels, width + n) for channels, width in convolution.shapes))


VLLM = Vllm()
