"""Tensors of a model matched with those of a file by name: matching, missing, wrong shape or unexpected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from paramcount.counting.tensors import iterate_names
from paramcount.errors import ParamcountError
from paramcount.flow import TensorRow

if TYPE_CHECKING:
    from paramcount.checkpoints.packed.quantised import LogicalTensor

FileTensors: TypeAlias = "Mapping[str, LogicalTensor]"
MOST_DECLARED = 1_000_000  # twice the limit for files


@dataclass(frozen=True)
class Matches:
    """The result for each tensor of the model and of the file."""

    matching: Mapping[str, TensorRow]  # the shape is as declared, or unknown in the file
    wrong_shape: Mapping[str, TensorRow]
    missing: Mapping[str, TensorRow]
    optional: Mapping[str, TensorRow]  # absent and not required: tied copies, legacy buffers, omitted MTP layers
    unexpected: tuple[str, ...]
    # Unfamiliar names in the file, each with a tensor of its shape.
    by_shape: Mapping[str, TensorRow] = field(default_factory=dict)


def expand_names(tensors: Iterable[TensorRow]) -> dict[str, TensorRow]:
    """{name in the file: tensor} for every layer and expert.

    >>> from paramcount.api import count
    >>> len(expand_names(count("deepseek-v3").tensors))
    46244

    Raises: ParamcountError if there are more than a checkpoint may have.
    """
    tensors = list(tensors)
    if (n := sum(tensor.copies for tensor in tensors)) > MOST_DECLARED:
        raise ParamcountError(f"has {n:,} tensors", expected=f"at most {MOST_DECLARED:,}")
    by_name: dict[str, TensorRow] = {}
    for tensor in tensors:
        for name in iterate_names(tensor.name, tensor.repeats):
            # If a name is declared twice, prefer the tensor that is not tied.
            if name not in by_name or (by_name[name].tied_to and not tensor.tied_to):
                by_name[name] = tensor
    return by_name


def match_tensors(
    declared: Mapping[str, TensorRow], file_tensors: FileTensors, not_saved: tuple[str, ...] = ()
) -> Matches:
    """Match the declared tensors with the file's. `not_saved`: as in `Sizes`."""
    matching: dict[str, TensorRow] = {}
    wrong_shape: dict[str, TensorRow] = {}
    absent: dict[str, TensorRow] = {}
    for name, tensor in declared.items():
        if name not in file_tensors:
            absent[name] = tensor
        elif file_tensors[name].shape is None or file_tensors[name].has_shape(tensor.shape):
            matching[name] = tensor
        else:
            wrong_shape[name] = tensor
    unexpected = tuple(name for name in file_tensors if name not in declared)
    has_mtp = any(tensor.part == "mtp" for tensor in (*matching.values(), *wrong_shape.values()))
    optional = {name: tensor for name, tensor in absent.items() if is_optional(tensor, not_saved, has_mtp=has_mtp)}
    missing = {name: tensor for name, tensor in absent.items() if name not in optional}
    matches = Matches(matching, wrong_shape, missing, optional, unexpected)
    is_unfamiliar = len(missing) > len(matching) + len(wrong_shape)
    return match_by_shape(matches, file_tensors) if is_unfamiliar else matches


def is_optional(tensor: TensorRow, not_saved: tuple[str, ...] = (), *, has_mtp: bool) -> bool:
    """Whether a file may omit a tensor. `has_mtp`: whether the file has MTP layers."""
    if tensor.tied_to is not None or tensor.role == "legacy_buffer":
        return True
    return (tensor.part == "mtp" and not has_mtp) or tensor.name.endswith(not_saved)


def match_by_shape(matches: Matches, file_tensors: FileTensors) -> Matches:
    """Missing tensors paired with unexpected ones of the same shape, because most names are unfamiliar."""
    names_by_shape = defaultdict(list)
    for name in reversed(matches.unexpected):
        names_by_shape[file_tensors[name].shape].append(name)
    missing: dict[str, TensorRow] = {}
    by_shape: dict[str, TensorRow] = {}
    for name, tensor in matches.missing.items():
        if names_by_shape.get(tensor.shape):
            by_shape[names_by_shape[tensor.shape].pop()] = tensor
        else:
            missing[name] = tensor
    unexpected = tuple(name for name in matches.unexpected if name not in by_shape)
    return replace(matches, missing=missing, unexpected=unexpected, by_shape=by_shape)


def find_renamed(matches: Matches, file_tensors: FileTensors) -> dict[str, str]:
    """{unexpected name: the missing one with its shape}, if no other tensor has that shape."""
    missing_shapes = Counter(tensor.shape for tensor in matches.missing.values())
    unexpected_shapes = Counter(file_tensors[name].shape for name in matches.unexpected)
    missing_names = {
        tensor.shape: name for name, tensor in matches.missing.items() if missing_shapes[tensor.shape] == 1
    }
    renamed = {}
    for name in matches.unexpected:
        shape = file_tensors[name].shape
        if shape in missing_names and unexpected_shapes[shape] == 1:
            renamed[name] = missing_names[shape]
    return renamed
