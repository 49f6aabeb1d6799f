"""The model's tensors as the writer of a safetensors file names and shapes them.

Writers differ in prefixes and names of modules, in fused, split and transposed matrices, in experts stacked into one
tensor, and in which of two tied tensors they keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeAlias

from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.writers.layout_tables import ALIASES, FUSED, MLX_EXPERTS, STACKED_EXPERTS, WRAPPERS
from paramcount.checkpoints.writers.rewriting import fuse, split_ending, split_tensor, stack, transpose
from paramcount.flow import TensorRow

if TYPE_CHECKING:
    from paramcount.checkpoints.packed.quantised import LogicalTensor

Names: TypeAlias = AbstractSet[str]  # names without their indices
Prefixes: TypeAlias = Mapping[str, Sequence[str]]  # {end of a name: possible prefixes of it in the file}
Combine: TypeAlias = Callable[[Sequence[TensorRow], str], TensorRow | None]

LEAST_VOTES = 2  # a prefix that only one tensor has is part of its own name
MOST_PREFIXES = 16  # in a file
MOST_WORDS = 8  # of a prefix
MOST_CANDIDATES = 200  # prefixes of names with the same ending that are examined
MOST_ALIKE = 20  # names with the same ending; more say nothing about a prefix


def apply_layout(
    tensors: Sequence[TensorRow], file_tensors: Mapping[str, LogicalTensor], transposable: Sequence[str] = ()
) -> tuple[list[TensorRow], list[str]]:
    """The model's tensors as the file's writer names and shapes them, and notes.

    Tensors that are not in the file stay as declared. `transposable`: as in `Sizes`.
    """
    in_file = [strip_indices(name) for name in file_tensors]
    bare = [strip_wrappers(name) for name in in_file]
    wrapped = dict(zip(bare, in_file))
    wrapped |= {name: name for name, bare_name in zip(in_file, bare) if name == bare_name}
    names = wrapped.keys()
    written = rename_tensors(tensors, names)
    new_names = {tensor.name: new.name for tensor, new in zip(tensors, written)}
    written = [t._replace(tied_to=new_names.get(t.tied_to, t.tied_to)) if t.tied_to else t for t in written]
    written = split_matrices(fuse_matrices(written, names), names)
    written, copy_notes = use_copies(written, names)
    written, transpose_notes = transpose_as_stored(written, zip(bare, file_tensors.values()), tuple(transposable))
    written = [
        t._replace(name=_add_wrappers(t.name, wrapped), tied_to=t.tied_to and _add_wrappers(t.tied_to, wrapped))
        for t in written
    ]
    return written, copy_notes + transpose_notes


def rename_tensors(tensors: Sequence[TensorRow], names: Names) -> list[TensorRow]:
    """The same tensors, in order, with the file's prefixes and names of modules."""
    prefixes = _find_prefixes({name for t in tensors for name in (t.name, *_list_aliases(t.name))}, names)
    return apply_aliases(apply_prefixes(apply_aliases(tensors, names, prefixes), names, prefixes), names)


def _strip_all(tensors: Sequence[TensorRow]) -> set[str]:
    return {strip_indices(tensor.name) for tensor in tensors}


# ---- names of modules


def strip_wrappers(name: str) -> str:
    """A name without the words that wrappers around modules add.

    >>> strip_wrappers("base_model.model.h.{}.attn.c_attn.base_layer.weight")
    'base_model.model.h.{}.attn.c_attn.weight'
    """
    words = name.split(".")
    return name if WRAPPERS.isdisjoint(words) else ".".join([word for word in words if word not in WRAPPERS])


def _add_wrappers(name: str, wrapped: Mapping[str, str]) -> str:
    """A name with the words that wrappers added to it in the file. `wrapped`: {bare name: name in the file}."""
    bare = strip_indices(name)
    in_file = wrapped.get(bare, bare)
    if in_file == bare:
        return name
    words = iter(name.split("."))
    return ".".join([word if word in WRAPPERS else next(words) for word in in_file.split(".")])


