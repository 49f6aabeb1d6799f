"""The memory of a device, and whether something fits it: it fits, it does not fit, or it is too close to call."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.costs.gpus import find_gpu, parse_devices
from paramcount.errors import Argument, ParamcountError, describe_value
from paramcount.output.numbers import format_bytes

FITS, DOES_NOT_FIT, TOO_CLOSE = VERDICTS = ("fits", "does not fit", "too close to call")
# What a runtime takes is assumed to be the same for every engine, model and batch. Logged runs differ from the
# assumption by up to a tenth of the device (tests/data/logged), so a smaller margin decides nothing.
MARGIN_DIVISOR = 10
# Engines pad the matrices of some formats for their kernels: vLLM takes 65.97 GiB for gpt-oss-120b, 9% of the experts
# more than the files (https://github.com/vllm-project/vllm/issues/23278).
PADDING_DIVISOR = 10
ASSUMED_OVERHEAD = 10**9  # bytes: a CUDA context, activations and what else a runtime takes


class Overhead(NamedTuple):
    """What a runtime takes on one device beside weights, cache and state."""

    usual: int  # bytes
    least: int  # with which a model that does not fit certainly does not fit
    most: int  # with which a model that fits certainly fits
    items: tuple[tuple[str, int], ...] = ()  # (what it is, usual bytes); () if it is assumed


class Device(NamedTuple):
    """The memory that a model may take."""

    name: str
    memory_bytes: int  # of each device
    overhead_bytes: int | None  # that a runtime takes on each device; None: as the engine estimates it
    utilization: float | None = None  # the share of the memory that the engine may use; None: its default
    is_gpu: bool = False  # whether the name is that of a GPU of the table
    note: str = ""  # what limits the memory
    ram_bytes: int | None = None  # the memory of the CPU; None: as much as is needed

    @property
    def budget_bytes(self) -> int:
        """What weights, cache, state and overhead may take together."""
        return int(self.memory_bytes * (1.0 if self.utilization is None else self.utilization))

    @property
    def usable_bytes(self) -> int:
        """What the assumed overhead leaves."""
        return self.budget_bytes - self.assume_overhead().usual

    @property
    def margin_bytes(self) -> int:
        """What must be free or short for an answer that rests on an assumption: 10% of the memory, rounded up."""
        return -(-self.memory_bytes // MARGIN_DIVISOR)

    def assume_overhead(self, padding: int = 0) -> Overhead:
        """The overhead where nothing is known of the runtime. `padding`: bytes that the weights may take besides.

        Certain is then only what does not rest on it: more than the memory, or than the share to use by the margin.
        """
        usual = ASSUMED_OVERHEAD if self.overhead_bytes is None else self.overhead_bytes
        least = -min(self.memory_bytes - self.budget_bytes, self.margin_bytes - 1)
        return Overhead(usual, least, usual + self.margin_bytes + padding)

    def judge(self, size: int, overhead: Overhead) -> str:
        """One of VERDICTS for so many bytes of weights, cache and state."""
        return judge(size, overhead, self.budget_bytes)


def judge(size: int, overhead: Overhead, budget: int) -> str:
    """One of VERDICTS for so many bytes and an overhead in a memory of `budget` bytes."""
    if size + overhead.most <= budget:
        return FITS
    return DOES_NOT_FIT if size + overhead.least > budget else TOO_CLOSE


NO_DEVICE = Device("", 0, None)  # where nothing is asked of one


def make_device(
    gpu: object,
    memory_bytes: object,
    overhead_bytes: int | None,
    utilization: object = None,
    ram_bytes: int | None = None,
) -> tuple[int, Device]:
    """(number of devices, device) for a GPU by name, such as "8xH100", or for a size of memory.

    Raises: ParamcountError for an unknown GPU, if both or neither are given, and for a wrong utilization.
    """
    if utilization is not None and (not isinstance(utilization, (int, float)) or not 0 < utilization <= 1):
        raise ParamcountError(f"= {describe_value(utilization)}", where="utilization", expected="above 0, at most 1")
    if (gpu is None) == (memory_bytes is None):
        raise ParamcountError("gpu cannot be combined with memory" if gpu else "needs a GPU or a size of memory")
    if ram_bytes is not None:
        check_size("ram", ram_bytes, limit=10**18)
    if gpu is None:
        size = check_size("memory", memory_bytes, limit=10**18)
        name = f"{format_bytes(size)} device"
        return 1, Device(name, size, overhead_bytes, utilization, ram_bytes=ram_bytes)
    number, name = parse_devices(gpu, where="gpu")
    found = find_gpu(name, ", or " + Argument("memory") + " with a size")
    device = Device(found.name, found.memory_bytes, overhead_bytes, utilization, ram_bytes=ram_bytes)
    return number, device._replace(is_gpu=True, note=found.note)


def list_device_notes(device: Device | None) -> list[str]:
    """What a user should know about the memory of a device."""
    return [device.note] if device and device.note else []


def check_size(name: str, value: object, *, limit: int = 10**9) -> int:
    """The value of an option.

    Raises: ParamcountError unless it is an integer from 1 to the limit.
    """
    if type(value) is not int or not 1 <= value <= limit:
        raise ParamcountError(f"= {describe_value(value)}", where=name, expected=f"an integer from 1 to {limit:,}")
    return value
