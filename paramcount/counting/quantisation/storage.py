"""Stored bytes of a quantised model, from its config.json or zoo entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from paramcount.counting.quantisation.scales import select_layers, select_packed, transpose_shape
from paramcount.errors import ParamcountError
from paramcount.formats.packing import Packing
from paramcount.formats.quantization_config import Plan, find_quantization_config, make_plan
from paramcount.formats.weights import compute_bytes, get_format
from paramcount.sizes import inner_configs

if TYPE_CHECKING:
    from paramcount.flow import TensorRow
    from paramcount.sizes import Sizes

TOWERS = ("vision", "audio", "projector")
ONE_BY_ONE = ("linear", "exported")  # scopes of methods that pack linear layers, each expert's matrices for themselves


class Storage(NamedTuple):
    """How a model is stored."""

    method: str  # as in quantization_config: fp8, gptq, …
    scheme: str  # display name: "FP8, 128 × 128 blocks"
    bytes: int  # of all tensors: parameters, buffers and MTP layers
    quantized: int  # packed parameters
    exact: bool  # False if the bytes depend on facts that are not in the config
    mtp: bool  # whether MTP layers are included


class ReleasedWeights(Protocol):
    """Contents of the released files besides parameters."""

    @property
    def legacy_buffers(self) -> bool: ...

    @property
    def mtp(self) -> bool: ...

    @property
    def copies(self) -> Sequence[str]: ...

    @property
    def quantisation(self) -> str | None: ...


class MatrixFacts(NamedTuple):
    """Properties of an architecture's matrices, see `Sizes`."""

    transposable: tuple[str, ...]
    linear_routers: tuple[str, ...]
    linear_subclasses: tuple[str, ...]
    linear_heads: tuple[str, ...]
    rebuilt_blocks: tuple[str, ...]
    modules: Mapping[str, tuple[str, ...]]
    table_copies: Mapping[str, str]
    has_other_linear_layers: bool


def read_storage(
    sizes: Sizes, release: ReleasedWeights | None, document: Mapping[str, Any], tensors: Iterable[TensorRow]
) -> Storage | None:
    """How a model is stored; None if it is not quantised.

    Raises: ParamcountError if the size is unknown.
    """
    plan = find_plan(release, document)
    if plan is None:
        return None
    listed = list(tensors)
    has_experts = any(tensor.component.startswith("experts") for tensor in listed)
    keeps_experts = any("experts" in group.selection.unquantised for group in plan.groups)
    if keeps_experts and has_experts and not str(document.get("transformers_version")).startswith("5."):
        raise ParamcountError(
            "was written by transformers before version 5, or by an unknown version, which may quantise experts"
        )
    return measure_storage(sizes, release, listed, plan)


def find_plan(release: ReleasedWeights | None, document: Mapping[str, Any]) -> Plan | None:
    """The plan that a zoo entry or a config.json states; None if the weights are not quantised.

    Raises: ParamcountError if the plan is not supported.
    """
    if release and (released := release.quantisation):
        format = get_format(released)
        return format.plan_own(format.released or {})
    config = find_quantization_config(document)
    return None if config is None else make_plan(config, document)


def measure_storage(sizes: Sizes, release: ReleasedWeights | None, tensors: Iterable[TensorRow], plan: Plan) -> Storage:
    """The bytes of the tensors that a plan stores."""
    total, quantized, mtp = 0, 0, False
    stored = (tensor for tensor in tensors if is_stored(tensor, release))
    for row in list_stored(sizes, stored, plan):
        total += row.bytes
        quantized += row.values if row.packing.layout != "plain" else 0
        mtp = mtp or row.tensor.part == "mtp"
    return Storage(plan.method, plan.text, total, quantized, plan.exact, mtp)


class StoredTensor(NamedTuple):
    """Equal copies of one tensor, stored alike."""

    tensor: TensorRow
    copies: int
    packing: Packing
    bytes: int  # of all copies
    is_unfit: bool = False  # whether the format would pack it, but cannot divide its rows into groups

    @property
    def values(self) -> int:
        """The values of all copies, scales not included."""
        return self.copies * prod(self.tensor.shape)


