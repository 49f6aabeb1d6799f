"""What a GPU's data sheet allows: the minimum time of a decoding step and of a prompt, and the time of training.

A bound is the larger of two times: that of reading every byte once at the memory's full bandwidth, and that of the
multiply-adds at the dense peak. It leaves out element-wise work, communication and everything a program does besides.

Source: Williams, Waterman and Patterson 2009, "Roofline", Communications of the ACM 52 (4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from paramcount.costs.gpus import Gpu
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError, join_words
from paramcount.flow.operation import Form
from paramcount.formats.quantization_config import WeightDtype
from paramcount.formats.weights import get_format
from paramcount.tracing.trace import Trace

# {dtype of stored values: the rates at which they may be multiplied, fastest first}. A GPU without the first
# unpacks the values; formats that are not listed are always unpacked.
UNPACKED = ("bf16", "fp16")
RATES: Mapping[str, tuple[str, ...]] = {
    "F32": ("fp32",), "BF16": ("bf16",), "F16": ("fp16",), "F8_E4M3": ("fp8", *UNPACKED),
    "F8_E5M2": ("fp8", *UNPACKED), "I8": ("int8", *UNPACKED),
}  # fmt: skip


class Bound(NamedTuple):
    """The minimum time of one step."""

    weights_bytes: int  # that it reads on all GPUs together
    cache_bytes: int
    flops: int
    memory_seconds: float  # of reading the bytes
    compute_seconds: float | None  # of the FLOPs; None if the rate is unknown

    @property
    def seconds(self) -> float:
        return max(self.memory_seconds, self.compute_seconds or 0.0)

    @property
    def limit(self) -> str:
        """What bounds the step: "memory" or "compute"."""
        return "memory" if self.seconds == self.memory_seconds else "compute"

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return self._asdict() | {"seconds": self.seconds, "limit": self.limit}


class Roofline(NamedTuple):
    """Lower bounds for inference on GPUs among which the work divides evenly."""

    gpu: str
    gpus: int
    dtype: str  # of the weights
    kv_dtype: str
    batch: int  # sequences that are decoded at once
    rate_dtype: str | None  # "BF16": values are multiplied at this rate; None if none of the GPU's rates fits
    rate_reason: str  # why rate_dtype is None; "" if it is not
    flops_per_second: int | None  # dense peak of one GPU
    bytes_per_second: int  # of one GPU
    decoding: Bound | None  # of one token for every sequence; None if the model decodes no tokens
    prompt: Bound  # of one sequence

    @property
    def tokens_per_second(self) -> float | None:
        """The most tokens that all sequences together decode; None if the model decodes no tokens."""
        return self.batch / self.decoding.seconds if self.decoding else None


class TrainingTime(NamedTuple):
    """The time of training at a share of the peak, which is an assumption."""

    gpu: str
    gpus: int
    mfu: float  # model FLOPs utilisation: assumed
    rate_dtype: str
    flops_per_second: int  # dense peak of one GPU
    gpu_hours: float
    days: float


def find_rate(gpu: Gpu, format: WeightDtype) -> tuple[str | None, str]:
    """The name of the dense peak rate at which a GPU multiplies weights of a format, and "".

    If its sources state none that fits: None, and why.
    """
    names: tuple[str, ...] = UNPACKED
    if format.plan.groups:
        packing = format.plan.groups[0].packing
        rate = get_format(packing.layout).rate
        names = (rate, *UNPACKED) if rate else RATES.get(packing.dtype, UNPACKED)
    elif not format.mix:
        names = RATES.get(format.plan.dtype, UNPACKED)
    for name in names:
        if name in gpu.flops:
            return name, ""
    stated = f" (only {join_words(map(str.upper, gpu.flops), 'and')})" if gpu.flops else ""
    return None, f"no {join_words(map(str.upper, names))} rate of {gpu.name} is known{stated}"


def sum_read(rows: Iterable[StoredTensor], trace: Trace) -> int:
    """Bytes of the weights that a pass reads: all that it multiplies, of experts those of one token, no tables.

    GGUF files name their tensors differently; of these, all tensors of a component are read or none.
    """
    uses = [use for step in trace.steps if step.form is not Form.LOOKUP for use in step.weights]
    names = {use.tied_to or use.name for use in uses}
    components = {use.component for use in uses} | {"embedding" for use in uses if use.tied_to}
    total = 0
    for row in rows:
        tensor = row.tensor
        if tensor.component in components if row.packing.layout == "gguf" else tensor.name in names:
            total += row.bytes * tensor.active // tensor.parameters if tensor.parameters else row.bytes
    return total


def make_bound(gpu: Gpu, gpus: int, rate: str | None, *, weights_bytes: int, cache_bytes: int, flops: int) -> Bound:
    memory_seconds = (weights_bytes + cache_bytes) / (gpu.bandwidth * gpus)
    return Bound(weights_bytes, cache_bytes, flops, memory_seconds, flops / (gpu.flops[rate] * gpus) if rate else None)


def estimate_training_time(gpu: Gpu, gpus: int, rate: str, flops: int, mfu: float) -> TrainingTime:
    """The time of so many FLOPs at a share of the peak.

    Raises: ParamcountError for a share that is not above 0 and at most 1.
    """
    if type(mfu) not in (int, float) or not 0 < mfu <= 1:
        raise ParamcountError(f"= {mfu!r}", where="mfu", expected="above 0 and at most 1, such as 0.4")
    hours = flops / (gpu.flops[rate] * mfu) / 3600
    return TrainingTime(gpu.name, gpus, mfu, rate.upper(), gpu.flops[rate], hours, hours / gpus / 24)
