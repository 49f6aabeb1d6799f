"""What llama.cpp puts on each device: whole layers, and the weights outside of them.

Source: llama.cpp, commit 0c1e57098: load_tensors and make_cpu_buft_list of src/llama-model.cpp, LLM_TENSOR_INFOS of
src/llama-arch.cpp, create_tensor of src/llama-model-loader.cpp, llm_ffn_exps_cpu_override of common/common.h and
ggml_backend_cuda_buffer_type_get_alloc_size of ggml/src/ggml-cuda/ggml-cuda.cu.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from paramcount.costs.sharding import ShardShape
from paramcount.counting.components import TOWERS
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError, describe_value
from paramcount.formats.packing import Packing
from paramcount.formats.weights import compute_bytes, get_format
from paramcount.formats.weights.gguf import BLOCKS, MIXES

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment

Place: TypeAlias = "int | None"  # index of a GPU; None: the CPU
ROW_MULTIPLE = 512  # values of a quantised row that CUDA kernels read past its end (MATRIX_ROW_PADDING)
INPUT = ("embedding", "other_embedding", "position")  # tables of which rows are looked up


class Placement(NamedTuple):
    """Which device holds each layer."""

    gpus: int
    layers: tuple[Place, ...]
    output: Place  # of the LM head, the norm before it and, if it is tied, a copy of the token embedding
    n_cpu_moe: int = 0  # first layers whose experts lie on the CPU

    def list_layers(self, place: Place) -> tuple[int, ...]:
        return tuple(i for i, device in enumerate(self.layers) if device == place)

    @property
    def places(self) -> tuple[Place, ...]:
        """GPUs first, then the CPU, which always holds the token embedding."""
        return (*range(self.gpus), None)

    @property
    def offloaded(self) -> int:
        """Layers on GPUs, of one more than there are, as the log counts them."""
        return sum(device is not None for device in (*self.layers, self.output))


def place_layers(
    n_layers: int, n_gpu_layers: int, splits: Sequence[float], n_cpu_moe: int = 0, *, output_last: bool = False
) -> Placement:
    """Where the layers lie. The last ones and the LM head are on GPUs, divided by `splits`, one number per GPU.
    `output_last`: the LM head is, only if all layers are.

    >>> place_layers(4, 3, (1, 1))
    Placement(gpus=2, layers=(None, None, 0, 0), output=1, n_cpu_moe=0)
    """
    n_gpu_layers = n_layers + 1 if n_gpu_layers < 0 else n_gpu_layers
    number = min(n_gpu_layers, n_layers + 1)
    start = max(n_layers + (0 if output_last else 1) - n_gpu_layers, 0)
    sums = list(accumulate(map(to_float32, splits), lambda a, b: to_float32(a + b)))
    ends = [to_float32(end / sums[-1]) for end in sums]
    places: list[Place] = [None] * (n_layers + 1)
    for i in range(start, min(start + number, n_layers + 1)):
        places[i] = bisect_right(ends, to_float32((i - start) / number))
    return Placement(len(splits), tuple(places[:-1]), places[-1], n_cpu_moe)


def to_float32(x: float) -> float:
    """The nearest number in single precision, in which llama.cpp computes the shares."""
    value: float = struct.unpack("f", struct.pack("f", x))[0]
    return value


def place_weights(rows: Sequence[StoredTensor], placement: Placement, shape: ShardShape) -> dict[Place, int]:
    """Bytes of the weights on each device."""
    sums: dict[Place, int] = dict.fromkeys(placement.places, 0)
    for row in map(convert, rows):
        for place, size, copies in place_row(row, placement, shape):
            sums[place] += size + (copies * count_padding(row) if place is not None else 0)
    return sums


def join_latent(rows: Sequence[StoredTensor]) -> list[StoredTensor]:
    """As files before April 2025 have them: attn_k_b and attn_v_b in one matrix, attn_kv_b, and so in one type.

    Source: https://github.com/ggml-org/llama.cpp/pull/12801.
    """
    packings = {row.tensor.layer: row.packing for row in rows if row.tensor.name.endswith("attn_v_b.weight")}
    joined = []
    for row in rows:
        packing = packings.get(row.tensor.layer) if row.tensor.name.endswith("attn_k_b.weight") else None
        size = None if packing is None else row.copies * compute_bytes((prod(row.tensor.shape),), packing)
        joined.append(row if packing is None or size is None else row._replace(packing=packing, bytes=size))
    return joined


def convert(row: StoredTensor) -> StoredTensor:
    """As the converter writes it: vectors, norms and routers are in F32, whatever the type of the matrices."""
    tensor = row.tensor
    is_small = len(tensor.matrix) < 2 or tensor.component.partition(".")[0] in ("norm", "router")
    if row.packing.layout == "plain" and is_small and tensor.part not in TOWERS:
        return row._replace(packing=Packing("plain", "F32"), bytes=4 * row.values)
    return row


def place_row(row: StoredTensor, placement: Placement, shape: ShardShape) -> Iterator[tuple[Place, int, int]]:
    """(device, bytes, tensors) for each device that holds some of the equal tensors."""
    tensor = row.tensor
    component, layer = tensor.component.partition(".")[0], tensor.layer
    if tensor.part in TOWERS:
        yield (0 if placement.gpus else None), row.bytes, row.copies  # the file of the encoders is loaded by itself
    elif layer is not None and tensor.part != "encoder":
        each, copies = row.bytes // layer.count, max(1, row.copies // layer.count)
        for i in layer.indices:
            is_kept = component == "experts" and i < placement.n_cpu_moe
            place = None if is_kept or i >= len(placement.layers) else placement.layers[i]
            yield place, each, copies
    elif component == "other":  # tables of rotary frequencies, of which each device has one
        for place in dict.fromkeys(placement.layers):
            yield place, row.bytes, row.copies
    elif component in INPUT:
        yield None, row.bytes, row.copies
        if component == "embedding" and shape.tied and placement.output is not None:
            yield placement.output, row.bytes, row.copies
    else:
        yield placement.output, row.bytes, row.copies


def count_padding(row: StoredTensor) -> int:
    """Bytes that a GPU adds to each of the equal tensors: to the next multiple of 512 values of its last row."""
    tensor, layout = row.tensor, row.packing.layout
    if layout == "gguf":
        block, length, parts = BLOCKS[row.packing.dtype], tensor.shape[-1], 1
    elif mix := get_format(layout).gguf_mix:  # as released; the converter writes gate and up as two tensors
        block, length, parts = BLOCKS[MIXES[mix]], min(tensor.matrix), len(tensor.splits)
    else:
        return 0
    if block.values == 1 or not length % ROW_MULTIPLE:
        return 0
    blocks: int = (ROW_MULTIPLE - length % ROW_MULTIPLE) // block.values
    return parts * blocks * block.size


def parse_split(value: object) -> tuple[float, ...]:
    """The shares of the GPUs.

    >>> parse_split("3,1"), parse_split("3/100")
    ((3.0, 1.0), (3.0, 100.0))
    """
    words = value.replace("/", ",").split(",") if isinstance(value, str) else [""]
    if not all(word.replace(".", "", 1).isdecimal() and len(word) < 12 for word in words) or not any(map(float, words)):
        raise ParamcountError(f"= {describe_value(value)}", where="tensor_split", expected="numbers such as 3/1")
    return tuple(map(float, words))


def list_extras(deployment: Deployment, placement: Placement, place: Place) -> Iterator[str]:
    """What lies on a device besides whole layers."""
    components = {row.tensor.component.partition(".")[0] for row in deployment.rows}
    if place is None:
        yield "token embedding"
        if placement.n_cpu_moe and "experts" in components:
            n = min(placement.n_cpu_moe, len(placement.layers))
            yield f"experts of layers 0–{n - 1}" if n > 1 else "experts of layer 0"
    if place == placement.output:
        is_tied = deployment.shape.tied and "lm_head" not in components
        yield "copy of the token embedding" if is_tied and place is not None else "LM head"
    if place == 0 and any(row.tensor.part in TOWERS for row in deployment.rows):
        yield "encoders"
