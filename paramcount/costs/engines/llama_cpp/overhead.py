"""What llama.cpp takes beside weights, cache and state: compute buffers, the output buffer and the GPU's context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.costs.devices import Overhead
from paramcount.costs.engines.llama_cpp.cells import VERSIONS, LlamaCppOptions, round_up
from paramcount.costs.engines.llama_cpp.ggml_memory import reserve
from paramcount.costs.engines.llama_cpp.graph import GraphBuilder, GraphLayer, GraphModel, GraphWeight
from paramcount.costs.engines.llama_cpp.placement import Place, Placement
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.sharding import compute_once
from paramcount.counting.components import TOWERS
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError
from paramcount.zoo import Model, count_model

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment

MIB = 2**20
PIPELINE_COPIES = 4  # GGML_SCHED_MAX_COPIES
# A CUDA context and what else a device has in use: "unaccounted" in the memory breakdown of llama.cpp. 451 and 456 MiB
# on RTX 4090 (https://github.com/ggml-org/llama.cpp/pull/15860), 749 MiB on RTX PRO 6000
# (https://github.com/ggml-org/llama.cpp/issues/27953). Other backends may take none.
CONTEXT, LEAST_CONTEXT, MOST_CONTEXT = 456 * MIB, 0, 749 * MIB
SPREAD, SIMPLIFIED_SPREAD = 32, 4  # the buffer may differ by a 32nd; if layers are simplified, by a quarter
SIMPLIFIED = ("ssm_out.weight", "shortconv.out_proj.weight", "attn_kv_a_mqa.weight", "time_mix_key.weight")
# On macOS the BLAS backend takes the matrices on the CPU (ggml/CMakeLists.txt, GGML_BLAS_DEFAULT), and a GPU computes
# with copies only of what the last backend would (ggml_backend_sched_backend_id_from_cur of ggml/src/ggml-backend.cpp).
APPLE = "Apple"
MOST_EXPERTS = 1024  # LLAMA_MAX_EXPERTS
KEPT = 2  # layers of each kind on each device: the memory of further ones is the same again


class Batch(NamedTuple):
    """What a graph is built for."""

    tokens: int  # of a micro-batch
    outputs: int
    sequences: int
    flash_attn: bool
    offloads_cache: bool
    has_embeddings: bool
    mask_bytes: int
    returns_embeddings: bool


def make_batch(request: CacheRequest, options: LlamaCppOptions) -> Batch:
    """What the compute buffers are reserved for: tokens in equal numbers of each sequence."""
    total = round_up(request.context, options.padding) * request.batch
    tokens = round_up(min(options.ubatch_size, options.batch_size, total), request.batch)
    is_current, has_flash = options.version == VERSIONS[-1], options.flash_attn != "off"
    outputs = options.n_outputs_max or (request.batch if is_current else tokens)
    return Batch(
        tokens,
        min(outputs, tokens),
        request.batch,
        has_flash,
        offloads_cache=not options.no_kv_offload,
        has_embeddings=options.version not in VERSIONS[:2],
        returns_embeddings=options.embeddings,
        mask_bytes=2 if is_current and has_flash else 4,
    )


class LayerCache(NamedTuple):
    """What one layer caches."""

    cells: int  # of each stream
    bytes: int  # of all streams


def estimate_overheads(
    deployment: Deployment, placement: Placement, caches: Mapping[int, LayerCache], batch: Batch
) -> dict[Place, Overhead]:
    """What each device holds besides. A computed buffer may differ by the details of an architecture."""
    rows = deployment.rows

    def compute() -> tuple[int, ...]:
        model = build_model(deployment, placement, caches, batch)
        is_simplified = any(name in layer.tensors for layer in model.layers for name in SIMPLIFIED)
        row = model.output.shape[0] + (model.d_model if batch.returns_embeddings else 0)
        return (is_simplified, row, *reserve(GraphBuilder(model).build()))

    is_apple = deployment.device.name.startswith(APPLE)
    key = (
        "llama.cpp",
        is_apple,
        placement,
        batch,
        *sorted(set(caches.values())),
        deployment.request.kv_dtype,
    )
    is_simplified, row, *buffers = compute_once(rows, key, compute)
    found: dict[Place, Overhead] = {}
    for place, size in zip(placement.places, buffers):
        spread = -(-size // (SIMPLIFIED_SPREAD if is_simplified else SPREAD))
        converted = 0 if place is None or batch.flash_attn or is_apple else count_converted(deployment, caches, batch)
        if place is None:
            output = batch.sequences * row * 4
            on_cpu = (("compute buffer", size), ("output buffer", output))
            found[place] = Overhead(size + output, size + output - spread, size + output + spread, on_cpu)
        else:
            more = (("attention weights in F16", converted),) if converted else ()
            items = (("compute buffer", size), ("GPU context", CONTEXT), *more)
            usual, most = size + CONTEXT + converted, size + MOST_CONTEXT + spread + converted
            found[place] = Overhead(usual, size + LEAST_CONTEXT - spread, most, items)
    return found


def count_converted(deployment: Deployment, caches: Mapping[int, LayerCache], batch: Batch) -> int:
    """Bytes of the attention weights in F16. Without flash attention they are in F32, and cuBLAS multiplies them by
    values in F16: the copy lies in a pool that grows with the text (ggml_cuda_mul_mat_batched_cublas)."""
    cells = max((cache.cells for cache in caches.values()), default=0)
    return 2 * deployment.shape.n_heads * cells * batch.tokens


def find_tensors(rows: Iterable[StoredTensor]) -> dict[int, dict[str, GraphWeight]]:
    """{layer: its tensors by name}; -1: outside of layers."""
    found: dict[int, dict[str, GraphWeight]] = {}
    for row in rows:
        tensor = row.tensor
        name = tensor.name.removeprefix("blk.{layer}.")
        layers = tensor.layer.indices if tensor.layer else (-1,)
        for layer in layers:
            found.setdefault(layer, {})[name] = GraphWeight(tensor.shape, row.bytes // len(layers))
    return found


def list_gguf_rows(deployment: Deployment) -> Sequence[StoredTensor]:
    """The tensors of the model's GGUF file; of another format, those of Q8_0, whose shapes are the same.

    Raises: ParamcountError if llama.cpp does not support the model.
    """
    rows = [row for row in deployment.rows if row.tensor.part not in TOWERS]
    return rows if all(row.packing.layout == "gguf" for row in rows) else list_default_rows(deployment.model)


@lru_cache(maxsize=4)
def list_default_rows(model: Model) -> Sequence[StoredTensor]:
    from paramcount.costs.gguf_mixes import list_mix

    return list(list_mix(count_model(model), "Q8_0"))


def build_model(
    deployment: Deployment, placement: Placement, caches: Mapping[int, LayerCache], batch: Batch
) -> GraphModel:
    """The graph of a model with as many layers as decide the size of its buffers."""
    tensors = compute_once(deployment.rows, "gguf tensors", lambda: find_tensors(list_gguf_rows(deployment)))
    outside, gpus = tensors.get(-1, {}), placement.gpus

    def number(place: Place) -> int:
        return gpus if place is None else place

    layers, seen = [], dict[tuple[Any, ...], int]()
    for i in sorted(tensors):
        if not 0 <= i < len(placement.layers):
            continue
        cache, device = caches.get(i, LayerCache(0, 0)), number(placement.layers[i])
        own, experts = tensors[i], gpus if i < placement.n_cpu_moe else device
        cache_device = device if batch.offloads_cache else gpus
        layer = GraphLayer(device, own, cache.cells, cache.bytes, cache_device, experts)
        kind = (device, cache, i < placement.n_cpu_moe, *((name, weight.shape) for name, weight in own.items()))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= KEPT or i == len(placement.layers) - 1:
            layers.append(layer)
    embedding = outside.get("token_embd.weight")
    if embedding is None:
        raise ParamcountError("has no token embedding", where=deployment.model.id)
    sizes: Any = deployment.model.sizes
    sizes = getattr(sizes, "language", sizes)
    k = getattr(sizes, "n_active_experts", 0) or 1
    if k > MOST_EXPERTS:
        expected = f"at most {MOST_EXPERTS}, the most that llama.cpp loads"
        raise ParamcountError(f"= {k:,}", where="n_active_experts", expected=expected)
    is_pipelined = gpus > 1 and all(place is not None for place in (*placement.layers, placement.output))
    return GraphModel(
        layers=layers,
        devices=gpus + 1,
        output_device=number(placement.output),
        output=outside.get("output.weight", embedding),
        d_model=embedding.shape[-1],
        n_heads=deployment.shape.n_heads,
        experts_per_token=k,
        tokens=batch.tokens,
        outputs=batch.outputs,
        copies=PIPELINE_COPIES if is_pipelined and batch.offloads_cache and not placement.n_cpu_moe else 1,
        flash_attn=batch.flash_attn,
        has_embeddings=batch.has_embeddings,
        offloads=not deployment.device.name.startswith(APPLE),
        mask_bytes=batch.mask_bytes,
    )
