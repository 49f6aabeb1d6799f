"""Groups of tensors in a checkpoint that represent one packed tensor, found by the names and types of each format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.formats.packing import SCALES, Companion, Pattern, Pieces, Shape, Signature, StoredPiece
from paramcount.formats.quantization_config import Stated, make_unsupported_error
from paramcount.formats.tensor_entries import name_tensor
from paramcount.formats.weights import get_format, load_formats

CACHE_SCALES = ("k_scale", "v_scale", "kv_scale", "q_scale", "prob_scale")  # of attention; they belong to no matrix
COMMON = ("I8", "U8", "F4")  # types of other tensors, too
WEIGHTS_MISSING = "packed weights are missing"
SCALES_MISSING = "scales are missing"


class StoredGroup(NamedTuple):
    """Tensors of a file that represent one tensor."""

    pattern: Pattern
    name: str  # in an unquantised file
    names: tuple[str, ...]  # in this file, values first
    pieces: Pieces  # for each of `names`; () if some shapes are unknown
    roles: tuple[str, ...]  # of each of `names`: packed weights | scale …
    ending: str  # of the name of the scales
    shape: Shape | None  # if known without the pieces
    format: str  # according to the names


class Grouping(NamedTuple):
    """The packed tensors of a checkpoint."""

    groups: tuple[StoredGroup, ...]
    auxiliary: Mapping[str, str]  # {scale, zero point or other tensor that belongs to values: its role}
    faults: tuple[tuple[str, str], ...]  # (name, problem)


@cache
def list_patterns() -> tuple[Pattern, ...]:
    """The patterns of all formats, each once."""
    return tuple(dict.fromkeys(pattern for format in load_formats() for pattern in format.patterns))


@cache
def list_telling_endings() -> tuple[str, ...]:
    """Endings of names that may tell that values are missing."""
    companions = (companion for pattern in list_patterns() for companion in pattern.companions)
    return tuple({companion.ending for companion in companions if companion.tells})


@cache
def list_signatures(ending: str) -> tuple[Signature, ...]:
    """The schemes that cannot be verified and have a tensor with this last word."""
    signatures = (signature for format in load_formats() for signature in format.signatures)
    return tuple(signature for signature in signatures if signature[1][0][0] == ending)


def group_packed(tensors: Mapping[str, FileTensor], stated: Stated) -> Grouping:
    """The packed tensors of a checkpoint.

    Raises: ParamcountError that names a scheme that cannot be verified, and one of its tensors.
    """
    groups: list[StoredGroup] = []
    auxiliary: dict[str, str] = {}
    patterns = [pattern for pattern in list_patterns() if is_possible(pattern, tensors)]
    patterns_of = {
        dtype: [pattern for pattern in patterns if is_of(dtype, pattern.dtypes)]
        for dtype in {tensor.dtype for tensor in tensors.values()}
    }
    for name, tensor in tensors.items():
        for pattern in patterns_of[tensor.dtype]:
            if group := find_group(name, pattern, tensors, stated):
                groups.append(group)
                auxiliary |= zip(group.names[1:], group.roles[1:])
                break
    values = {group.names[0] for group in groups}
    rest = {name: tensor for name, tensor in tensors.items() if name not in auxiliary and name not in values}
    reject_unsupported(rest, tensors)
    families = {group.pattern.family for group in groups}
    has_activations = any("activation scale" in {each.what for each in group.pattern.companions} for group in groups)
    used = [pattern for pattern in list_patterns() if pattern.needs and pattern.family in families | {stated.family}]
    faults = []
    for name, tensor in rest.items():
        if not used and not name.endswith(list_telling_endings()):
            continue
        last = name.rpartition(".")[2]
        if last in CACHE_SCALES and has_activations and is_of(tensor.dtype, SCALES):
            auxiliary[name] = "activation scale"
        elif problem := describe_stray(name, tensor, families, stated):
            faults.append((name, problem))
    return Grouping(tuple(groups), auxiliary, tuple(faults))


def is_possible(pattern: Pattern, tensors: Iterable[str]) -> bool:
    """Whether a checkpoint may have tensors with this pattern: all checkpoints have weights, few have scales."""
    endings = tuple(companion.ending for companion in pattern.companions if companion.what in pattern.needs)
    return not endings or any(name.endswith(endings) for name in tensors)


def is_of(dtype: str | None, dtypes: Sequence[str]) -> bool:
    """Whether a tensor may have one of these types. None: its type is unknown."""
    return dtype is None or not dtypes or dtype in dtypes


def has_ending(name: str, ending: str) -> bool:
    return name.endswith(ending) and (
        not ending or ending[0] in "_." or name in (ending, f"{name[: -len(ending) - 1]}.{ending}")
    )


def find_group(name: str, pattern: Pattern, tensors: Mapping[str, FileTensor], stated: Stated) -> StoredGroup | None:
    """The group whose values this tensor contains, or None if it contains no values of the pattern."""
    if not has_ending(name, pattern.values):
        return None
    stem = name[: len(name) - len(pattern.values)]
    found: list[Companion] = []
    for companion in pattern.companions:
        other = tensors.get(stem + companion.ending)
        if other is None or (pattern.needs and not is_of(other.dtype, companion.dtypes)):
            continue
        if companion.what != "scale" or all(each.what != "scale" for each in found):
            found.append(companion)
    if not {companion.what for companion in found}.issuperset(pattern.needs):
        return None
    names = (name, *(stem + companion.ending for companion in found))
    if pattern.is_shared and any(tensors[name].dtype is None for name in names[:2]):
        tells = any(companion.tells in ("always", "any type") for companion in found)
        if not tells and stated.family != pattern.family:
            return None
    what = "values" if pattern.values in ("", "weight") else "packed weights"
    roles = (what, *(companion.what for companion in found))
    ending = next((companion.ending for companion in found if companion.what == "scale"), "")
    format = get_format(pattern.layout).name_group(tensors[name].dtype, roles, stated)
    pieces = build_pieces(tuple([(role, *tensors[member][1:3]) for role, member in zip(roles, names)]))
    shape = tensors[name].shape if what == "values" else None
    return StoredGroup(pattern, stem + pattern.name, names, pieces, roles, ending, shape, format)


@lru_cache(4096)
def build_pieces(members: tuple[tuple[str, str | None, Shape | None], ...]) -> Pieces:
    """The pieces with these roles, types and shapes; () if a type or shape is unknown."""
    pieces = [
        StoredPiece(what, dtype, shape) for what, dtype, shape in members if dtype is not None and shape is not None
    ]
    return tuple(pieces) if len(pieces) == len(members) else ()


def describe_stray(name: str, tensor: FileTensor, found: set[str], stated: Stated) -> str | None:
    """The problem with a tensor that belongs to no group; None if there is none. `found`: families of the groups."""
    for pattern in list_patterns():
        is_used = pattern.family in found or pattern.family == stated.family
        telling = ("always", *(["used"] if is_used else []), *(["found"] if pattern.family in found else []))
        for ending, _, dtypes, tells in pattern.companions:
            is_told = tells == "any type" or (tells in telling and is_of(tensor.dtype, dtypes))
            if is_told and has_ending(name, ending):
                return WEIGHTS_MISSING
        if is_used and pattern.needs and has_ending(name, pattern.values) and may_be_values(tensor, pattern):
            return SCALES_MISSING
    return None


def may_be_values(tensor: FileTensor, pattern: Pattern) -> bool:
    """Whether a tensor with the name of values can only be values."""
    if not pattern.is_shared:
        return is_of(tensor.dtype, pattern.dtypes)
    is_matrix = tensor.shape is not None and len(tensor.shape) > 1
    return is_matrix and tensor.dtype in pattern.dtypes and tensor.dtype not in COMMON


def reject_unsupported(names: Iterable[str], tensors: Mapping[str, FileTensor]) -> None:
    """Raises: ParamcountError that names a scheme that cannot be verified, and one of its tensors."""
    for name in names:
        stem, dot, last = name.rpartition(".")
        for scheme, endings in list_signatures(last):
            found = ((tensors.get(f"{stem}{dot}{ending}"), dtypes) for ending, dtypes in endings)
            if all(tensor and (not dtypes or tensor.dtype in dtypes) for tensor, dtypes in found):
                raise make_unsupported_error(scheme).add_location(name_tensor(name))
