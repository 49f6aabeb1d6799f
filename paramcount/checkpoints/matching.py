"""Declared tensors against those of a file, by name: which are there, which are missing, which have another shape, which nobody declared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from paramcount.counting.tensors import Tensor
from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.checkpoints.packed.quantised import LogicalTensor

Names: TypeAlias = "Mapping[str, LogicalTensor]"
MOST_DECLARED = 1_000_000  # twice what any file may hold


@dataclass(frozen=True)
class Matches:
    """What each name of the declaration and of the file came to."""

    there: Mapping[str, Tensor]  # of the declared shape, or of one that nobody knows
    misshapen: Mapping[str, Tensor]
    missing: Mapping[str, Tensor]
    absent: Mapping[str, Tensor]  # not there, and need not be: tied copies, legacy buffers, MTP layers that a release leaves out
    unexpected: tuple[str, ...]
    by_shape: Mapping[str, Tensor] = field(default_factory=dict)  # names of the file that nobody declared, each with a tensor of its shape


def expand_names(tensors: Iterable[Tensor]) -> dict[str, Tensor]:
    """Every tensor by its name in the file.

    >>> from paramcount.api import count
    >>> len(expand_names(count("deepseek-v3").tensors))
    46244

    Raises: ParamcountError where there are more than any checkpoint may hold.
    """
    tensors = list(tensors)
    if (n := sum(tensor.copies for tensor in tensors)) > MOST_DECLARED:
        raise ParamcountError(f"has {n:,} tensors", expected=f"at most {MOST_DECLARED:,}")
    found: dict[str, Tensor] = {}
    for tensor in tensors:
        for name in iterate_names(tensor):
            if name not in found or (found[name].tied_to and not tensor.tied_to):  # what is declared twice is tied but once
                found[name] = tensor
    return found


def iterate_names(tensor: Tensor) -> Iterator[str]:
    """Its name in each layer and expert."""
    axes = [repeat.axis for repeat in tensor.repeats]
    for indices in product(*(repeat.indices for repeat in tensor.repeats)):
        name = tensor.name
        for axis, index in zip(axes, indices):
            name = name.replace(f"{{{axis}}}", str(index), 1)
        yield name


def match_tensors(declared: Mapping[str, Tensor], held: Names, not_saved: tuple[str, ...] = ()) -> Matches:
    """The declared tensors against the file's. `not_saved`: as of `Sizes`."""
    there: dict[str, Tensor] = {}
    misshapen: dict[str, Tensor] = {}
    lacking: dict[str, Tensor] = {}
    for name, tensor in declared.items():
        if name not in held:
            lacking[name] = tensor
        elif held[name].shape is None or held[name].has_shape(tensor.shape):
            there[name] = tensor
        else:
            misshapen[name] = tensor
    unexpected = tuple(name for name in held if name not in declared)
    mtp = any(tensor.part == "mtp" for tensor in (*there.values(), *misshapen.values()))
    absent = {name: tensor for name, tensor in lacking.items() if is_optional(tensor, mtp, not_saved)}
    missing = {name: tensor for name, tensor in lacking.items() if name not in absent}
    if len(missing) > len(there) + len(misshapen):
        return _by_shape(Matches(there, misshapen, missing, absent, unexpected), held)
    return Matches(there, misshapen, missing, absent, unexpected)


def is_optional(tensor: Tensor, mtp: bool, not_saved: tuple[str, ...] = ()) -> bool:
    """Whether a file may do without a tensor. `mtp`: it holds some of the MTP layers."""
    return tensor.tied_to is not None or tensor.role == "legacy_buffer" or (tensor.part == "mtp" and not mtp) or tensor.name.endswith(not_saved)


def _by_shape(found: Matches, held: Names) -> Matches:
    """Where most of the names are strange: what is missing, found under any name that has its shape."""
    spare = defaultdict(list)
    for name in reversed(found.unexpected):
        spare[held[name].shape].append(name)
    missing: dict[str, Tensor] = {}
    paired: dict[str, Tensor] = {}
    for name, tensor in found.missing.items():
        if spare.get(tensor.shape):
            paired[spare[tensor.shape].pop()] = tensor
        else:
            missing[name] = tensor
    unexpected = tuple(name for name in found.unexpected if name not in paired)
    return Matches(found.there, found.misshapen, missing, found.absent, unexpected, paired)


def is_counted(tensor: Tensor) -> bool:
    """Whether a tensor's values are in the total."""
    return tensor.role == "parameter" and tensor.tied_to is None and tensor.part != "mtp"


def split_by_component(tensor: Tensor) -> Sequence[tuple[str, int]]:
    """What one copy of a tensor holds of each component.

    >>> from paramcount.api import count
    >>> split_by_component(next(t for t in count("gpt2-small").tensors if t.name.endswith("c_attn.weight")))
    [('qkv.q', 589824), ('qkv.k', 589824), ('qkv.v', 589824)]
    """
    n = tensor.elements // tensor.copies
    if not tensor.splits:
        return [(tensor.component, n)]
    width = sum(width for _, width in tensor.splits)
    return [(component, n // width * part) for component, part in tensor.splits]


def find_renamed(matches: Matches, held: Names) -> dict[str, str]:
    """{unexpected name: the missing one whose shape it has}, where no other has it."""
    wanted = Counter(tensor.shape for tensor in matches.missing.values())
    offered = Counter(held[name].shape for name in matches.unexpected)
    lacking = {tensor.shape: name for name, tensor in matches.missing.items() if wanted[tensor.shape] == 1}
    pairs = ((name, held[name].shape) for name in matches.unexpected)
    return {name: lacking[shape] for name, shape in pairs if shape in lacking and offered[shape] == 1}