def apply_aliases(tensors: Sequence[TensorRow], names: Names, endings: Collection[str] = ()) -> list[TensorRow]:
    """Tensors with the file's names for their modules, whatever the prefix. No name of a declared tensor is reused.

    Args:
        names: names in the file
        endings: ends of names in the file
    """
    declared = _strip_all(tensors)
    unclaimed = names - declared
    claimed: dict[str, str] = {}
    renamed = []
    for tensor in tensors:
        bare = strip_indices(tensor.name)
        alias = tensor.name if bare in names else find_alias(tensor.name, unclaimed, endings)
        bare_alias = strip_indices(alias)
        is_free = bare_alias == bare or (bare_alias not in declared and claimed.setdefault(bare_alias, bare) == bare)
        renamed.append(tensor._replace(name=alias) if is_free else tensor)
    return renamed


def find_alias(name: str, names: Collection[str], endings: Collection[str] = ()) -> str:
    """The name itself, or an alias that is in `names` or whose end is in `endings`.

    >>> find_alias("gpt_neox.embed_out.weight", {"gpt_neox.lm_head.weight"})
    'gpt_neox.lm_head.weight'
    """
    if strip_indices(name) in names or _has_ending(name, endings):
        return name
    aliases = _list_aliases(name)
    in_names = next((alias for alias in aliases if strip_indices(alias) in names), None)
    return in_names or next((alias for alias in aliases if _has_ending(alias, endings)), name)


def _list_aliases(name: str) -> list[str]:
    return [name.replace(one, other) for pair in ALIASES for one, other in (pair, pair[::-1]) if one in name]


def _has_ending(name: str, endings: Collection[str]) -> bool:
    """Whether the name ends, from its first index or before it, in one of the endings."""
    if not endings:
        return False
    return any(end in endings for _, end in _iterate_prefixes(strip_indices(name)) if "{}" in end)


# ---- prefixes


def apply_prefixes(tensors: Sequence[TensorRow], names: Names, prefixes: Prefixes) -> list[TensorRow]:
    """Tensors with the file's prefixes added, removed or exchanged, if several tensors suggest the same change.

    Tensors that are not in the file change with the change of the longest prefix that they have.
    """
    declared = _strip_all(tensors)
    unmatched, unclaimed = declared - names, set(names - declared)
    changes: dict[str, tuple[str, str]] = {}
    pairs: list[tuple[str, str]] = []
    while unmatched and len(pairs) < MOST_PREFIXES and (pair := _choose_prefix(unmatched, unclaimed, prefixes)):
        matched = {name for name in unmatched if _replace_prefix(name, pair) in unclaimed}
        changes |= dict.fromkeys(matched, pair)
        pairs.append(pair)
        unmatched -= matched
        unclaimed -= {_replace_prefix(name, pair) for name in matched}
    for name in unmatched:
        for pair in sorted(pairs, key=lambda pair: -len(pair[0])):
            if name.startswith(pair[0]) and _replace_prefix(name, pair) not in names:
                changes[name] = pair
                break
    renamed = []
    for tensor in tensors:
        change = changes.get(strip_indices(tensor.name))
        renamed.append(tensor._replace(name=_replace_prefix(tensor.name, change)) if change else tensor)
    return renamed


def _replace_prefix(name: str, pair: tuple[str, str]) -> str:
    """A name with the second prefix in place of the first; "" if it does not have the first."""
    old, new = pair
    return new + name.removeprefix(old) if name.startswith(old) else ""


def _find_prefixes(names: Collection[str], file_names: Names) -> Prefixes:
    prefixes: dict[str, list[str]] = {end: [] for name in names for _, end in _iterate_prefixes(strip_indices(name))}
    ends: dict[str, list[str]] = {}
    for end in prefixes:
        ends.setdefault(_get_last_words(end), []).append(end)
    for name in file_names:
        for end in ends.get(_get_last_words(name), ()):
            if len(prefixes[end]) < MOST_CANDIDATES and name.endswith(end):
                prefix = name.removesuffix(end)
                if is_prefix(prefix):
                    prefixes[end].append(prefix)
    return {end: candidates for end, candidates in prefixes.items() if candidates}


