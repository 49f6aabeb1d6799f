"""How the writers of safetensors files name what a declaration declares: other prefixes, matrices together or apart, experts in one tensor."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

from paramcount.checkpoints.rewriting import fused, split, together
from paramcount.stored import Tensor

INDEX = re.compile(r"(?<![^.])(?:\d+|\{\w+\})(?![^.])")
LEAST_VOTES = 2  # a prefix that only one tensor has is a name of its own
MOST_ALIKE = 20  # names with the same ending, before they say nothing about a prefix

# Matrices [out, in] over the same input that some writers store as one, one above the other.
TOGETHER = (
    ("qkv_proj", ("q_proj", "k_proj", "v_proj")),
    ("query_key_value", ("query", "key", "value")),
    ("gate_up_proj", ("gate_proj", "up_proj")),
)
# What a writer that puts a layer's experts into one tensor makes of each of them.
EXPERTS = (
    ("gate_up_proj", ("gate_proj", "up_proj")),
    ("down_proj", ("down_proj",)),
    ("gate_up_proj", ("w1", "w3")),
    ("down_proj", ("w2",)),
)


def key(name: str) -> str:
    """A name without its indices.

    >>> key("model.layers.3.mlp.experts.17.w1.weight"), key("model.layers.{layer}.mlp.experts.{expert}.w1.weight")
    ('model.layers.{}.mlp.experts.{}.w1.weight', 'model.layers.{}.mlp.experts.{}.w1.weight')
    """
    return INDEX.sub("{}", name)


def laid_out(tensors: Sequence[Tensor], names: Collection[str]) -> list[Tensor]:
    """The declared tensors as the writer of a file with these names has named and shaped them. What is not found stays as declared."""
    held = set(map(key, names))
    for rewrite in (prefixed, joined_up, taken_apart, stacked_up):
        tensors = rewrite(tensors, held)
    return list(tensors)


def prefixed(tensors: Sequence[Tensor], held: Collection[str]) -> Sequence[Tensor]:
    """Names that begin as the file's do: a prefix more, less or another, where several tensors ask for the same one."""
    declared = {key(tensor.name) for tensor in tensors}
    lacking, spare = declared - set(held), set(held) - declared
    while lacking and spare:
        pair = _most_asked(lacking, spare)
        if pair is None:
            break
        before, instead = pair
        moved = {name for name in lacking if name.startswith(before) and instead + name.removeprefix(before) in spare}
        tensors = [t._replace(name=instead + t.name.removeprefix(before)) if key(t.name) in moved else t for t in tensors]
        lacking -= moved
        spare -= {instead + name.removeprefix(before) for name in moved}
    return tensors


def _most_asked(lacking: Collection[str], spare: Collection[str]) -> tuple[str, str] | None:
    """The prefix that most of the names lack, and what stands in its place; None where no two agree."""
    begins = defaultdict(list)
    for name in spare:
        for before, after in _cuts(name):
            begins[after].append(before)
    votes = Counter(
        (before, instead) for name in lacking for before, after in _cuts(name) if len(begins[after]) <= MOST_ALIKE for instead in begins[after] if before != instead
    )
    asked = [(n, pair) for pair, n in votes.items() if n >= LEAST_VOTES]
    return min(asked, key=lambda item: (-item[0], len(item[1][0]) + len(item[1][1]), item[1]))[1] if asked else None


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """Where a prefix of a name may end: before its first index, and with two words left."""
    words = name.split(".")
    for i in range(len(words) - 1):
        if i and words[i - 1] == "{}":
            return
        yield "".join(f"{word}." for word in words[:i]), ".".join(words[i:])


def joined_up(tensors: Sequence[Tensor], held: Collection[str]) -> Sequence[Tensor]:
    """Matrices that the file holds as one."""
    for whole, parts in TOGETHER:
        tensors = _where(tensors, parts, lambda found, whole=whole: [fused(_called(found[0], whole), found)], held)
    return tensors


def stacked_up(tensors: Sequence[Tensor], held: Collection[str]) -> Sequence[Tensor]:
    """Experts that the file holds as one tensor: [experts, outputs, inputs]."""

    def stack(found: Sequence[Tensor], whole: str) -> list[Tensor]:
        name = _called(found[0], whole).replace(".{expert}", "").removesuffix(".weight")
        return [fused(name, [together(tensor, name) for tensor in found], axis=1)]

    for whole, parts in EXPERTS:
        tensors = _where(tensors, parts, lambda found, whole=whole: stack(found, whole) if found[0].name.count("{expert}") else list(found), held)
    return tensors


def _where(tensors: Sequence[Tensor], parts: Sequence[str], rewrite: Callable[[Sequence[Tensor]], list[Tensor]], held: Collection[str]) -> Sequence[Tensor]:
    """Tensors of one module, rewritten together where the file does not hold them as they are and holds what they become."""
    groups: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        module, leaf, ending = _named(tensor.name)
        groups.setdefault((module, ending, tensor.repeats, leaf if leaf not in parts else ""), []).append(tensor)
    found: list[Tensor] = []
    for group in groups.values():
        if [_named(tensor.name)[1] for tensor in group] == list(parts) and not any(key(tensor.name) in held for tensor in group):
            written = rewrite(group)
            group = written if all(key(tensor.name) in held for tensor in written) else group
        found += group
    return found


def taken_apart(tensors: Sequence[Tensor], held: Collection[str]) -> Sequence[Tensor]:
    """Matrices that the file holds as several."""
    found: list[Tensor] = []
    for tensor in tensors:
        found += _apart(tensor, held) or [tensor]
    return found


def _apart(tensor: Tensor, held: Collection[str]) -> list[Tensor]:
    if key(tensor.name) in held or not tensor.splits:
        return []
    leaf = _named(tensor.name)[1]
    for whole, parts in TOGETHER:
        names = [_called(tensor, part) for part in parts]
        if leaf == whole and len(parts) == len(tensor.splits) and any(key(name) in held for name in names):
            return split(tensor, [(name, component, width) for name, (component, width) in zip(names, tensor.splits)])
    return []


def _named(name: str) -> tuple[str, str, str]:
    """The module that a tensor's own module stands in, that module, and what follows it.

    >>> _named("model.layers.{layer}.self_attn.q_proj.weight")
    ('model.layers.{layer}.self_attn.', 'q_proj', '.weight')
    """
    ending = next((ending for ending in (".weight", ".bias") if name.endswith(ending)), "")
    module, dot, leaf = name.removesuffix(ending).rpartition(".")
    return module + dot, leaf, ending


def _called(tensor: Tensor, leaf: str) -> str:
    module, _, ending = _named(tensor.name)
    return f"{module}{leaf}{ending}"
