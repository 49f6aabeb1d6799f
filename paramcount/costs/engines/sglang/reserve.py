"""What SGLang leaves to activations and CUDA graphs, and what a process takes before it loads a model.

Source: SGLang 0.5.23, srt/arg_groups/memory_hook.py (handle_gpu_memory_settings, reserve_for_graph_mb,
reserve_for_deepep_a2a_mb, adjust_mem_fraction_for_vlm) and cuda_graph_hook.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from paramcount.costs.devices import Overhead
from paramcount.costs.engines.engine import is_latent, share_formats
from paramcount.costs.engines.sglang.pools import SglangOptions
from paramcount.costs.sharding import compute_once, find_decoder
from paramcount.formats.weights import list_padded_labels

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment
    from paramcount.costs.engines.records import Share

MIB, GIB = 2**20, 2**30


class Tier(NamedTuple):
    """Defaults of a size of GPU."""

    below: int  # MiB
    chunk: int  # chunked_prefill_size
    graphs: int  # cuda_graph_max_bs
    graphs_of_4: int  # with tensor parallelism over 4 or more GPUs


TIERS = (
    Tier(20 * 1024, 2048, 8, 8),
    Tier(35 * 1024, 4096, 48, 160),
    Tier(60 * 1024, 4096, 32, 160),
    Tier(160 * 1024, 8192, 256, 512),
)
# Up to version 0.4.7: the share by the number of GPUs, chunks of 2,048 or 8,192 tokens, graphs of 8, 80 or 160
# sequences.
LAST_BY_GPUS = (4, 7)
EARLY_FRACTIONS = {16: 0.79, 8: 0.81, 4: 0.85, 2: 0.87, 1: 0.88}
EARLY_TIERS = (Tier(25_000, 2048, 8, 80), Tier(2**31, 8192, 160, 160))
LARGEST = Tier(2**31, 16384, 512, 512)


class Range(NamedTuple):
    """Bytes that are measured."""

    usual: int
    least: int
    most: int


# Of the memory that a driver reports, what is not free before loading: "Load weight begin. avail mem", or the sum of
# "avail mem" and "mem usage" of "Load weight end". 0.4 to 1.1 GiB of one GPU and of GPUs without NVLink, 2.3 to 2.8 GiB
# of several larger ones, where NCCL takes more (tests/data/logged/sglang.csv).
RUNTIME = Range(GIB, GIB // 3, 3 * GIB // 2)
RUNTIME_OF_SEVERAL = Range(9 * GIB // 4, 3 * GIB // 4, 7 * GIB // 2)
LARGE = 60 * GIB
# Graphs and workspaces of attention: 0.1 to 1.6 GiB on CUDA by the same logs.
GRAPHS = Range(3 * GIB // 2, GIB // 4, 5 * GIB // 2)
# AITER's attention, the default on AMD GPUs: a workspace in FP32 for each running request, head and 256 tokens of the
# context, allocated after the pools; beyond 8,192 tokens the share of the memory is smaller. Source:
# layers/attention/aiter_backend.py, arg_groups/attention_hook.py, kv_cache_configurator.py (resolve_max_num_reqs).
AITER, AITER_SHARE, AITER_LONG, AITER_TOKENS = "aiter", 0.85, 8192, 256
FEWEST_REQUESTS, MOST_REQUESTS, REQUESTS_PER_CONTEXT = 2048, 4096, 512
ALL_TO_ALL = Range(4 * GIB, 0, 8 * GIB)  # buffers of DeepEP, captured with the graphs
VALUE, F32 = 2, 4  # bytes
PADDED_DIVISOR = 4
INNER = ("mlp.up", "mlp.gate", "shared_experts.up")


def estimate_reserve(deployment: Deployment, options: SglangOptions, share: Share) -> Overhead:
    """What is not for weights and pools on a device, of which those of the share are needed.

    The pools fill the whole share of the memory, however little is needed. If activations and graphs then take more
    than the rest, the server ends out of memory.
    """
    device, parallel, size = deployment.device, deployment.parallel, share.total_bytes
    if device.overhead_bytes is not None:
        return Overhead(device.overhead_bytes, device.overhead_bytes, device.overhead_bytes)
    has_links = parallel.devices > 1 and device.memory_bytes > LARGE
    runtime = RUNTIME_OF_SEVERAL if has_links else RUNTIME
    options = resolve_options(options, device.memory_bytes // MIB, parallel.tp)
    fraction = options.mem_fraction_static or compute_fraction(deployment, options)
    if uses_aiter(deployment, options) and deployment.request.context > AITER_LONG:
        fraction *= AITER_SHARE
    free = [device.budget_bytes - own for own in runtime]
    static = [int(fraction * n) for n in free]
    workspaces = [count_workspace(deployment, options, share, n) for n in static]
    needs = [need + n for need, n in zip(estimate_needs(deployment, options), workspaces)]
    outside = [n - pools for n, pools in zip(free, static)]  # with pools as large as is needed
    full = [  # with pools that fill the share
        own + need + (0 if options.max_total_tokens else max(0, pools - size))
        for own, need, pools in zip(runtime, needs, static)
    ]
    is_short = [need > rest for need, rest in zip(needs, outside)]
    usual, least, most = (
        total if short else own + max(need, rest)
        for total, short, own, need, rest in zip(full, (is_short[1], *is_short[1:]), runtime, needs, outside)
    )
    most += share_padding(deployment)
    if not options.mem_fraction_static:
        least = min(least, runtime.least + outside[1] // 2)  # other versions leave half as much
    rest = usual - runtime.usual - workspaces[0]
    items = [("CUDA context and NCCL", runtime.usual), ("activations and CUDA graphs", rest)]
    if workspaces[0]:
        items.append(("attention workspace", workspaces[0]))
    return Overhead(usual, min(usual, least), max(usual, most), tuple(items))


def uses_aiter(deployment: Deployment, options: SglangOptions) -> bool:
    """Whether attention runs with AMD's kernels."""
    is_default = options.attention_backend == "auto" and deployment.device.name.startswith("Instinct")
    return options.attention_backend == AITER or is_default


