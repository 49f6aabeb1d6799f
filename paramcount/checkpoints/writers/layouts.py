"""How the writers of safetensors files name what a declaration declares: other prefixes and words, matrices together or apart or the other way
round, experts in one tensor, a copy in the place of what it is a copy of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeAlias

from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.writers.layout_tables import ALIASES, EXPERTS, SWITCHED, TOGETHER, WRAPPERS
from paramcount.checkpoints.writers.rewriting import fuse, split_tensor, stack, transpose
from paramcount.counting.tensors import Tensor

if TYPE_CHECKING:
    from paramcount.checkpoints.packed.quantised import LogicalTensor

Keys: TypeAlias = AbstractSet[str]  # names without their indices
Makes: TypeAlias = Callable[[Sequence[Tensor], str], Tensor | None]

LEAST_VOTES = 2  # a prefix that only one tensor has is a name of its own
MOST_PREFIXES = 16  # in a file
MOST_WORDS = 8  # of a prefix
MOST_BEGINNINGS = 200  # of names with the same ending that are looked at
MOST_ALIKE = 20  # names with the same ending, before they say nothing about a prefix


def strip_all(tensors: Sequence[Tensor]) -> set[str]:
    return {strip_indices(tensor.name) for tensor in tensors}


def apply_layout(
    tensors: Sequence[Tensor], held: Mapping[str, LogicalTensor], transposable: Sequence[str] = ()
) -> tuple[list[Tensor], list[str]]:
    """The declared tensors as the writer of a file that holds these has named and shaped them, and what is to be said of it.

    What is not found stays as declared. `transposable`: as of `Sizes`.
    """
    in_file = [strip_indices(name) for name in held]
    bare = [strip_wrappers(name) for name in in_file]
    wrapped = dict(zip(bare, in_file)) | {name: name for name, same in zip(in_file, bare) if name == same}
    keys = wrapped.keys()
    begins = _find_prefixes({name for tensor in tensors for name in (tensor.name, *_list_aliases(tensor.name))}, keys)
    written = apply_aliases(apply_prefixes(apply_aliases(tensors, keys, begins), keys, begins), keys)
    names_now = {tensor.name: now.name for tensor, now in zip(tensors, written)}
    written = [
        tensor._replace(tied_to=names_now.get(tensor.tied_to, tensor.tied_to)) if tensor.tied_to else tensor
        for tensor in written
    ]
    written = split_matrices(fuse_matrices(written, keys), keys)
    written, copies = use_copies(written, keys)
    written, other_way = transpose_as_stored(written, zip(bare, held.values()), tuple(transposable))
    found = [
        t._replace(name=_wrapped(t.name, wrapped), tied_to=t.tied_to and _wrapped(t.tied_to, wrapped)) for t in written
    ]
    return found, copies + other_way


# ---- what modules are called


def strip_wrappers(name: str) -> str:
    """A name without the words that wrappers around modules add.

    >>> strip_wrappers("base_model.model.h.{}.attn.c_attn.base_layer.weight")
    'base_model.model.h.{}.attn.c_attn.weight'
    """
    words = name.split(".")
    return name if WRAPPERS.isdisjoint(words) else ".".join([word for word in words if word not in WRAPPERS])


def _wrapped(name: str, wrapped: Mapping[str, str]) -> str:
    """A name with the words that wrappers have added to it in the file."""
    as_held = wrapped.get(bare := strip_indices(name), bare)
    if as_held == bare:
        return name
    words = iter(name.split("."))
    return ".".join([word if word in WRAPPERS else next(words) for word in as_held.split(".")])


def apply_aliases(tensors: Sequence[Tensor], held: Keys, endings: Collection[str] = ()) -> list[Tensor]:
    """Modules called as the file calls them, behind whatever prefix. No name that is declared becomes another's."""
    declared = strip_all(tensors)
    spare = held - declared
    taken: dict[str, str] = {}
    found = []
    for tensor in tensors:
        name = tensor.name if strip_indices(tensor.name) in held else find_alias(tensor.name, spare, endings)
        before, now = strip_indices(tensor.name), strip_indices(name)
        free = now == before or (now not in declared and taken.setdefault(now, before) == before)
        found.append(tensor._replace(name=name) if free else tensor)
    return found


def find_alias(name: str, held: Collection[str], endings: Collection[str] = ()) -> str:
    """A name, or another for the same that the file holds instead, or one of whose layers ends so.

    >>> find_alias("gpt_neox.embed_out.weight", {"gpt_neox.lm_head.weight"})
    'gpt_neox.lm_head.weight'
    """
    if strip_indices(name) in held or _ends_like(name, endings):
        return name
    others = _list_aliases(name)
    found = next((other for other in others if strip_indices(other) in held), None)
    return found or next((other for other in others if _ends_like(other, endings)), name)


def _list_aliases(name: str) -> list[str]:
    """What else a tensor may be called."""
    return [name.replace(one, other) for pair in ALIASES for one, other in (pair, pair[::-1]) if one in name]


