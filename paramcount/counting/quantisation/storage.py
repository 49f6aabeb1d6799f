"""Stored bytes of a quantised model, from its config.json or zoo entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import BaseModel

from paramcount.counting.quantisation.packing import WORD, WORDS, Packing, compute_bytes
from paramcount.counting.quantisation.plans import RELEASED, Plan, make_plan, quantization_config
from paramcount.counting.quantisation.scales import select_packed, transpose_shape
from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.counting.tensors import Tensor
    from paramcount.sizes import Sizes

TOWERS = ("vision", "audio", "projector")
WITH_MTP = (
    "fp8",
    "mxfp8",
)  # methods of publishers who release the MTP layers; tools built on transformers leave them out
WHOLE_MODEL = ("bitsandbytes", "compressed-tensors")  # methods that quantise the linear layers of towers, too


class Storage(NamedTuple):
    """How a model is stored."""

    method: str  # as in quantization_config: fp8, gptq, …
    scheme: str  # display name: "FP8, 128 × 128 blocks"
    bytes: int  # of all tensors: parameters, buffers and, if the config has MTP layers, those
    quantized: int  # packed parameters
    exact: bool  # False if bytes depend on what no config says
    mtp: bool  # whether MTP layers are included


class Release(Protocol):
    """Contents of the released files besides parameters."""

    @property
    def legacy_buffers(self) -> bool: ...

    @property
    def mtp(self) -> bool: ...

    @property
    def copies(self) -> Sequence[str]: ...

    @property
    def quantisation(self) -> str | None: ...


class Facts(NamedTuple):
    """Properties of an architecture's matrices, see `Sizes`."""

    float32: tuple[str, ...]
    float32_if_float16: tuple[str, ...]
    transposable: tuple[str, ...]
    linear_routers: tuple[str, ...]
    linear_by_component: bool


def read_storage(
    sizes: Sizes, release: Release | None, document: Mapping[str, Any], tensors: Iterable[Tensor]
) -> Storage | None:
    """How a model is stored; None if it is not quantised.

    Raises: ParamcountError if the size is unknown.
    """
    if release:
        released = release.quantisation
        plan = released and Plan(released, *RELEASED[released], "BF16")
        return measure_storage(sizes, release, tensors, plan) if plan else None
    config = quantization_config(document)
    if config is None:
        return None
    plan, listed = make_plan(config, document), list(tensors)
    has_experts = any(tensor.component.startswith("experts") for tensor in listed)
    if plan.method == "bitsandbytes" and has_experts and not str(document.get("transformers_version")).startswith("5."):
        raise ParamcountError(
            "was written by an unknown or older version of transformers, and only since version 5 bitsandbytes skips experts"
        )
    return measure_storage(sizes, release, listed, plan)


def measure_storage(sizes: Sizes, release: Release | None, tensors: Iterable[Tensor], plan: Plan) -> Storage:
    """The bytes of the tensors that a plan stores."""
    total, quantized, mtp = 0, 0, False
    facts, linear = merge_facts(sizes), plan.method in WHOLE_MODEL
    if linear and not facts.linear_by_component:
        raise ParamcountError(
            f"quantises the linear layers of {sizes.reference}, and which of its matrices these are is not known"
        )
    for tensor in tensors:
        if not is_stored(tensor, release) or (tensor.part == "mtp" and plan.method not in WITH_MTP):
            continue
        mtp = mtp or tensor.part == "mtp"
        plain = get_dtype(tensor, facts, plan.dtype)
        left = tensor.copies
        for group in plan.groups if not is_named(tensor, (*facts.float32, *facts.float32_if_float16)) else ():
            packed = select_packed(
                tensor, group.scheme._replace(routers=facts.linear_routers) if linear else group.scheme
            )
            if packed is None or not left:
                continue
            check_plan(tensor, plan)
            copies = min(left, packed.copies)
            left -= copies
            total += copies * compute_packed_bytes(tensor, group.packing, tensor.name.endswith(facts.transposable))
            quantized += copies * prod(tensor.shape)
        if left and plan.method in WHOLE_MODEL and tensor.part in TOWERS and may_be_packed(tensor, plan):
            raise ParamcountError(
                f"does not exclude the {tensor.part} part, and which of its matrices are quantised is not known"
            )
        total += left * compute_bytes(tensor.shape, Packing("plain", plain))
    return Storage(plan.method, plan.text, total, quantized, plan.exact, mtp)


def merge_facts(sizes: Sizes) -> Facts:
    """The combined facts of a model, its language model and its encoders."""
    inner = [value for name in type(sizes).model_fields if isinstance(value := getattr(sizes, name), BaseModel)]
    every: list[Any] = [sizes, *inner]
    words = {
        name: tuple(dict.fromkeys(word for part in every for word in getattr(part, name)))
        for name in Facts._fields[:-1]
    }
    return Facts(**words, linear_by_component=all(part.linear_by_component for part in every))


def get_dtype(tensor: Tensor, facts: Facts, dtype: str) -> str:
    """The dtype of a tensor that is not quantised, given the model's dtype."""
    if is_named(tensor, facts.float32) or (dtype == "F16" and is_named(tensor, facts.float32_if_float16)):
        return "F32"
    return dtype


def is_named(tensor: Tensor, words: tuple[str, ...]) -> bool:
    """Whether a tensor's name contains one of these as whole words."""
    return any(f".{word}." in f".{tensor.name}." for word in words)


def is_stored(tensor: Tensor, release: Release | None) -> bool:
    """Whether a file holds a tensor of its own. `release`: the zoo entry's statement about the released files."""
    if tensor.part == "mtp":
        return (release is None or release.mtp) and (
            not tensor.tied_to or (release is not None and "mtp" in release.copies)
        )
    if tensor.tied_to:
        return release is not None and "lm_head" in release.copies and tensor.component == "lm_head"
    return tensor.role != "legacy_buffer" or (release is not None and release.legacy_buffers)


def may_be_packed(tensor: Tensor, plan: Plan) -> bool:
    """Whether a vision or audio tensor may be a linear layer that the plan quantises."""
    name = tensor.name.removesuffix(".weight").replace("{layer}", "0")
    return len(tensor.shape) == 2 and name != tensor.name and any(group.scheme.takes(name) for group in plan.groups)


def check_plan(tensor: Tensor, plan: Plan) -> None:
    """Nothing if the config alone tells how a tensor is stored."""
    if plan.method in ("fp8", "mxfp8", "mxfp4"):
        return
    if tensor.stacked is not None:
        raise ParamcountError(f"how {plan.text} stores experts that share one tensor is not known")


def compute_packed_bytes(tensor: Tensor, packing: Packing, inputs_first: bool) -> int:
    """Bytes of one packed tensor, scales included."""
    other_way = packing.layout == "mxfp4" or inputs_first
    shape = transpose_shape(tensor.shape) if other_way else tensor.shape
    outputs, inputs = shape[-2:]
    group = packing.block[1]
    if packing.layout in WORDS and (
        inputs * packing.bits % WORD or outputs * packing.bits % WORD or (group and inputs % group)
    ):
        raise ParamcountError(
            f"{packing.format} cannot hold {tensor.name}: {outputs:,} × {inputs:,} in groups of {group or inputs:,}"
        )
    return compute_bytes(shape, packing)
