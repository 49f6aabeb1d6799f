"""How a model is trained: optimiser, precision, recomputation and parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.costs.devices import check_size
from paramcount.costs.training.optimizers import OPTIMIZERS
from paramcount.errors import ParamcountError, make_choice_error

CHECKPOINTING = ("none", "selective", "full")
OFFLOADS = ("cpu", "nvme")
PLAIN_WEIGHTS = ("f32", "bf16", "f16")  # dtypes of frozen weights that are not packed
MOST_GPUS = 10**6


class Precision(NamedTuple):
    """The bytes of one value."""

    label: str
    weights: int
    gradients: int
    state: int  # of the optimiser
    master: int  # of the copy of the weights that the optimiser updates; 0 if it updates the weights themselves
    activations: int


PRECISIONS: Mapping[str, Precision] = {
    "bf16-mixed": Precision("BF16 mixed precision", 2, 2, 4, 4, 2),
    "bf16": Precision("BF16", 2, 2, 2, 0, 2),
    "fp32": Precision("FP32", 4, 4, 4, 0, 4),
}
DTYPE_LABELS = {2: "BF16", 4: "FP32"}


class Setup(NamedTuple):
    """How a model is trained."""

    optimizer: str = "adamw"
    precision: str = "bf16-mixed"
    context: int = 1
    batch: int = 1  # sequences per micro-batch and GPU
    source: int | None = None  # encoder input length
    checkpointing: str = "none"
    flash_attention: bool = True
    dropout: bool = False  # of residual branches and attention weights
    chunked_loss: bool = False  # computed for a chunk of the tokens at a time, so that there are no logits of all
    zero: int = 0  # 1: the optimiser state is divided among the data-parallel GPUs; 2: gradients, too; 3: weights, too
    dp: int = 1
    tp: int = 1
    pp: int = 1
    sp: bool = False  # whether norms and dropout are divided among the `tp` GPUs, too
    ep: int = 1
    weights: str = "bf16"  # the dtype of frozen weights
    offload_optimizer: str = ""  # cpu | nvme: where DeepSpeed keeps and updates the state of the optimiser
    offload_params: str = ""  # cpu | nvme: where it keeps the weights

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp

    def describe_parallelism(self) -> str:
        """Such as "DP=8, ZeRO 3"; "" for one GPU."""
        sizes = {name.upper(): getattr(self, name) for name in ("dp", "tp", "pp", "ep")}
        names = [f"{name}={n}" for name, n in sizes.items() if n > 1]
        return ", ".join([*names, *(["SP"] if self.sp else []), *([f"ZeRO {self.zero}"] if self.zero else [])])


def make_setup(given: Mapping[str, Any], devices: int | None = None) -> Setup:
    """How a model is trained. `given` has the fields of Setup, and `fsdp` GPUs, which hold a part of everything each:
    dp with ZeRO 3.

    `devices`: if given, data parallelism uses those that nothing else does.

    Raises: ParamcountError for an unknown name, and for sizes that are not positive integers or do not divide.
    """
    words = {"optimizer": OPTIMIZERS, "precision": PRECISIONS, "checkpointing": CHECKPOINTING}
    for name, known in words.items():
        if given[name] not in tuple(known):
            raise make_choice_error(given[name], known, where=name)
    offloads = {name: given[name] or "" for name in ("offload_optimizer", "offload_params")}
    for name, value in offloads.items():
        if given[name] is not None and value not in OFFLOADS:
            raise make_choice_error(given[name], OFFLOADS, where=name)
    dp, fsdp, zero = given["dp"], given["fsdp"], given["zero"]
    sizes = {name: given[name] for name in ("tp", "pp", "ep")}
    sizes |= {name: n for name, n in {"dp": dp, "fsdp": fsdp}.items() if n is not None}
    for name, n in sizes.items():
        check_size(name, n, limit=MOST_GPUS)
    if fsdp is not None and (dp is not None or zero is not None):
        raise ParamcountError("fsdp cannot be combined with dp or zero, because it sets both")
    if zero not in (None, 0, 1, 2, 3) or isinstance(zero, bool):
        raise ParamcountError(f"= {zero!r}", where="zero", expected="1, 2 or 3")
    if dp is None:
        dp = fsdp if fsdp is not None else max(1, (devices or 1) // (given["tp"] * given["pp"]))
    for name in ("context", "batch", *(["source"] if given["source"] is not None else [])):
        check_size(name, given[name])
    known_fields = {name: value for name, value in given.items() if name in Setup._fields}
    weights = given["weights"] or ("f32" if given["precision"] == "fp32" else "bf16")
    setup = Setup(
        **known_fields | {"zero": 3 if fsdp is not None else int(zero or 0), "dp": dp, "weights": weights} | offloads
    )
    check_offload(setup)
    if setup.dp % setup.ep:
        choices = [n for n in range(1, setup.dp + 1) if not setup.dp % n]
        raise ParamcountError(f"= {setup.ep} does not divide dp = {setup.dp}", where="ep", choices=choices)
    if setup.sp and setup.tp == 1:
        raise ParamcountError("sp requires tp")
    if devices not in (None, 1, setup.gpus):
        found = f"{setup.describe_parallelism() or 'dp 1'} uses {setup.gpus} devices, but there are {devices}"
        raise ParamcountError(found)
    return setup


def check_offload(setup: Setup) -> None:
    """Raises: ParamcountError for what DeepSpeed does not offload."""
    if setup.offload_optimizer and not setup.zero:
        raise ParamcountError("requires zero: 1, 2 or 3", where="offload_optimizer")
    if setup.offload_params and setup.zero < 3:
        raise ParamcountError("requires zero = 3", where="offload_params")
