"""The weights as vLLM loads them: fused, padded, divided among GPUs, and as large as PyTorch's allocator makes them.

Queries, keys and values are one matrix, as are the gate and up matrices of an MLP, and those of all experts. The
vocabulary is padded to a multiple of 64. Experts in MXFP4 are padded for their kernels. Norms, routers, biases of
row-parallel layers and MLA's down-projections are on every GPU; an encoder is divided unless its data is. The table of
rotary angles is loaded with the weights: "Model loading took" includes it.

PyTorch takes memory for a tensor of at least 10 MiB in multiples of 2 MiB, and leaves up to 1 MiB of that unused: with
the 81 matrices of 67.5 MiB of Qwen2.5-14B on 4 GPUs, as in a log of vLLM 0.9.2, 61 MiB are lost.

Sources: vLLM 0.33.0, model_executor/layers/linear.py, vocab_parallel_embedding.py, rotary_embedding/base.py and
mrope.py, fused_moe/oracle/mxfp4.py (mxfp4_round_up_hidden_size_and_intermediate_size); PyTorch 2.9,
c10/cuda/CUDACachingAllocator.cpp (round_size, get_allocation_size, should_split).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.costs.engines.vllm.activations import measure_forward
from paramcount.costs.engines.vllm.options import VllmOptions, complete_options
from paramcount.costs.sharding import Parallelism, ShardShape, divide, find_stages, split_layers
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import list_steps
from paramcount.flow.operations.positions import RotaryAt, Rotation
from paramcount.formats.packing import Packing
from paramcount.zoo import Model, count_model

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment

MIB = 2**20
LARGE, SPLIT_ABOVE, SMALL = 10 * MIB, MIB, 512  # bytes: what is rounded to 2 MiB, what is split off, the unit
VOCABULARY_PADDING = 64
FUSED = ("qkv.q", "qkv.k", "qkv.v", "mlp.gate", "mlp.up", "experts.gate", "experts.up", "shared_experts.gate",
         "shared_experts.up")  # fmt: skip
# {kernels of MXFP4 experts: multiples of which the MLP hidden size on a GPU and the hidden size are}
MXFP4_MULTIPLES = {
    "triton": (64, 1),
    "marlin": (128, 256),
    "flashinfer_trtllm": (128, 256),
    "flashinfer_cutlass": (128, 128),
}
TRITON_LAYOUT = 256  # of which the inner size of the values is a multiple on Hopper
HOPPER, BLACKWELL = ("h100", "h200", "h800", "h20", "gh200"), ("b200", "b300", "gb200", "gb300")
SCALES = 8 * SMALL  # bytes of the scales of an attention layer: of queries, keys, values and scores, and their ranges
MROPE = 4  # times as many positions in the table of angles if a position has several axes


class LoadedTensor(NamedTuple):
    """A tensor on one GPU."""

    row: StoredTensor
    bytes: int  # of one copy


def round_allocation(size: int) -> int:
    """What PyTorch takes for a tensor.

    >>> round_allocation(67 * MIB + MIB // 2) / MIB, round_allocation(62 * MIB + MIB // 2) / MIB
    (68.0, 62.5)
    """
    size = -(-size // SMALL) * SMALL
    whole = -(-size // (2 * MIB)) * 2 * MIB
    return whole if size >= LARGE and whole - size <= SPLIT_ABOVE else size


def share_loaded(deployment: Deployment) -> tuple[int, ...]:
    """Bytes of the weights on one GPU of each pipeline stage."""
    model, parallel, shape = deployment.model, deployment.parallel, deployment.shape
    options = complete_options(deployment.request)
    kernels = choose_kernels(options.moe_backend, deployment.device.name)
    rows = [row for row in deployment.rows if is_loaded(row, options)]
    stages = split_layers(shape.n_layers, parallel.pp)
    sums = [0] * parallel.pp
    fused: dict[tuple[object, ...], list[LoadedTensor]] = {}
    for row in rows:
        tensor = LoadedTensor(row, load(row, shape, parallel, options, kernels))
        fused.setdefault(find_matrix(row), []).append(tensor)
    for tensors in fused.values():
        row, *_ = (tensor.row for tensor in tensors)
        size = round_allocation(sum(tensor.bytes for tensor in tensors))
        layer = row.tensor.layer
        if layer is None or row.tensor.part in ("encoder", "vision", "audio"):
            for stage in find_stages(row, shape, parallel.pp):
                sums[stage] += size * count_modules(row)
            continue
        for i, layers in enumerate(stages):
            n_layers = sum(length for _, length in layer.runs)
            sums[i] += size * count_modules(row) * layer.count_inside(layers) // n_layers
    table = count_rotary_bytes(model, deployment.limit or 0)
    groups = (group for stage in deployment.list_stages() for group in stage)
    buffers = SCALES * sum(group.layers for group in groups if not group.is_state)
    if not options.language_model_only:
        sums[0] += count_level_bytes(model, options.max_num_batched_tokens)
    if options.speculative_method == "mtp":
        sums[-1] += count_mtp(model, shape, parallel)
    return tuple(size + table + buffers // parallel.pp for size in sums)


def count_mtp(model: Model, shape: ShardShape, parallel: Parallelism) -> int:
    """Bytes of the MTP layers in BF16; they share the embedding and the LM head."""
    rows = [tensor for tensor in count_model(model).tensors if tensor.kind == "mtp"]
    plain = Packing("plain", "BF16")
    return sum(divide(StoredTensor(t, t.copies, plain, 2 * t.elements), shape, parallel) for t in rows)


def is_loaded(row: StoredTensor, options: VllmOptions) -> bool:
    if options.language_model_only and is_encoder(row):
        return False
    return options.runner == "generate" or not row.tensor.component.startswith("lm_head")


def is_encoder(row: StoredTensor) -> bool:
    return row.tensor.part in ("vision", "audio", "projector")


def count_modules(row: StoredTensor) -> int:
    """How many such tensors there are; those of all experts of a layer are one."""
    experts: int = prod(repeat.count for repeat in row.tensor.repeats if repeat.axis == "expert")
    return row.copies // experts


def find_matrix(row: StoredTensor) -> tuple[object, ...]:
    """Equal for what is loaded into one tensor: queries, keys and values, or gate and up, of one layer."""
    tensor = row.tensor
    component = tensor.component
    name = component.partition(".")[0] if component in FUSED and not tensor.splits else tensor.name
    runs = tensor.layer.runs if tensor.layer else ()
    return name, tensor.part, len(tensor.matrix), row.packing, row.copies, runs


def load(row: StoredTensor, shape: ShardShape, parallel: Parallelism, options: VllmOptions, kernels: str) -> int:
    """Bytes of one tensor on a GPU, padded; of the matrices of all experts together."""
    tensor = row.tensor
    scale, whole = 1.0, row
    if tensor.component in ("embedding", "lm_head") and len(tensor.matrix) == 2 and tensor.part == "decoder":
        n = int(tensor.matrix[0])
        padded = -(-n // VOCABULARY_PADDING) * VOCABULARY_PADDING
        whole = row._replace(bytes=row.bytes * padded // n)
    elif row.packing.layout == "mxfp4":
        scale = find_mxfp4_padding(row, parallel.tp if parallel.ep == 1 else 1, kernels)
    if is_encoder(row) and options.mm_encoder_tp_mode == "weights":
        size = divide_encoder(row, parallel.tp)
    else:
        size = divide(whole, shape, parallel)
    return round(size * scale) // count_modules(row)


def divide_encoder(row: StoredTensor, tp: int) -> int:
    """Bytes of an encoder's matrix on each GPU: columns, rows or heads are divided; embeddings and norms are not."""
    component = row.tensor.component.partition(".")[0]
    is_whole = component in ("embedding", "position", "norm", "other") or len(row.tensor.matrix) != 2
    is_whole = is_whole and not row.tensor.component.startswith(("qkv", "mlp.up", "mlp.gate"))
    return row.bytes if is_whole else -(-row.bytes // tp)


def find_mxfp4_padding(row: StoredTensor, tp: int, kernels: str) -> float:
    """The padded size of the matrices of experts over their own."""
    tensor, twice = row.tensor, len(row.tensor.splits) or 1  # gate and up may be one matrix
    is_down = tensor.component.endswith("down")
    axis = tensor.axis if tensor.splits else int(is_down)  # of the MLP hidden size
    inner, hidden = int(tensor.matrix[axis]), int(tensor.matrix[1 - axis])
    inner_multiple, hidden_multiple = MXFP4_MULTIPLES[kernels]
    own = inner / twice / tp
    padded = -(-own // inner_multiple) * inner_multiple
    hidden_padded = -(-hidden // hidden_multiple) * hidden_multiple
    scale = padded / own * hidden_padded / hidden
    if kernels == "triton":  # of 17 bytes, 16 are values
        size = padded if is_down else hidden_padded
        scale *= (1 + 16 * (-(-size // TRITON_LAYOUT) * TRITON_LAYOUT) / size) / 17
    return float(scale)


def choose_kernels(backend: str, device: str) -> str:
    """The kernels of MXFP4 experts for a GPU: Triton on Hopper, TRT-LLM on Blackwell for data centres, else Marlin."""
    if backend != "auto":
        return backend
    name = device.lower().partition(" ")[0]
    return "triton" if name in HOPPER else "flashinfer_trtllm" if name in BLACKWELL else "marlin"


def count_level_bytes(model: Model, tokens: int) -> int:
    """Bytes of the buffers for features of an encoder that are added behind the first layers, one per level.

    Source: model_executor/models/qwen3_vl.py, deepstack_input_embeds.
    """
    peak = measure_forward(model, tokens, 1, False)
    levels = peak.features // peak.outputs - 1 if peak.features and peak.outputs and peak.merges else 0
    return max(0, levels) * peak.outputs


@lru_cache(maxsize=64)
def count_rotary_bytes(model: Model, positions: int) -> int:
    """Bytes of the tables of angles, one for each kind of rotation of the decoder, in BF16."""
    tables: dict[Any, int] = {}
    out, part = next(iter(list_flows(model.sizes, model.reading.head)))
    for data, _, _, place in list_steps(out, part):
        operation = data.operation
        if isinstance(operation, Rotation) and place == "decoder":
            axes = MROPE if isinstance(operation, RotaryAt) else 1
            tables[operation.rope, data.shape[-1]] = 2 * axes * positions * int(data.shape[-1])
    return sum(tables.values())