def count_workspace(deployment: Deployment, options: SglangOptions, share: Share, static: int) -> int:
    """Bytes of AITER's workspace if weights and pools take `static` bytes; latents (MLA) need none."""
    if not uses_aiter(deployment, options) or is_latent(deployment):
        return 0
    request, width = deployment.request, max(1, deployment.parallel.tp // options.attention_replicas)
    requests = options.max_running_requests // options.attention_replicas
    if not requests:
        pooled = request.batch * max(0, static - share.fixed_bytes) / max(1, share.kv_cache_bytes)
        requests = int(max(FEWEST_REQUESTS, min(pooled * REQUESTS_PER_CONTEXT, MOST_REQUESTS)))
    heads, language = deployment.shape.n_heads, find_decoder(deployment.model.sizes)[1]
    d_head = getattr(language, "d_head", 0) or getattr(language, "d_model", 0) // max(1, heads)
    return F32 * requests * -(-heads // width) * -(-request.context // AITER_TOKENS) * (d_head + 2)


def share_padding(deployment: Deployment) -> int:
    """Bytes that weights in formats with padded kernels may take more: a quarter.

    DeepSeek-V4-Pro takes 125.65 GiB of each of 8 GPUs, a quarter more than its files
    (https://github.com/SemiAnalysisAI/InferenceX/issues/2128).
    """
    return max(share_formats(deployment, frozenset({*list_padded_labels(), "FP4"}))) // PADDED_DIVISOR


def estimate_needs(deployment: Deployment, options: SglangOptions) -> Range:
    """What activations and CUDA graphs take."""
    chunk = options.chunked_prefill_size if options.chunked_prefill_size > 0 else options.max_prefill_tokens
    key = ("activations", deployment.parallel)
    (per_token,) = compute_once(deployment.rows, key, lambda: (count_activations(deployment),))
    activations = chunk * per_token
    least, usual, most = activations // 2, activations, 2 * activations
    graphs = Range(0, 0, 0) if options.disable_cuda_graph else GRAPHS
    if options.moe_a2a_backend != "none":
        graphs = Range(*(n + extra for n, extra in zip(graphs, ALL_TO_ALL)))
    images = int((1 - find_vision_factor(deployment)) * deployment.device.memory_bytes)
    return Range(usual + graphs.usual, least + graphs.least, most + graphs.most + max(0, images))


def count_activations(deployment: Deployment) -> int:
    """Bytes per token of a prompt in the layer that takes most: the residual, its norms, and an MLP's or the experts'
    inner values; of experts also the results of each before they are summed."""
    parallel, rows = deployment.parallel, deployment.rows
    hidden = max((row.tensor.shape[-1] for row in rows if row.tensor.component == "embedding"), default=0)
    inner = max((row.tensor.shape[0] for row in rows if row.tensor.component in INNER), default=4 * hidden)
    per_expert = max((row.tensor.shape[-2] for row in rows if row.tensor.component == "experts.up"), default=0)
    active = getattr(find_decoder(deployment.model.sizes)[1], "n_active_experts", 0) if per_expert else 0
    of_experts = active * (3 * per_expert // (1 if parallel.ep > 1 else parallel.tp) + hidden)
    return VALUE * (6 * hidden + max(3 * inner // parallel.tp, of_experts))


def resolve_options(options: SglangOptions, memory_mib: int, tp: int) -> SglangOptions:
    """The options with the defaults that follow from the GPU."""
    tiers = EARLY_TIERS if options.release <= LAST_BY_GPUS else TIERS
    tier = next((tier for tier in tiers if memory_mib < tier.below), LARGEST)
    graphs = options.cuda_graph_max_bs or (tier.graphs if tp < 4 else tier.graphs_of_4)
    if not options.cuda_graph_max_bs and options.max_running_requests:
        graphs = min(graphs, options.max_running_requests)
    return options._replace(chunked_prefill_size=options.chunked_prefill_size or tier.chunk, cuda_graph_max_bs=graphs)


def count_reserve(deployment: Deployment, options: SglangOptions) -> int:
    """MiB that SGLang leaves to activations and graphs, without the minimum for large GPUs.

    Its own rule: 1.5 MiB per token of a prompt's chunk, 2 MiB per sequence of the largest graph.
    """
    parallel, graphs = deployment.parallel, options.cuda_graph_max_bs
    chunk = options.chunked_prefill_size if options.chunked_prefill_size > 0 else options.max_prefill_tokens
    reserve = 512 + 1.5 * max(chunk, 2048) + parallel.tp * parallel.pp / 8 * 1024
    if not options.disable_cuda_graph:
        reserve += 2 * graphs
    if options.attention_replicas > 1:
        reserve += graphs * options.attention_replicas * (4.5 if graphs > 300 else 3)
    if not (options.disable_cuda_graph or options.disable_prefill_cuda_graph):
        reserve += 1536 if is_latent(deployment) else 8 * count_prefill_graphs(max(chunk, 0))
    return int(reserve)


def compute_fraction(deployment: Deployment, options: SglangOptions) -> float:
    """The default of mem_fraction_static."""
    memory, parallel = deployment.device.memory_bytes // MIB, deployment.parallel
    if options.release <= LAST_BY_GPUS:
        return compute_early_fraction(memory, parallel.tp * parallel.pp)
    reserve = float(count_reserve(deployment, options))
    if memory > 60 * 1024:
        reserve = max(reserve, 10 * 1024)
    if options.moe_a2a_backend == "deepep" and not options.disable_cuda_graph:
        reserve += 2 * 1024
    return max(0.0, round((memory - reserve) / memory, 3)) * find_vision_factor(deployment)


def compute_early_fraction(memory_mib: int, devices: int) -> float:
    """The default of versions up to 0.4.7, from the number of GPUs and their memory. Source: srt/server_args.py."""
    chosen = next(fraction for n, fraction in EARLY_FRACTIONS.items() if devices >= n)
    if memory_mib > 80 * 1024:
        chosen = EARLY_FRACTIONS[1]
    if memory_mib > 96 * 1024:
        chosen = min(chosen + 48 * 1024 * (1 - chosen) / memory_mib, (memory_mib - 18 * 1024) / memory_mib)
    return chosen


def count_prefill_graphs(largest: int) -> int:
    """The lengths of prompts that are captured as graphs, up to the largest.

    >>> count_prefill_graphs(8192)
    58
    """
    spans = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256), (4608, largest + 1, 512))
    return sum(n <= largest for span in spans for n in range(*span))


def find_vision_factor(deployment: Deployment) -> float:
    """By what the share is multiplied for a model with a vision encoder: less for larger encoders."""
    vision = getattr(deployment.model.sizes, "vision", None)
    layers, hidden = (getattr(vision, name, None) for name in ("n_layers", "d_model"))
    if type(layers) is not int or type(hidden) is not int:
        return 1.0
    size = layers * hidden**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (size - 1.0)))
