"""How the writers of safetensors files name what a declaration declares: other prefixes, matrices together or apart, experts in one tensor."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

from paramcount.checkpoints.rewriting import fused, split, together
from paramcount.stored import Tensor

Makes: TypeAlias = Callable[[Sequence[Tensor], str], Tensor | None]

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
# What some writers call a module that the declaration names otherwise, or the other way round.
ALIASES = (
    (".block_sparse_moe.", ".mlp."),
    (".block_sparse_moe.router.layer.", ".block_sparse_moe.router."),
    (".block_sparse_moe.input_linear.weight", ".block_sparse_moe.experts.gate_up_proj"),
    (".block_sparse_moe.output_linear.weight", ".block_sparse_moe.experts.down_proj"),
    (".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"),
    (".mlp.moe_statics.", ".mlp.gate.moe_statics."),
    ("embed_out.", "lm_head."),
    ("language_model.lm_head.", "lm_head."),
    (".LayerNorm.weight", ".LayerNorm.gamma"),
    (".LayerNorm.bias", ".LayerNorm.beta"),
    # Meta's and Mistral's own, as in consolidated.safetensors: transformers, models/mistral/convert_mistral_weights_to_hf.py.
    (".self_attn.q_proj.", ".attention.wq."),
    (".self_attn.k_proj.", ".attention.wk."),
    (".self_attn.v_proj.", ".attention.wv."),
    (".self_attn.o_proj.", ".attention.wo."),
    (".mlp.gate_proj.", ".feed_forward.w1."),
    (".mlp.down_proj.", ".feed_forward.w2."),
    (".mlp.up_proj.", ".feed_forward.w3."),
    (".input_layernorm.", ".attention_norm."),
    (".post_attention_layernorm.", ".ffn_norm."),
    ("embed_tokens.", "tok_embeddings."),
    ("lm_head.", "output."),
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
    written = aliased(prefixed(aliased(tensors, held), held), held)
    names_now = {tensor.name: now.name for tensor, now in zip(tensors, written)}
    written = [tensor._replace(tied_to=names_now.get(tensor.tied_to, tensor.tied_to)) if tensor.tied_to else tensor for tensor in written]
    return taken_apart(joined_up(written, held), held)


def aliased(tensors: Sequence[Tensor], held: Collection[str]) -> list[Tensor]:
    """Modules called as the file calls them, behind whatever prefix."""
    endings = {after for name in held for _, after in _cuts(name) if "{}" in after}
    return [tensor._replace(name=called(tensor.name, held, endings)) for tensor in tensors]


def called(name: str, held: Collection[str], endings: Collection[str] = ()) -> str:
    """A name, or another for the same that the file holds instead, or one of whose layers ends so.

    >>> called("gpt_neox.embed_out.weight", {"gpt_neox.lm_head.weight"})
    'gpt_neox.lm_head.weight'
    """
    if key(name) in held or _ends(name, endings):
        return name
    others = [name.replace(one, other) for pair in ALIASES for one, other in (pair, pair[::-1]) if one in name]
    found = next((other for other in others if key(other) in held), None)
    return found or next((other for other in others if _ends(other, endings)), name)


def _ends(name: str, endings: Collection[str]) -> bool:
    return any(after in endings for _, after in _cuts(key(name)))


def prefixed(tensors: Sequence[Tensor], held: Collection[str]) -> list[Tensor]:
    """Names that begin as the file's do: a prefix more, less or another, where several tensors ask for the same one.

    What the file does not hold moves with the first of them, as it would stand in the file.
    """
    lacking = {key(tensor.name) for tensor in tensors} - set(held)
    spare = set(held) - {key(tensor.name) for tensor in tensors}
    moved: dict[str, tuple[str, str]] = {}
    pairs = []
    while lacking and (pair := _most_asked(lacking, spare)):
        found = {name for name in lacking if _moved(name, pair) in spare}
        moved |= dict.fromkeys(found, pair)
        pairs.append(pair)
        lacking -= found
        spare -= {_moved(name, pair) for name in found}
    for name in lacking:
        if fitting := [pair for pair in pairs if name.startswith(pair[0])]:
            moved[name] = fitting[0]
    return [tensor._replace(name=_moved(tensor.name, moved[name])) if (name := key(tensor.name)) in moved else tensor for tensor in tensors]


def _moved(name: str, pair: tuple[str, str]) -> str:
    """A name with another prefix; nothing where it does not have the one."""
    before, instead = pair
    return instead + name.removeprefix(before) if name.startswith(before) else ""


def _most_asked(lacking: Collection[str], spare: Collection[str]) -> tuple[str, str] | None:
    """The prefix that most of the names lack, and what stands in its place; None where no two agree."""
    begins = defaultdict(list)
    for name in spare:
        for before, after in _cuts(name):
            begins[after].append(before)
    votes = Counter(
        (before, instead)
        for name in lacking
        for before, after in _cuts(name)
        if len(begins[after]) <= MOST_ALIKE
        for instead in begins[after]
        if before != instead
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


def joined_up(tensors: Sequence[Tensor], held: Collection[str]) -> list[Tensor]:
    """Matrices that the file holds as one, and experts that it holds as one tensor."""
    found = list(tensors)
    tables: tuple[tuple[Makes, Any], ...] = ((side_by_side, TOGETHER), (in_one, EXPERTS))
    for makes, table in tables:
        for whole, parts in table:
            found = _joined(found, whole, parts, makes, held)
    return found


def side_by_side(tensors: Sequence[Tensor], whole: str) -> Tensor:
    return fused(_called(tensors[0], whole), tensors)


def in_one(tensors: Sequence[Tensor], whole: str) -> Tensor | None:
    """The experts of a layer: [experts, outputs, inputs]. None of what is no expert's."""
    if "{expert}" not in tensors[0].name:
        return None
    name = _called(tensors[0], whole).replace(".{expert}", "").removesuffix(".weight")
    return fused(name, [together(tensor, name) for tensor in tensors], axis=1)


def _joined(tensors: Sequence[Tensor], whole: str, parts: Sequence[str], makes: Makes, held: Collection[str]) -> list[Tensor]:
    """Tensors of one module made one where the file does not hold them as they are and holds what they become."""
    groups: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        module, leaf, ending = _named(tensor.name)
        groups.setdefault((module, ending, tensor.repeats, leaf if leaf not in parts else ""), []).append(tensor)
    found: list[Tensor] = []
    for group in groups.values():
        if [_named(tensor.name)[1] for tensor in group] == list(parts) and not any(key(tensor.name) in held for tensor in group):
            one = makes(group, whole)
            name = called(one.name, held) if one else ""
            group = [one._replace(name=name)] if one and key(name) in held else group
        found += group
    return found


def taken_apart(tensors: Sequence[Tensor], held: Collection[str]) -> list[Tensor]:
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
