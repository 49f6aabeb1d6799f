"""Groups of tensors in a checkpoint that represent one packed tensor, found by their names and types."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.checkpoints.packed.shapes import SCALES, is_fp4, is_fp8
from paramcount.counting.quantisation.configs import QuantizationScheme
from paramcount.counting.quantisation.packing import FP8, Piece

Member: TypeAlias = tuple[str, str]  # name in the file, and role

WORD_TYPES = (None, "I32", "U32", "I16")
BYTE_TYPES = (None, "U8")
WORD_COMPANIONS = (
    ("scales", "scale"),
    ("qzeros", "zero point"),
    ("scaled_zeros", "zero point"),
    ("g_idx", "group index"),
)
ACTIVATION = "activation_scale"
ACTIVATIONS = ("input_scale", ACTIVATION, "input_scale_ub", "output_scale", "k_scale", "v_scale", "kv_scale", "q_scale")
CACHE_SCALES = ("k_scale", "v_scale", "kv_scale", "q_scale", "prob_scale")  # of attention; they belong to no matrix
ENDINGS = ("_scale_inv", "_scale")  # of scales, after the name of the values
MODULE_ENDINGS = ("scale", "qscale_weight")  # in place of `weight`: DeepSeek-V4's, Mistral Large 4's
SCALE_NAMES = (*ENDINGS, *MODULE_ENDINGS)  # ends of the names of scales
FOUR_BITS = "fp8 of four bits"
WEIGHTS_MISSING = "packed weights are missing"
SCALES_MISSING = "scales are missing"


class Group(NamedTuple):
    """Tensors of a file that represent one tensor."""

    family: str  # words | fp8 | fp8 of four bits | mxfp4
    name: str  # in an unquantised file
    names: tuple[str, ...]  # in this file, values first
    pieces: tuple[Piece, ...]  # for each of `names`; () if some shapes are unknown
    roles: tuple[str, ...]  # of each of `names`: values | packed weights | scale …
    ending: str = ""  # of the name of the scales
    transposed: bool = False  # whether the model's tensor is [..., inputs, outputs]
    shape: tuple[int, ...] | None = None  # if known without the pieces
    format: str | None = None  # according to the names


class Grouping(NamedTuple):
    """The packed tensors of a checkpoint."""

    groups: tuple[Group, ...]
    auxiliary: Mapping[str, str]  # {scale, zero point or other tensor that belongs to values: its role}
    faults: tuple[tuple[str, str], ...]  # (name, problem)


def group_packed(tensors: Mapping[str, FileTensor], config: QuantizationScheme) -> Grouping:
    """The packed tensors of a checkpoint."""
    groups: list[Group] = []
    auxiliary: dict[str, str] = {}
    activations = {name for name in tensors if name.endswith(ACTIVATIONS)}
    has_scales = any(name.endswith(SCALE_NAMES) for name in tensors)
    for name, tensor in tensors.items():
        if group := find_group(name, tensor, tensors, config, activations, has_scales=has_scales):
            groups.append(group)
            auxiliary |= zip(group.names[1:], group.roles[1:])
    families = {group.family for group in groups}
    values = {group.names[0] for group in groups}
    faults = []
    for name, tensor in tensors.items():
        if name not in auxiliary and name not in values:
            last = name.rpartition(".")[2]
            if last in CACHE_SCALES and "fp8" in families and tensor.dtype in (None, *SCALES):
                auxiliary[name] = "activation scale"
            elif problem := _describe_stray(name, last, tensor, families, config, tensors):
                faults.append((name, problem))
    return Grouping(tuple(groups), auxiliary, tuple(faults))


def find_group(
    name: str,
    tensor: FileTensor,
    tensors: Mapping[str, FileTensor],
    config: QuantizationScheme,
    activations: Collection[str],
    *,
    has_scales: bool,
) -> Group | None:
    """The group whose values this tensor contains, or None if it contains no packed values.

    Args:
        activations: names that may be activation scales
        has_scales: whether any tensor of the checkpoint is named like a scale
    """
    stem, dot, last = name.rpartition(".")
    if last == "qweight" and tensor.dtype in WORD_TYPES:
        companions = [(f"{stem}{dot}{ending}", role) for ending, role in WORD_COMPANIONS]
        members = [(name, "packed weights"), *((other, role) for other, role in companions if other in tensors)]
        return _build_group("words", f"{stem}{dot}weight", members, tensors, format=_name_word_method(members, config))
    if name.endswith(("_blocks", ".blocks")) and tensor.dtype in BYTE_TYPES:
        scales = f"{name[:-6]}scales"
        if scales in tensors and tensors[scales].dtype in BYTE_TYPES:
            members = [(name, "packed weights"), (scales, "scale")]
            return _build_group("mxfp4", name[:-7], members, tensors, transposed=name[-7] == "_", format="MXFP4")
    if has_scales and (tensor.dtype is None or tensor.dtype in FP8 or tensor.dtype in ("I8", "U8", "F4")):
        return _find_scaled_group(name, tensor, tensors, config, activations)
    return None


def _find_scaled_group(
    name: str,
    tensor: FileTensor,
    tensors: Mapping[str, FileTensor],
    config: QuantizationScheme,
    activations: Collection[str],
) -> Group | None:
    """The group of values of eight or four bits and their scales."""
    is_weight = name.endswith(".weight") or name == "weight"
    stem = name[: -len("weight")]
    for ending in (*ENDINGS, *MODULE_ENDINGS) if is_weight else ENDINGS:
        scales = (name if ending in ENDINGS else stem) + ending
        if scales not in tensors:
            continue
        family = _find_family(tensor.dtype, tensors[scales].dtype, ending, config)
        if family is None:
            continue
        members = [(name, "values"), (scales, "scale")]
        if activations:
            candidates = [f"{name}_{ACTIVATION}", *(f"{stem}{end}" for end in ACTIVATIONS if is_weight)]
            members += [(other, "activation scale") for other in candidates if other in activations]
        if family == "fp8":
            format = tensor.dtype or "FP8"
            return _build_group(family, name, members, tensors, ending=ending, shape=tensor.shape, format=format)
        return _build_group(family, name, members, tensors, ending=ending, format="FP4")
    return None


def _find_family(values: str | None, scales: str | None, ending: str, config: QuantizationScheme) -> str | None:
    """The family of values and scales with these types; None if they do not belong together."""
    if values is None or scales is None:  # without types, only one ending is unambiguous
        return "fp8" if ending == ENDINGS[0] or config.method == "fp8" else None
    if is_fp8(values, scales):
        return "fp8"
    return FOUR_BITS if is_fp4(values, scales) else None


def _build_group(
    family: str,
    name: str,
    members: Sequence[Member],
    tensors: Mapping[str, FileTensor],
    *,
    ending: str = "",
    transposed: bool = False,
    shape: tuple[int, ...] | None = None,
    format: str | None = None,
) -> Group:
    names, roles = zip(*members)
    pieces = _build_pieces(tuple([(role, *tensors[member][1:3]) for member, role in members]))
    return Group(family, name, names, pieces, roles, ending, transposed, shape, format)


@lru_cache(4096)
def _build_pieces(members: tuple[tuple[str, str | None, tuple[int, ...] | None], ...]) -> tuple[Piece, ...]:
    """The pieces with these roles, types and shapes; () if a type or shape is unknown."""
    pieces = [Piece(role, dtype, shape) for role, dtype, shape in members if dtype is not None and shape is not None]
    return tuple(pieces) if len(pieces) == len(members) else ()


def _name_word_method(members: Sequence[Member], config: QuantizationScheme) -> str:
    """GPTQ or AWQ, according to the names and the config."""
    if any(role == "group index" for _, role in members):
        return "GPTQ"
    return config.name if config.method == "words" else "GPTQ or AWQ"


def _describe_stray(
    name: str,
    last: str,
    tensor: FileTensor,
    families: set[str],
    config: QuantizationScheme,
    tensors: Mapping[str, FileTensor],
) -> str | None:
    """The problem with a tensor that belongs to no group; None if there is none."""
    has_fp8 = bool(families & {"fp8", FOUR_BITS}) or config.method == "fp8"
    if last in ("qzeros", "g_idx") and tensor.dtype in (None, "I32"):
        return WEIGHTS_MISSING
    if last in ("scales", "scaled_zeros") and "words" in families and tensor.dtype in (None, *SCALES):
        return WEIGHTS_MISSING
    if last.endswith("_scale_inv") or (last == "weight_scale" and has_fp8 and tensor.dtype in (None, *SCALES)):
        return WEIGHTS_MISSING
    if "mxfp4" in families or config.method == "mxfp4":
        if name.endswith(("_scales", ".scales")) and tensor.dtype in BYTE_TYPES and f"{name[:-6]}blocks" not in tensors:
            return WEIGHTS_MISSING
        if name.endswith(("_blocks", ".blocks")) and tensor.dtype in BYTE_TYPES:
            return SCALES_MISSING
    if tensor.dtype in FP8 and has_fp8 and tensor.shape is not None and len(tensor.shape) > 1:
        return SCALES_MISSING
    return None
