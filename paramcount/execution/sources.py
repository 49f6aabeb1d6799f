"""Where each declared tensor is in a checkpoint: under which name, in which part of which tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.folding import VARYING, strip_indices
from paramcount.checkpoints.writers.layout_tables import FUSED, MLX_EXPERTS, STACKED_EXPERTS
from paramcount.checkpoints.writers.layouts import (
    find_alias,
    rename_module,
    rename_tensors,
    split_module,
    strip_wrappers,
    use_copies,
)
from paramcount.flow import TensorRow

Shape: TypeAlias = tuple[int, ...]
Layout: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]  # (fused module, the modules that it consists of)


class TensorSource(NamedTuple):
    """Where a declared tensor is. Names have {} for each index."""

    names: tuple[str, ...]  # several are concatenated along the first axis
    rows: tuple[int, int] | None = None  # (first, one behind the last), if it is a part of a fused tensor
    is_stacked: bool = False  # whether the last index of the declared name is one of the experts in the tensor


def find_sources(tensors: Sequence[TensorRow], file_names: Collection[str]) -> dict[str, TensorSource]:
    """{name of a declared tensor, with {} for each index: where it is}. Those that are nowhere are left out."""
    stored = {strip_indices(name) for name in file_names}
    bare = {strip_wrappers(name): name for name in stored}  # a wrapper around a module adds words
    bare |= {name: name for name in stored if strip_wrappers(name) == name}
    names = bare.keys()
    renamed = rename_tensors(tensors, names)
    by_name = {tensor.name: new.name for tensor, new in zip(tensors, renamed)}
    renamed = [new._replace(tied_to=by_name.get(str(new.tied_to), new.tied_to)) for new in renamed]
    sources: dict[str, TensorSource] = {}
    for declared, tensor in zip(tensors, use_copies(renamed, names)[0]):
        source = find_source(tensor, renamed, names)
        if source:
            source = source._replace(names=tuple(bare[name] for name in source.names))
            sources.setdefault(strip_indices(declared.name), source)
    return sources


def find_source(tensor: TensorRow, tensors: Sequence[TensorRow], names: Collection[str]) -> TensorSource | None:
    """Where a tensor is, whose name is already the file's if the file has it alone."""
    name = strip_indices(tensor.name)
    if name in names:
        return TensorSource((name,))
    fused: Layout = FUSED
    for whole, parts in fused:
        if source := find_fused(tensor, tensors, whole, parts, names, lambda path: path):
            return source
    if "{expert}" in tensor.name:
        tables: tuple[tuple[Layout, Callable[[str], str]], ...] = (
            (STACKED_EXPERTS, lambda name: name.replace(".{expert}", "").removesuffix(".weight")),
            (MLX_EXPERTS, lambda name: name.replace(".experts.{expert}.", ".switch_mlp.")),
        )
        for layout, rewrite in tables:
            for whole, parts in layout:
                if source := find_fused(tensor, tensors, whole, parts, names, rewrite):
                    return source._replace(is_stacked=True)
    return find_parts(tensor, names)


def find_fused(
    tensor: TensorRow,
    tensors: Sequence[TensorRow],
    whole: str,
    parts: Sequence[str],
    names: Collection[str],
    rewrite: Callable[[str], str],
) -> TensorSource | None:
    """The rows of a tensor with the leaf `whole` that are this tensor, whose leaf is among `parts`."""
    module, leaf, ending = split_module(tensor.name)
    if leaf not in parts:
        return None
    name = strip_indices(find_alias(rewrite(rename_module(tensor, whole)), names))
    if name not in names:
        return None
    widths = {
        split_module(other.name)[1]: other.shape[0]
        for other in tensors
        if other.repeats == tensor.repeats and split_module(other.name)[::2] == (module, ending)
    }
    if not widths.keys() >= set(parts):
        return None
    first = sum(widths[part] for part in parts[: parts.index(leaf)])
    return TensorSource((name,), None if len(parts) == 1 else (first, first + widths[leaf]))


def find_parts(tensor: TensorRow, names: Collection[str]) -> TensorSource | None:
    """The tensors that a fused one consists of; those of each expert, if experts are declared as one tensor."""
    _, leaf, _ = split_module(tensor.name)
    for whole, parts in (*FUSED, *STACKED_EXPERTS):
        if leaf != whole:
            continue
        paths = [rename_module(tensor, part) for part in parts]
        if tensor.stacked:
            paths = [path.replace(".experts.", ".experts.{expert}.") + ".weight" for path in paths]
        elif len(parts) != len(tensor.splits):
            continue
        found = tuple(strip_indices(find_alias(path, names)) for path in paths)
        if all(name in names for name in found):
            return TensorSource(found)
    return None


def fill_indices(pattern: str, indices: Sequence[int]) -> str:
    """A name with its indices.

    >>> fill_indices("model.layers.{}.mlp.experts.{}.w1.weight", (3, 17))
    'model.layers.3.mlp.experts.17.w1.weight'
    """
    for index in indices:
        pattern = pattern.replace("{}", str(index), 1)
    return pattern


def list_indices(name: str) -> tuple[int, ...]:
    """The indices in a name.

    >>> list_indices("model.layers.3.mlp.experts.17.w1.weight")
    (3, 17)
    """
    return tuple(int(word) for word in VARYING.findall(name))


class TensorPlace(NamedTuple):
    """One stored tensor that contains a declared one."""

    name: str
    expert: int | None  # its index, if the tensor has all experts of a layer


def list_places(
    sources: Mapping[str, TensorSource], name: str, index: int | None
) -> tuple[list[TensorPlace], TensorSource]:
    """The stored tensors of a declared one, whose own name has all indices. `index`: as in `Weights.read`."""
    indices = list_indices(name)
    source = sources.get(strip_indices(name), TensorSource((strip_indices(name),)))
    if source.is_stacked:
        indices, index = indices[:-1], indices[-1]
    elif index is not None and source.names[0].count("{}") > len(indices):
        indices, index = (*indices, index), None
    return [TensorPlace(fill_indices(pattern, indices), index) for pattern in source.names], source