def _ends_like(name: str, endings: Collection[str]) -> bool:
    return bool(endings) and any(
        after in endings for _, after in _iterate_prefixes(strip_indices(name)) if "{}" in after
    )


# ---- prefixes


def apply_prefixes(tensors: Sequence[Tensor], held: Keys, begins: Mapping[str, Sequence[str]]) -> list[Tensor]:
    """Names that begin as the file's do: a prefix more, less or another, where several tensors ask for the same one.

    What the file does not hold moves with the first of them, as it would stand in the file. `begins`: what stands in the file before endings.
    """
    declared = strip_all(tensors)
    lacking, spare = declared - held, set(held - declared)
    moved: dict[str, tuple[str, str]] = {}
    pairs: list[tuple[str, str]] = []
    while lacking and len(pairs) < MOST_PREFIXES and (pair := _most_wanted_prefix(lacking, spare, begins)):
        found = {name for name in lacking if _replace_prefix(name, pair) in spare}
        moved |= dict.fromkeys(found, pair)
        pairs.append(pair)
        lacking -= found
        spare -= {_replace_prefix(name, pair) for name in found}
    for name in lacking:
        if fitting := [pair for pair in pairs if name.startswith(pair[0]) and _replace_prefix(name, pair) not in held]:
            moved[name] = fitting[0]
    return [
        tensor._replace(name=_replace_prefix(tensor.name, moved[name]))
        if (name := strip_indices(tensor.name)) in moved
        else tensor
        for tensor in tensors
    ]


def _replace_prefix(name: str, pair: tuple[str, str]) -> str:
    """A name with another prefix; nothing where it does not have the one."""
    before, instead = pair
    return instead + name.removeprefix(before) if name.startswith(before) else ""


def _find_prefixes(names: Collection[str], held: Keys) -> Mapping[str, Sequence[str]]:
    """{ending of one of the names: what stands before it in the file}"""
    found: dict[str, list[str]] = {after: [] for name in names for _, after in _iterate_prefixes(strip_indices(name))}
    alike: dict[str, list[str]] = {}
    for after in found:
        alike.setdefault(_last_words(after), []).append(after)
    for name in held:
        for after in alike.get(_last_words(name), ()):
            if (
                len(found[after]) < MOST_BEGINNINGS
                and name.endswith(after)
                and is_prefix(before := name.removesuffix(after))
            ):
                found[after].append(before)
    return {after: begins for after, begins in found.items() if begins}


def _last_words(name: str) -> str:
    """The last two words: every ending has them."""
    return name[name.rfind(".", 0, max(name.rfind("."), 0)) + 1 :]


def is_prefix(text: str) -> bool:
    """Whether a text may be a prefix of names: whole words, not too many and no index.

    >>> is_prefix("model.language_model."), is_prefix("model.layers.{}."), is_prefix("sub")
    (True, False, False)
    """
    return not text or (text.endswith(".") and text.count(".") < MOST_WORDS and "{}" not in text)


def _most_wanted_prefix(
    lacking: Collection[str], spare: Collection[str], begins: Mapping[str, Sequence[str]]
) -> tuple[str, str] | None:
    """The prefix that most of the names lack, and what stands in its place; None where no two agree."""
    votes: Counter[tuple[str, str]] = Counter()
    for name in lacking:
        for before, after in _iterate_prefixes(name):
            if len(begins.get(after, ())) < MOST_BEGINNINGS:
                found = [instead for instead in begins.get(after, ()) if instead + after in spare]
                if len(found) <= MOST_ALIKE:
                    votes.update((before, instead) for instead in found if instead != before)
    asked = [(n, pair) for pair, n in votes.items() if n >= LEAST_VOTES]
    return min(asked, key=lambda item: (-item[0], len(item[1][0]) + len(item[1][1]), item[1]))[1] if asked else None


def _iterate_prefixes(name: str) -> Iterator[tuple[str, str]]:
    """Where a prefix of a name may end: before its first index, with two words left and not too many gone."""
    start = 0
    for _ in range(MOST_WORDS):
        dot = name.find(".", start)
        if dot < 0:
            return
        yield name[:start], name[start:]
        if name[start:dot] == "{}":
            return
        start = dot + 1


# ---- together and apart


def fuse_matrices(tensors: Sequence[Tensor], held: Keys) -> list[Tensor]:
    """Matrices that the file holds as one, and experts that it holds as one tensor."""
    found = list(tensors)
    tables: tuple[tuple[Makes, tuple[tuple[str, tuple[str, ...]], ...]], ...] = (
        (fuse_rows, TOGETHER),
        (stack_experts, EXPERTS),
        (stack_mlx_experts, SWITCHED),
    )
    for makes, table in tables:
        for whole, parts in table:
            found = _fuse_group(found, whole, parts, makes, held)
    return found


def fuse_rows(tensors: Sequence[Tensor], whole: str) -> Tensor:
    return fuse(_rename_module(tensors[0], whole), tensors)


