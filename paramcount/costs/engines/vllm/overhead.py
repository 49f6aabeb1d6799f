"""What vLLM takes on a GPU beside weights and cache, item by item as its log names them.

Peak activation is computed (activations.py). Non-torch memory and CUDA graphs are measured: what stands here are logged
runs. Their spread is that of the answers "fits" and "does not fit".

Sources, all with vLLM's debug log or its line "Actual usage is …": llm-d-incubation/llm-d-planner (0.11.0, H100: 0.13
and, with TP=2, 0.54 GiB of non-torch memory), https://github.com/vllm-project/vllm/issues/13061 (0.7, RTX 4090, TP=2:
0.25), https://github.com/vllm-project/vllm/issues/12124 (0.7, TP=2: 0.12), …/issues/13882 (0.7.3: 0.03),
https://github.com/kolyangg/mlops-assignment (0.10.2, H100: 0.07), https://github.com/2215860382/VedioSifter (0.12.0:
0.06), https://github.com/mrpid12org/imageworks (0.10.2: 0.02).

Versions before 0.21 fill their share of the memory with the cache before they capture CUDA graphs, which must fit into
the rest: 17469 and 33155 of vLLM's issues ran out of memory there, however short the context was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcount.costs.devices import Overhead
from paramcount.costs.engines.vllm.activations import count_sampler, measure_forward
from paramcount.costs.engines.vllm.options import FIRST_V1, VllmOptions, complete_options
from paramcount.costs.sharding import compute_once
from paramcount.output.numbers import format_bytes

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment
    from paramcount.costs.engines.records import Share

MIB, GIB = 2**20, 2**30
# {up to so many GPUs: (least, usual, most) MiB that CUDA libraries and NCCL take on each}
NON_TORCH = {1: (20, 110, 400), 2: (120, 450, 900), 4: (200, 900, 1700), 8: (300, 1400, 2600), 10**6: (300, 1800, 3500)}
# Graphs are counted in the memory that vLLM may use since 0.21 (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS).
FIRST_COUNTING_GRAPHS = 21
FIRST_WHOLE_GRAPHS, FIRST_BY_SEQUENCES = 11, 10  # minor versions
LARGEST_OF_GPT_OSS = 1024
# (least, usual, most) MiB of a graph for each layer; at least 1 MiB a graph. Logged, in GiB: 0.08 for 20 graphs
# of 36 layers, 0.51 for 102 of 32 (0.19 to 0.22), 0.15 for 14 of 48 (0.26).
GRAPH_PER_LAYER = (0.02, 0.14, 0.25)
# Of graphs beside the share: 0.17 to 0.44 in most logs of 0.8 to 0.17, in one of ten more than 0.85 or 3 GiB.
# In GiB: 1.03 (gpt-oss-120b, 0.11.0), 1.03 (Qwen2.5 14B, TP=4, 0.9.2), 2.60 (Qwen3-235B, TP=8, 0.10.0), 4.08 (14B in
# AWQ, 0.14).
GRAPHS_BESIDE = (0.02, 0.3, 0.85)
MOST_BESIDE = 3 * GIB
# With recurrent states or an indexer, 0.74 for 70 of 40 layers (0.25) and 3.51 for 102 of 64 (0.27).
MOST_PER_RARE_LAYER = 0.55
FIRST_GRAPHS = 450  # MiB that the first graphs may take beside an encoder: 0.40 GiB of six of Qwen2.5-VL 7B (0.22)
ACTIVATION_SPREAD = (0.9, 1.15)  # logged over computed peaks
# 0.11 and 0.12 keep room for the text of a video's frames, too: 12.5 tokens for each of the 12,288 that the processor
# gives the largest video (https://github.com/vllm-project/vllm/issues/27992; qwen3_vl.py, get_max_video_tokens;
# gpu_model_runner.py, profile_run: expanded_outputs).
ROOM_FOR_FRAMES = range(11, 13)  # minor versions
VIDEO_TOKENS = 153_600
MAX_IMAGE_TOKENS = 16_384  # of one image, in the processors of Qwen2.5-VL, Qwen3-VL and Qwen3.5


def estimate_overhead(deployment: Deployment, stage: int) -> Overhead:
    """What vLLM takes on a GPU of a pipeline stage beside weights and cache."""
    device = deployment.device
    if device.overhead_bytes is not None:
        return device.assume_overhead()
    options = complete_options(deployment.request)
    least, usual, most = 0, 0, 0
    non_torch = next(sizes for n, sizes in NON_TORCH.items() if deployment.parallel.devices <= n)
    items = []
    for name, (low, middle, high) in {
        "peak activation": measure_activation(deployment, options, stage),
        "non-torch memory": tuple(n * MIB for n in non_torch),
        "CUDA graphs": measure_graphs(deployment, options),
    }.items():
        least, usual, most = least + low, usual + middle, most + high
        if middle:
            items.append((name, middle))
    return Overhead(usual, least, most, tuple(items))


def measure_activation(deployment: Deployment, options: VllmOptions, stage: int) -> tuple[int, int, int]:
    """(least, usual, most) bytes of the profile run."""
    parallel = deployment.parallel
    whole = options.mm_encoder_tp_mode == "data"
    peak = measure_forward(deployment.model, options.max_num_batched_tokens, parallel.tp, options.enforce_eager, whole)
    usual = peak.decoder
    if stage == parallel.pp - 1 and options.runner == "generate":
        usual = max(usual, count_sampler(peak, options.max_num_seqs, options.minor))
    low, high = ACTIVATION_SPREAD
    if not peak.encoder or options.language_model_only:
        return round(low * usual), usual, round(high * usual)
    # The encoder reads images of max_num_batched_tokens tokens, or the largest one, whose size is not in the config.
    # What it reads and hands on stays until the end.
    text, tokens = usual, options.max_num_batched_tokens
    largest = max(tokens, MAX_IMAGE_TOKENS)
    has_room = deployment.request.reference.startswith("Qwen3VL") and options.minor in ROOM_FOR_FRAMES
    kept = VIDEO_TOKENS if has_room else 0
    least, usual, most = (
        max(round(n / tokens * peak.encoder), text + round((n * peak.read + max(n, room) * peak.features) / tokens))
        for n, room in ((tokens, 0), (largest if peak.merges else tokens, kept), (largest, kept))
    )
    return round(low * least), usual, round(high * most)


def measure_graphs(deployment: Deployment, options: VllmOptions) -> tuple[int, int, int]:
    """(least, usual, most) bytes of the CUDA graphs that the budget includes."""
    if options.enforce_eager or options.minor < FIRST_COUNTING_GRAPHS:
        return 0, 0, 0
    n = 2 * count_capture_sizes(options)
    layers = deployment.shape.n_layers // deployment.parallel.pp
    groups = [group for _, found in deployment.caches for group in found]
    is_rare = any(group.is_state or len(group.shapes) > 2 for group in groups)
    low, middle, high = GRAPH_PER_LAYER
    shares = (low, middle, MOST_PER_RARE_LAYER if is_rare else high)
    least, usual, most = (round(max(1.0, share * layers) * n * MIB) for share in shares)
    rows = deployment.rows
    has_encoder = compute_once(rows, "vision", lambda: any(row.tensor.part == "vision" for row in rows))
    return least, usual, most + (FIRST_GRAPHS * MIB if has_encoder else 0)


def add_graphs_beside(share: Share, deployment: Deployment, options: VllmOptions) -> Share:
    """The share of a GPU with the graphs that do not fit beside the budget, which the cache fills however little of it
    is needed."""
    device, overhead = deployment.device, share.overhead
    if options.kv_cache_memory_bytes or device.overhead_bytes is not None:
        return share
    rest = device.memory_bytes - device.budget_bytes
    least, usual, most = (
        max(size, device.budget_bytes - share.total_bytes + graphs - rest) if graphs > rest else size
        for size, graphs in zip(
            (overhead.least, overhead.usual, overhead.most), measure_graphs_beside(deployment, options)
        )
    )
    added = ("CUDA graphs, and the cache that fills the budget", usual - overhead.usual)
    items = (*overhead.items, added) if added[1] else overhead.items
    return share._replace(overhead=Overhead(usual, least, most, items))


def warn_of_graphs(deployment: Deployment, options: VllmOptions) -> list[str]:
    """If CUDA graphs may not fit beside the budget."""
    device = deployment.device
    rest, most = device.memory_bytes - device.budget_bytes, measure_graphs_beside(deployment, options)[-1]
    if most <= rest or options.kv_cache_memory_bytes or device.overhead_bytes is not None:
        return []
    return [
        f"vLLM {options.version} captures CUDA graphs beside what gpu_memory_utilization allows: "
        f"{format_bytes(rest)} are left, logged runs take up to {format_bytes(most)}; lower it, or set enforce_eager"
    ]


def measure_graphs_beside(deployment: Deployment, options: VllmOptions) -> tuple[int, int, int]:
    """(least, usual, most) bytes of the CUDA graphs that versions before 0.21 capture beside the budget."""
    if options.enforce_eager or options.minor >= FIRST_COUNTING_GRAPHS:
        return 0, 0, 0
    sizes = list_capture_sizes(find_largest_graph(options, deployment.request.reference))
    n = len(sizes)
    if options.minor >= FIRST_WHOLE_GRAPHS:  # of whole steps, beside those of the pieces between attention
        n += sum(size <= options.max_num_seqs for size in sizes)
    least, usual, most = (share * deployment.shape.n_layers / deployment.parallel.pp * n for share in GRAPHS_BESIDE)
    return round(least * MIB), round(usual * MIB), min(round(most * MIB), MOST_BESIDE)


def find_largest_graph(options: VllmOptions, reference: str) -> int:
    """The largest batch of which versions before 0.21 capture a graph.

    Source: config/compilation.py, config/scheduler.py and model_executor/models/config.py (gpt-oss) of 0.8.5 to 0.14.
    """
    if options.max_cudagraph_capture_size:
        return options.max_cudagraph_capture_size
    if options.minor < FIRST_V1:
        return options.max_num_seqs
    if reference == "GptOssForCausalLM" and options.minor >= FIRST_BY_SEQUENCES:
        return LARGEST_OF_GPT_OSS
    return 512 if options.minor < FIRST_BY_SEQUENCES else min(2 * options.max_num_seqs, 512)


def count_capture_sizes(options: VllmOptions) -> int:
    """The number of batch sizes of which vLLM captures a graph: 1, 2, 4, multiples of 8, and of 16 from 256 on.

    >>> count_capture_sizes(VllmOptions(max_num_seqs=256)), count_capture_sizes(VllmOptions(max_num_seqs=4))
    (51, 4)
    """
    per_request = 1 + options.num_speculative_tokens
    largest = options.max_cudagraph_capture_size or min(2 * options.max_num_seqs * per_request, 512)
    return len(list_capture_sizes(largest, wide=16))


def list_capture_sizes(largest: int, wide: int = 8) -> list[int]:
    """1, 2, 4, multiples of 8, and those of `wide` from 256 on.

    >>> list_capture_sizes(20), len(list_capture_sizes(512))
    ([1, 2, 4, 8, 16], 67)
    """
    steps = (*range(8, min(largest + 1, 256), 8), *range(256, largest + 1, wide))
    return [n for n in (1, 2, 4) if n <= largest] + list(steps)