def _get_last_words(name: str) -> str:
    """The last two words of a name; every end has at least these."""
    return name[name.rfind(".", 0, max(name.rfind("."), 0)) + 1 :]


def is_prefix(text: str) -> bool:
    """Whether a text may be a prefix of names: whole words, not too many, and no index.

    >>> is_prefix("model.language_model."), is_prefix("model.layers.{}."), is_prefix("sub")
    (True, False, False)
    """
    return not text or (text.endswith(".") and text.count(".") < MOST_WORDS and "{}" not in text)


def _choose_prefix(
    unmatched: Collection[str], unclaimed: Collection[str], prefixes: Prefixes
) -> tuple[str, str] | None:
    """The prefix of most of the unmatched names, and the file's prefix in its place; None if no two names agree."""
    votes: Counter[tuple[str, str]] = Counter()
    for name in unmatched:
        for old, end in _iterate_prefixes(name):
            candidates = prefixes.get(end, ())
            if len(candidates) < MOST_CANDIDATES:
                matching = [new for new in candidates if new + end in unclaimed]
                if len(matching) <= MOST_ALIKE:
                    votes.update((old, new) for new in matching if new != old)
    ranked = [(-n, len(old) + len(new), (old, new)) for (old, new), n in votes.items() if n >= LEAST_VOTES]
    return min(ranked)[2] if ranked else None


def _iterate_prefixes(name: str) -> Iterator[tuple[str, str]]:
    """Possible prefixes of a name with the rest: before the first index, at least two words before the end."""
    start = 0
    for _ in range(MOST_WORDS):
        dot = name.find(".", start)
        if dot < 0:
            return
        yield name[:start], name[start:]
        if name[start:dot] == "{}":
            return
        start = dot + 1


# ---- fused and split matrices


def fuse_matrices(tensors: Sequence[TensorRow], names: Names) -> list[TensorRow]:
    """Matrices fused and experts stacked, if the file has them that way."""
    result = list(tensors)
    tables: tuple[tuple[Combine, tuple[tuple[str, tuple[str, ...]], ...]], ...] = (
        (fuse_rows, FUSED),
        (stack_experts, STACKED_EXPERTS),
        (stack_mlx_experts, MLX_EXPERTS),
    )
    for combine, table in tables:
        for whole, parts in table:
            result = combine_parts(result, whole, parts, combine, names)
    return result


def fuse_rows(tensors: Sequence[TensorRow], whole: str) -> TensorRow:
    return fuse(rename_module(tensors[0], whole), tensors)


def stack_experts(tensors: Sequence[TensorRow], whole: str) -> TensorRow | None:
    """The experts of a layer as [experts, outputs, inputs]; None if the tensors do not belong to experts."""
    if "{expert}" not in tensors[0].name:
        return None
    name = rename_module(tensors[0], whole).replace(".{expert}", "").removesuffix(".weight")
    return fuse(name, [stack(tensor, name) for tensor in tensors])


def stack_mlx_experts(tensors: Sequence[TensorRow], whole: str) -> TensorRow | None:
    """The same with the names of MLX, which does not fuse gate and up."""
    if ".experts.{expert}." not in tensors[0].name:
        return None
    return stack(tensors[0], rename_module(tensors[0], whole).replace(".experts.{expert}.", ".switch_mlp."))


def combine_parts(
    tensors: Sequence[TensorRow], whole: str, parts: Sequence[str], combine: Combine, names: Names
) -> list[TensorRow]:
    """Tensors of one module combined, if the file contains the result and none of the parts."""
    groups: dict[object, list[TensorRow]] = {}
    for tensor in tensors:
        module, leaf, ending = split_module(tensor.name)
        groups.setdefault((module, ending, tensor.repeats, leaf if leaf not in parts else ""), []).append(tensor)
    declared = _strip_all(tensors)
    result: list[TensorRow] = []
    for group in groups.values():
        group.sort(key=lambda tensor: parts.index(leaf) if (leaf := split_module(tensor.name)[1]) in parts else 0)
        has_all_parts = [split_module(tensor.name)[1] for tensor in group] == list(parts)
        combined = None
        if has_all_parts and not any(strip_indices(tensor.name) in names for tensor in group):
            combined = combine(group, whole)
        if combined:
            name = find_alias(combined.name, names)
            bare = strip_indices(name)
            if bare in names and bare not in declared:
                group = [combined._replace(name=name)]
        result += group
    return result


