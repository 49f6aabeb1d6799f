"""The component that the name of a tensor means, for checkpoints without a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from paramcount.checkpoints.folding import Indices, split_name
from paramcount.formats.files import read_table

MOST_WORDS = 24  # of a name that are examined
LAST_WORDS = 3  # layer_norm1.0.weight
CACHE_SIZE = 1 << 14  # names

MTP_LAYER = "MTP layer"
MTP_MARKS = {"eh_proj", "enorm", "hnorm"}  # a layer with one of these tensors is an MTP layer
MTP_PLACES = {"mtp", "mtp_layers", "nextn"}  # modules that contain MTP layers
MASK_AXES = 4  # axes of a causal mask, which has the name of a bias

# Each row of the table has a meaning and its phrases: a phrase is one or more words between dots, anywhere in a name;
# ^ is the start of the name and # an index. A phrase of one word may begin or end in *; it only applies to the last
# words, which are the module and the tensor. The first row with a matching phrase decides. The last rows of each
# meaning have GGUF's names.
TABLE = Path(__file__).with_name("name_meanings.txt")


class Meanings(NamedTuple):
    """The meanings of the names in a checkpoint."""

    components: Mapping[str, str]  # {tensor: component, buffer, legacy buffer or MTP layer}
    unrecognized: tuple[str, ...]  # names without a known meaning: `other`
    tables: tuple[str, ...]  # token embeddings, then heads
    stacks: Mapping[str, int]  # {name prefix of a stack: number of layers}, without MTP layers
    experts: int  # largest number in a layer


class NameKind(NamedTuple):
    """The meaning shared by names that differ in their indices."""

    stack: str  # name up to the first index
    meaning: str | None
    marks_mtp_layer: bool  # whether the tensor's layer is an MTP layer
    is_mtp: bool
    has_experts: bool  # whether the second index is that of an expert


@lru_cache(maxsize=CACHE_SIZE)
def read_kind(words: tuple[str, ...]) -> NameKind:
    """The meaning of names that consist of these words with an index between them."""
    text = "#".join(words)
    modules, has_experts = set(text.split(".")), len(words) > 1 and words[1].endswith("experts.")
    return NameKind(words[0], find_meaning(text), bool(modules & MTP_MARKS), bool(modules & MTP_PLACES), has_experts)


def read_meanings(shapes: Mapping[str, tuple[int, ...] | None]) -> Meanings:
    """The meanings of all names in a checkpoint. `shapes`: {name: shape, or None if unknown}.

    >>> shapes = {"wte.weight": (9, 4), "h.0.attn.bias": (1, 1, 6, 6), "h.0.mlp.c_fc.weight": (4, 16)}
    >>> meanings = read_meanings(shapes)
    >>> list(meanings.components.values()), meanings.tables, meanings.stacks
    (['embedding', 'legacy buffer', 'mlp'], ('wte.weight',), {'h': 1})
    """
    kinds: dict[tuple[str, ...], NameKind] = {}  # one object per pattern of names, however many layers and experts
    names: list[tuple[NameKind, Indices]] = []
    for name in shapes:
        words, indices = split_name(name)
        kind = kinds.get(words) or kinds.setdefault(words, read_kind(words))
        names.append((kind, indices))
    mtp_layers = {(kind.stack, indices[0]) for kind, indices in names if indices and kind.marks_mtp_layer}
    components: dict[str, str] = {}
    unrecognized = []
    stacks: dict[str, dict[int, None]] = {}
    experts: dict[str, set[int]] = {}
    stacked_experts = 0
    for (name, shape), (kind, indices) in zip(shapes.items(), names):
        if kind.is_mtp or (mtp_layers and indices and (kind.stack, indices[0]) in mtp_layers):
            components[name] = MTP_LAYER
            continue
        meaning = kind.meaning
        if meaning == "legacy_buffer" and name.endswith(".bias") and shape is not None and len(shape) < MASK_AXES:
            meaning = None
        if meaning is None:
            unrecognized.append(name)
        components[name] = (meaning or "other").replace("_buffer", " buffer")
        if indices:
            stacks.setdefault(kind.stack.rstrip("."), {})[indices[0]] = None
            if len(indices) > 1 and kind.has_experts:
                experts.setdefault(kind.stack, set()).add(indices[1])
        if meaning == "experts" and shape is not None and len(shape) > 2:
            stacked_experts = max(stacked_experts, shape[0])
    return Meanings(
        components,
        tuple(unrecognized),
        tables=tuple(name for table in ("embedding", "lm_head") for name in components if components[name] == table),
        stacks={name: len(layers) for name, layers in stacks.items()},
        experts=max([stacked_experts, *map(len, experts.values())]),
    )


def find_meaning(kind: str) -> str | None:
    """The meaning of a name with # for each index: a component, `buffer` or `legacy_buffer`; None if unknown.

    >>> find_meaning("h.#.attn.c_attn.weight"), find_meaning("blk.#.ffn_up_exps.weight")
    ('qkv', 'experts')
    >>> find_meaning("h.#.attn.bias"), find_meaning("a.b")
    ('legacy_buffer', None)
    """
    words = ("^", *kind.split(".")[: MOST_WORDS - 1])
    phrases, prefixes, suffixes = parse_phrases()
    ranks = []
    for at, word in enumerate(words):
        for rank, others in phrases.get(word, ()):
            if words[at + 1 : at + 1 + len(others)] == others:
                ranks.append(rank)
    for word in words[-LAST_WORDS:]:
        if word.startswith(tuple(prefixes)) or word.endswith(tuple(suffixes)):
            ranks += [rank for text, rank in prefixes.items() if word.startswith(text)]
            ranks += [rank for text, rank in suffixes.items() if word.endswith(text)]
    return read_meaning_table()[min(ranks)][0].rstrip(":") if ranks else None


@cache
def read_meaning_table() -> tuple[tuple[str, ...], ...]:
    return read_table(TABLE)


@cache
def parse_phrases() -> tuple[dict[str, list[tuple[int, tuple[str, ...]]]], dict[str, int], dict[str, int]]:
    """{first word: [(row, the words after it)]}, {prefix of a word: row}, {suffix: row}."""
    phrases: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    prefixes, suffixes = {}, {}
    for rank, (_, *texts) in enumerate(read_meaning_table()):
        for text in texts:
            if text.startswith("*"):
                suffixes[text[1:]] = rank
            elif text.endswith("*"):
                prefixes[text[:-1]] = rank
            else:
                first, *others = text.split(".")
                phrases.setdefault(first, []).append((rank, tuple(others)))
    return phrases, prefixes, suffixes