def stack_experts(tensors: Sequence[Tensor], whole: str) -> Tensor | None:
    """The experts of a layer: [experts, outputs, inputs]. None of what is no expert's."""
    if "{expert}" not in tensors[0].name:
        return None
    name = _rename_module(tensors[0], whole).replace(".{expert}", "").removesuffix(".weight")
    return fuse(name, [stack(tensor, name) for tensor in tensors], axis=1)


def stack_mlx_experts(tensors: Sequence[Tensor], whole: str) -> Tensor | None:
    """The same as MLX names it, which keeps gate and up apart."""
    if ".experts.{expert}." not in tensors[0].name:
        return None
    return stack(tensors[0], _rename_module(tensors[0], whole).replace(".experts.{expert}.", ".switch_mlp."))


def _fuse_group(tensors: Sequence[Tensor], whole: str, parts: Sequence[str], makes: Makes, held: Keys) -> list[Tensor]:
    """Tensors of one module made one where the file does not hold them as they are and holds what they become."""
    groups: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        module, leaf, ending = _split_module(tensor.name)
        groups.setdefault((module, ending, tensor.repeats, leaf if leaf not in parts else ""), []).append(tensor)
    declared = strip_all(tensors)
    found: list[Tensor] = []
    for group in groups.values():
        if [_split_module(tensor.name)[1] for tensor in group] == list(parts) and not any(
            strip_indices(tensor.name) in held for tensor in group
        ):
            one = makes(group, whole)
            name = find_alias(one.name, held) if one else ""
            group = (
                [one._replace(name=name)]
                if one and strip_indices(name) in held and strip_indices(name) not in declared
                else group
            )
        found += group
    return found


def split_matrices(tensors: Sequence[Tensor], held: Keys) -> list[Tensor]:
    """Matrices that the file holds as several."""
    spare = held - strip_all(tensors)
    found: list[Tensor] = []
    for tensor in tensors:
        found += _split_matrix(tensor, spare) if tensor.splits and strip_indices(tensor.name) not in held else [tensor]
    return found


def _split_matrix(tensor: Tensor, held: Collection[str]) -> list[Tensor]:
    leaf = _split_module(tensor.name)[1]
    for whole, parts in TOGETHER:
        names = [find_alias(_rename_module(tensor, part), held) for part in parts]
        if leaf == whole and len(parts) == len(tensor.splits) and any(strip_indices(name) in held for name in names):
            return split_tensor(
                tensor, [(name, component, width) for name, (component, width) in zip(names, tensor.splits)]
            )
    return [tensor]


def _split_module(name: str) -> tuple[str, str, str]:
    """The module that a tensor's own module stands in, that module, and what follows it.

    >>> _split_module("model.layers.{layer}.self_attn.q_proj.weight")
    ('model.layers.{layer}.self_attn.', 'q_proj', '.weight')
    """
    ending = next((ending for ending in (".weight", ".bias") if name.endswith(ending)), "")
    module, dot, leaf = name.removesuffix(ending).rpartition(".")
    return module + dot, leaf, ending


def _rename_module(tensor: Tensor, leaf: str) -> str:
    module, _, ending = _split_module(tensor.name)
    return f"{module}{leaf}{ending}"


# ---- copies, and which way round


def use_copies(tensors: Sequence[Tensor], held: Keys) -> tuple[list[Tensor], list[str]]:
    """A copy takes the place of what it is tied to where the file holds it alone, as it does where the first name by the alphabet is kept.

    Sources: safetensors, torch.py, `save_model`; that such a file is loaded: transformers 5.23, modeling_utils.py, `tie_weights`.
    """
    names = {tensor.name for tensor in tensors if not tensor.repeats}
    instead: dict[str, str] = {}
    for tensor in tensors:
        original = str(tensor.tied_to)
        if {original, tensor.name} <= names and original not in held and tensor.name in held:
            instead.setdefault(original, tensor.name)
    if not instead:
        return list(tensors), []
    exchanged = instead | {copy: original for original, copy in instead.items()}
    found = [
        t._replace(name=exchanged.get(t.name, t.name), tied_to=instead.get(str(t.tied_to), t.tied_to)) for t in tensors
    ]
    return found, [f"{original} is missing; its tied copy {copy} is used instead" for original, copy in instead.items()]


def transpose_as_stored(
    tensors: Sequence[Tensor], held: Iterable[tuple[str, LogicalTensor]], transposable: tuple[str, ...]
) -> tuple[list[Tensor], list[str]]:
    """Matrices the other way round where most of the file's stand so, of those that some writers store so. `held`: by names without indices."""
    kinds: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.name.endswith(transposable):
            kinds.setdefault(strip_indices(tensor.name), []).append(tensor)
    votes = 0
    for name, logical in held if kinds else ():
        alike = kinds.get(name, ())
        votes += any(logical.has_shape(transpose(tensor).shape) for tensor in alike) - any(
            logical.has_shape(tensor.shape) for tensor in alike
        )
    if votes <= 0:
        return list(tensors), []
    found = [transpose(tensor) if tensor.name.endswith(transposable) else tensor for tensor in tensors]
    return found, [f"matrices are transposed compared with the reference: {', '.join(transposable)}"]