def split_matrices(tensors: Sequence[TensorRow], names: Names) -> list[TensorRow]:
    """Fused matrices split, if the file has their parts."""
    unclaimed = names - _strip_all(tensors)
    result: list[TensorRow] = []
    for tensor in tensors:
        is_split = tensor.splits and strip_indices(tensor.name) not in names
        result += _split_matrix(tensor, unclaimed) if is_split else [tensor]
    return result


def _split_matrix(tensor: TensorRow, names: Collection[str]) -> list[TensorRow]:
    leaf = split_module(tensor.name)[1]
    for whole, parts in FUSED:
        if leaf != whole or len(parts) != len(tensor.splits):
            continue
        part_names = [find_alias(rename_module(tensor, part), names) for part in parts]
        if any(strip_indices(name) in names for name in part_names):
            pieces = [(name, component, width) for name, (component, width) in zip(part_names, tensor.splits)]
            return split_tensor(tensor, pieces)
    return [tensor]


def split_module(name: str) -> tuple[str, str, str]:
    """A name as parent module, module and ending.

    >>> split_module("model.layers.{layer}.self_attn.q_proj.weight")
    ('model.layers.{layer}.self_attn.', 'q_proj', '.weight')
    """
    path, ending = split_ending(name)
    module, dot, leaf = path.rpartition(".")
    return module + dot, leaf, ending


def rename_module(tensor: TensorRow, leaf: str) -> str:
    module, _, ending = split_module(tensor.name)
    return f"{module}{leaf}{ending}"


# ---- tied copies and transposed matrices


def use_copies(tensors: Sequence[TensorRow], names: Names) -> tuple[list[TensorRow], list[str]]:
    """Tied copies in place of their originals if the file has only the copy, and notes.

    safetensors' `save_model` keeps the alphabetically first name of tied tensors, and transformers loads such files.

    Sources: safetensors, torch.py, `save_model`; transformers 5.23, modeling_utils.py, `tie_weights`.
    """
    unrepeated = {tensor.name for tensor in tensors if not tensor.repeats}
    copies: dict[str, str] = {}  # {original: copy}
    for tensor in tensors:
        original = str(tensor.tied_to)
        if {original, tensor.name} <= unrepeated and original not in names and tensor.name in names:
            copies.setdefault(original, tensor.name)
    if not copies:
        return list(tensors), []
    exchanged = copies | {copy: original for original, copy in copies.items()}
    result = [
        t._replace(name=exchanged.get(t.name, t.name), tied_to=copies.get(str(t.tied_to), t.tied_to)) for t in tensors
    ]
    return result, [f"{original} is missing; its tied copy {copy} is used instead" for original, copy in copies.items()]


def transpose_as_stored(
    tensors: Sequence[TensorRow], file_tensors: Iterable[tuple[str, LogicalTensor]], transposable: tuple[str, ...]
) -> tuple[list[TensorRow], list[str]]:
    """Matrices transposed if most of the file's are, and notes.

    Args:
        file_tensors: name without indices, and tensor
        transposable: ends of the names of matrices that some writers store transposed
    """
    by_name: dict[str, list[TensorRow]] = {}
    for tensor in tensors:
        if tensor.name.endswith(transposable):
            by_name.setdefault(strip_indices(tensor.name), []).append(tensor)
    votes = 0
    for name, logical in file_tensors if by_name else ():
        alike = by_name.get(name, ())
        votes += any(logical.has_shape(transpose(tensor).shape) for tensor in alike)
        votes -= any(logical.has_shape(tensor.shape) for tensor in alike)
    if votes <= 0:
        return list(tensors), []
    result = [transpose(tensor) if tensor.name.endswith(transposable) else tensor for tensor in tensors]
    return result, [f"matrices are transposed compared with the reference: {', '.join(transposable)}"]