def list_stored(
    sizes: Sizes, tensors: Iterable[TensorRow], plan: Plan, *, hypothetical: bool = False
) -> Iterator[StoredTensor]:
    """How a plan stores each tensor. MTP layers are left out if the plan's method leaves them out: publishers release
    them, tools built on transformers do not.

    `hypothetical`: nobody states that the model is stored like this. Experts that share a tensor are then packed one by
    one, and matrices that the format cannot pack stay as they are, as do those of vision and audio encoders.

    Raises: ParamcountError if the plan does not determine how a tensor is stored, unless `hypothetical`.
    """
    facts, linear = merge_facts(sizes), plan.scope in ONE_BY_ONE
    tensors = tuple(tensors)
    has_mtp = plan.scope == "release" or names_mtp(tensors, plan)
    if linear and not hypothetical and not all(part.linear_by_component for part in list_classes(sizes)):
        raise ParamcountError(
            f"quantises linear layers, but which matrices of {sizes.reference} are linear layers is unknown"
        )
    if linear and not hypothetical:
        tensors = tuple(matrix for tensor in tensors for matrix in separate_experts(tensor))
    for tensor in tensors:
        if tensor.part == "mtp" and not has_mtp:
            continue
        rest: TensorRow | None = tensor
        is_unfit = False
        groups = [group for group in plan.groups if not tensor.float32 or tensor.name.endswith(group.selection.also)]
        for group in groups:
            routers = facts.linear_routers if plan.scope == "linear" else ()
            packed = rest and select_packed(rest, group.selection, routers)
            if packed is None or rest is None:
                continue
            if tensor.stacked is not None and plan.scope not in ("stacks", "release") and not hypothetical:
                raise ParamcountError(f"uses {plan.text}, whose layout for experts that share one tensor is unknown")
            try:
                is_transposed = group.selection.experts == "stacked" or tensor.name.endswith(facts.transposable)
                size = compute_packed_bytes(tensor, group.packing, is_transposed)
            except ParamcountError:
                if not hypothetical and not get_format(group.packing.layout).leaves_unfit:
                    raise
                is_unfit = hypothetical
                continue
            yield StoredTensor(packed, packed.copies, group.packing, packed.copies * size)
            rest = remove_layers(rest, packed)
        if rest is None:
            continue
        is_open = linear and not hypothetical and not plan.language_only
        if is_open and tensor.part in TOWERS and may_be_packed(tensor, plan):
            raise ParamcountError(
                f"quantises the {tensor.part} part, but which of its matrices are linear layers is unknown"
            )
        is_float32 = tensor.float32 == "always" or (tensor.float32 and plan.dtype == "F16")
        plain = Packing("plain", "F32" if is_float32 else plan.dtype)
        yield StoredTensor(rest, rest.copies, plain, rest.copies * compute_bytes(rest.shape, plain), is_unfit)


def remove_layers(tensor: TensorRow, others: TensorRow) -> TensorRow | None:
    """The tensor in the layers that the others are not in; None if there are none."""
    if tensor.layer is None or others.layer is None or tensor.layer.runs == others.layer.runs:
        return None
    taken = set(others.layer.indices)
    layers = [i for i in tensor.layer.indices if i not in taken]
    return select_layers(tensor, layers) if layers else None


def separate_experts(tensor: TensorRow) -> list[TensorRow]:
    """The matrices of the experts that share one tensor; the tensor itself if it is of no experts.

    Writers that pack linear layers take such experts apart, as the files of their releases show.
    """
    if tensor.stacked is None or tensor.stacked.merged or len(tensor.matrix) != 2:
        return [tensor]
    repeats = (*tensor.repeats, tensor.stacked)
    return [matrix._replace(stacked=None, repeats=repeats) for matrix in tensor.split()]


def names_mtp(tensors: Iterable[TensorRow], plan: Plan) -> bool:
    """Whether a plan names a module of the MTP layers, which the files then have."""
    modules = (name for tensor in tensors if tensor.part == "mtp" for name in list_modules(tensor))
    return any(group.selection.names(module) for module in modules for group in plan.groups)


def list_modules(tensor: TensorRow) -> list[str]:
    module = tensor.name.removesuffix(".weight").replace("{expert}", "0")
    indices = tensor.layer.indices if tensor.layer else (0,)
    return [module.replace("{layer}", str(i)) for i in indices]


def merge_facts(sizes: Sizes) -> MatrixFacts:
    """The combined facts of a model, its language model and its encoders."""
    return _merge_facts(list_classes(sizes))


def list_classes(sizes: Sizes) -> tuple[type[Sizes], ...]:
    """The classes of a model, its language model and its encoders."""
    inner = (getattr(sizes, name) for name in inner_configs(type(sizes)))
    return (type(sizes), *(type(part) for part in inner if part is not None))


@cache
def _merge_facts(parts: tuple[type[Sizes], ...]) -> MatrixFacts:
    names = {
        fact: tuple(dict.fromkeys(name for part in parts for name in getattr(part, fact)))
        for fact in MatrixFacts._fields[:-3]
    }
    return MatrixFacts(
        **names,
        modules={stored: names for part in parts for stored, names in part.modules.items()},
        table_copies={table: copy for part in parts for table, copy in part.table_copies.items()},
        has_other_linear_layers=any(part.has_other_linear_layers for part in parts),
    )


def is_stored(tensor: TensorRow, release: ReleasedWeights | None) -> bool:
    """Whether a file stores this tensor. `release`: the zoo entry's statement about the released files."""
    if tensor.part == "mtp":
        has_mtp = release is None or release.mtp
        has_copies = release is not None and "mtp" in release.copies
        return has_mtp and (not tensor.tied_to or has_copies)
    if tensor.tied_to:
        return release is not None and "lm_head" in release.copies and tensor.component == "lm_head"
    return tensor.role != "legacy_buffer" or (release is not None and release.legacy_buffers)


def may_be_packed(tensor: TensorRow, plan: Plan) -> bool:
    """Whether a vision or audio tensor may be a linear layer that the plan quantises."""
    if len(tensor.shape) != 2 or not tensor.name.endswith(".weight") or tensor.component == "position":
        return False
    return any(group.selection.quantises(module) for module in list_modules(tensor) for group in plan.groups)


def compute_packed_bytes(tensor: TensorRow, packing: Packing, is_transposed: bool) -> int:
    """Bytes of one packed tensor, scales included."""
    shape = transpose_shape(tensor.shape) if is_transposed else tensor.shape
    format = get_format(packing.layout)
    if not format.can_store(shape, packing):
        outputs, inputs = shape[-2:]
        raise ParamcountError(
            f"uses {format.get_label(packing)}, which cannot store {tensor.name}: "
            f"{outputs:,} × {inputs:,} in groups of {packing.block[1] or inputs:,}"
        )
    return format.count_bytes(shape, packing)
