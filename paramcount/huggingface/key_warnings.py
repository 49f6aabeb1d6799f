"""Warnings about a config.json: ignored keys that look like sizes or flags, and missing sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from paramcount.errors import make_printable
from paramcount.sizes import ABSENT, Key, Sizes, get_key, inner_configs

MOST_LISTED = 5  # names in one warning, and warnings of one kind
SCALAR_TYPES = {str, int, float, bool, type(None), list}  # faster to check than isinstance(value, Mapping)
MOST_CACHED = 400  # configs with more keys are not cached
MAX_KEY_LENGTH = 60
LANGUAGE_SECTIONS = ("text_config", "llm_config", "language_config", "decoder")
MIN_SIMILARITY = 0.6  # share of words that two similar keys have in common

SIZE_LIKE = re.compile(
    r"(^|_)(n|num|dim|dims|size|rank|ranks|width|layers?|heads?|experts?|hidden|inner|inter|ffn|kernel|channels?|state|groups?|embd?|vocab|lora)(_|$)|^d_"
)
HARMLESS = re.compile(
    r"_base$|^scale_|window|token|position|^num_labels$|^num_return|beam|^max_|chunk|dropout|_range$|initializer|^n_ctx$|_act$|activation|batch|group_size|topk|top_k"
    r"|_ngram_size$|_n_top$|_every_n_layers$|_layer_(period|offset|interval)$|_capacity$|^qk_head_dim$"
)
# Synonyms within keys: num_layers and n_layer, hidden_dim and hidden_size.
SYNONYMS = {
    "n": "num", "number": "num", "nb": "num", "dim": "size", "dims": "size", "width": "size", "d": "size", "emb": "embedding", "embd": "embedding",
    "embed": "embedding", "ffn": "ff", "mlp": "ff", "inner": "ff", "intermediate": "ff", "feedforward": "ff", "tied": "tie", "use": "", "is": "",
}  # fmt: skip


class Suspect(NamedTuple):
    """An ignored key that may be a mistake."""

    key: str  # its path in the config
    is_size: bool  # looks like a size: a mistake only if its value is a number too
    is_misspelt: bool  # differs from a known key only in a letter, case or underscores
    candidates: tuple[str, ...]  # known keys that may be meant, best first


@lru_cache(maxsize=20_000)
def is_size_like(key: str) -> bool:
    key = to_snake_case(key)
    return bool(SIZE_LIKE.search(key)) and not HARMLESS.search(key)


def to_snake_case(key: str) -> str:
    """A key in snake_case, as the reference writes keys.

    >>> to_snake_case("hiddenSize"), to_snake_case("HIDDEN-SIZE"), to_snake_case("numKVHeads")
    ('hidden_size', 'hidden_size', 'num_kv_heads')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", key)
    return re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")


def split_words(key: str) -> frozenset[str]:
    """The words of a key, with synonyms replaced.

    >>> sorted(split_words("n_layer")), sorted(split_words("hidden_dim"))
    (['layer', 'num'], ['hidden', 'size'])
    """
    words = (SYNONYMS.get(word, word) for word in to_snake_case(key).split("_"))
    return frozenset(word.removesuffix("s") for word in words if word)


def delete_one_letter(name: str) -> Iterator[str]:
    """A name, and every string that results from deleting one letter.

    Two names with a common result differ in one letter or by a swap.
    """
    yield name
    for i in range(len(name)):
        yield name[:i] + name[i + 1 :]


@cache
def map_keys(architecture: type[Sizes]) -> dict[str, Key]:
    """{config.json key: its `Key`} for everything that an architecture reads in its section."""
    found = {}
    for field in architecture.model_fields:
        if field not in inner_configs(architecture):
            key = get_key(architecture, field)
            found.update(dict.fromkeys(key.spellings(field), key))
    return found


class Readers(NamedTuple):
    """Which architectures read which sections of a config: ("", Llama), ("vision_config", SiglipVision)."""

    pairs: tuple[tuple[str, type[Sizes]], ...]


@lru_cache(maxsize=500)
def map_all_keys(readers: Readers) -> dict[str, Key]:
    """{path of a key: its `Key`} for everything that is read."""
    found = {}
    for section, architecture in readers.pairs:
        for name, key in map_keys(architecture).items():
            found[join_path(section, name)] = key
    return found


@lru_cache(maxsize=500)
def list_key_names(readers: Readers) -> frozenset[str]:
    """The names of all keys that are read, whatever the section."""
    return frozenset(path.rpartition(".")[2] for path in map_all_keys(readers))


@lru_cache(maxsize=500)
def unused_keys(readers: Readers) -> set[str]:
    """Paths of keys that the reference or releases have but that no parameter depends on."""
    found = {join_path(section, name) for section, architecture in readers.pairs for name in architecture.unused_keys}
    latent = {
        join_path(section, "head_dim")
        for section, architecture in readers.pairs
        if "d_nope" in architecture.model_fields
    }
    return found | latent  # MLA heads have qk_nope_head_dim + qk_rope_head_dim


def join_path(section: str, name: str) -> str:
    """The path of a key in a section; a leading slash means the top level."""
    return name[1:] if name[0] == "/" else f"{section}.{name}" if section else name


def find_ignored_keys(
    document: Mapping[str, Any], unread: Mapping[str, Any], used: set[str], readers: Readers
) -> tuple[list[Suspect], list[str]]:
    """Ignored keys that look like mistakes, and known keys whose value an ignored key repeats.

    A key looks like a mistake if it resembles a known key, or if it looks like a size and has a numeric value. It does
    not if it repeats the value of the known key, because releases repeat sizes under other names.
    """
    look = find_suspects if len(unread) <= MOST_CACHED else find_suspects.__wrapped__
    found = look(readers, frozenset(used), frozenset(unread))
    if not found:
        return [], []
    known, by_key = map_all_keys(readers), {suspect.key: suspect for suspect in found}
    mistakes, repeated = [], []
    for suspect in [by_key[key] for key in unread if key in by_key]:  # in the order of the file
        value = unread[suspect.key]
        if key := find_repeated_key(suspect, value, document, known):
            repeated.append(key)
        elif is_number(value) or (suspect.is_misspelt and value is not None and not isinstance(value, Mapping)):
            mistakes.append(suspect)
    return mistakes, repeated


@lru_cache(maxsize=500)
def find_suspects(readers: Readers, used: frozenset[str], unread: frozenset[str]) -> tuple[Suspect, ...]:
    """The ignored keys with suspicious names, in alphabetical order."""
    known = {*map_all_keys(readers), *used}
    unused = unused_keys(readers)
    by_variant = {variant: path for path in sorted(known) for variant in spell_variants(path)}
    found = []
    for path in sorted(unread - unused):
        name = path.rpartition(".")[2]
        misspelt = next(
            (by_variant[variant] for variant in spell_variants(path[:MAX_KEY_LENGTH]) if variant in by_variant), None
        )
        if misspelt or is_size_like(name[:MAX_KEY_LENGTH]):
            meant = (misspelt,) if misspelt else find_similar_keys(path, known)
            found.append(Suspect(path, is_size_like(name[:MAX_KEY_LENGTH]), misspelt is not None, meant))
    return tuple(found)


def spell_variants(path: str) -> Iterator[str]:
    """Keys to compare spellings by: without case and underscores and, for long keys, with any one letter deleted."""
    section, _, name = path.rpartition(".")
    name = to_snake_case(name).replace("_", "")
    for variant in delete_one_letter(name) if len(name) > 7 else (name,):
        yield f"{section}.{variant}"


def find_similar_keys(path: str, known: Iterable[str]) -> tuple[str, ...]:
    """Known keys of the section, or of the same name elsewhere, that share most words with a key; best first."""
    name, words = path.rpartition(".")[2], split_words(path.rpartition(".")[2])
    scores = {}
    for other in known:
        tail = other.rpartition(".")[2]
        others = split_words(tail)
        score = len(words & others) / len(words | others) if words | others else 0
        if score >= MIN_SIMILARITY and (tail == name or path.rpartition(".")[0] == other.rpartition(".")[0]):
            scores[other] = score
    return tuple(sorted(scores, key=lambda other: (-scores[other], other)))[:MOST_LISTED]


def find_repeated_key(
    suspect: Suspect, value: Any, document: Mapping[str, Any], known: Mapping[str, Key]
) -> str | None:
    """The candidate with the same value as an ignored key, given or by default: older files repeat sizes."""
    for key in suspect.candidates:
        own = get_path(document, key)
        if own is ABSENT and key in known:
            own = known[key].absent
        if type(own) is type(value) and own == value:
            return key
    return None


def is_number(value: Any) -> bool:
    """Whether a value is a size, possibly of another type: 8, "8", 8.0, [8, 8].

    >>> is_number(8), is_number("8"), is_number(8.0), is_number([8, 8]), is_number(1), is_number(0.1), is_number("none"), is_number([])
    (True, True, True, True, False, False, False, False)
    """
    if isinstance(value, (list, tuple)):
        return 0 < len(value) <= MOST_CACHED and all(type(item) is int for item in value) and max(value) > 1
    if isinstance(value, str):
        return value.strip().isdecimal() and len(value) <= MAX_KEY_LENGTH and int(value) > 1
    return (type(value) is int or (type(value) is float and value.is_integer())) and value > 1


def get_path(document: Mapping[str, Any], path: str) -> Any:
    """The value under a path; ABSENT if there is none."""
    value: Any = document
    for name in path.split("."):
        value = value.get(name, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value


def warn_ignored_keys(found: Sequence[Suspect], document: Mapping[str, Any], reference: str) -> Iterator[str]:
    """One warning per key with a likely correction, one for all other keys together."""
    absent = {s.key: [key for key in s.candidates if get_path(document, key) is ABSENT] for s in found}
    meant = [s for s in found if absent[s.key]]
    for suspect in meant[:MOST_LISTED]:
        looks = (
            f"looks like a size, but {reference} does not use it" if suspect.is_size else f"{reference} does not use it"
        )
        yield f"ignored {make_printable(suspect.key, MAX_KEY_LENGTH)} ({looks}); did you mean {make_printable(absent[suspect.key][0], MAX_KEY_LENGTH)}?"
    sizes = [s.key for s in found if s not in meant[:MOST_LISTED] and s.is_size]
    others = [s.key for s in found if s not in meant[:MOST_LISTED] and not s.is_size]
    if sizes:
        looks, them = ("looks like a size", "it") if len(sizes) == 1 else ("look like sizes", "them")
        yield f"ignored {format_names(sizes)} ({looks}, but {reference} does not use {them})"
    if others:
        yield f"ignored {format_names(others)} ({reference} does not use {'it' if len(others) == 1 else 'them'})"


# ---- blocks


def find_sizes(block: Mapping[str, Any], readers: Readers) -> list[str]:
    """The keys of an ignored block with sizes that an architecture reads elsewhere."""
    names = list_key_names(readers)
    return [
        key
        for key, value in block.items()
        if key in names and type(value) is int and value > 1 and is_size_like(key[:MAX_KEY_LENGTH])
    ]


def find_ignored_blocks(unread: Mapping[str, Any], readers: Readers) -> list[tuple[str, list[str]]]:
    """Ignored blocks with sizes that an architecture reads elsewhere: (block, these keys)."""
    blocks = [key for key, value in unread.items() if type(value) not in SCALAR_TYPES and isinstance(value, Mapping)]
    if not blocks:
        return []
    unused = unused_keys(readers)
    return [(key, sizes) for key in blocks if key not in unused and (sizes := find_sizes(unread[key], readers))]


def warn_ignored_blocks(blocks: Sequence[tuple[str, list[str]]], readers: Readers, reference: str) -> Iterator[str]:
    """A warning for each ignored block with sizes."""
    for block, sizes in blocks[:MOST_LISTED]:
        read = next(path for path in map_all_keys(readers) if path.rpartition(".")[2] == sizes[0])
        place = f"in {read.rpartition('.')[0]}" if "." in read else "at the top level"
        them = "it" if len(sizes) == 1 else "them"
        yield f"ignored {make_printable(block, MAX_KEY_LENGTH)} (a block with {format_names(sizes)}, but {reference} reads {them} {place})"
    if len(blocks) > MOST_LISTED:
        yield f"ignored {len(blocks) - MOST_LISTED:,} more blocks with sizes"


# ---- missing sizes


def warn_missing_sizes(architecture: type[Sizes], fields: Sequence[str], reference: str) -> tuple[str, ...]:
    """A warning about missing sizes, for which the reference uses its defaults."""
    keys = [get_key(architecture, field).spellings(field)[0] for field in fields]
    if not keys:
        return ()
    are, defaults = ("is", "default") if len(keys) == 1 else ("are", "defaults")
    value = f": {get_key(architecture, fields[0]).absent:,}" if len(keys) == 1 else ""
    return (f"{format_names(keys)} {are} missing; used the {defaults} of {reference}{value}",)


def warn_missing_sections(document: Mapping[str, Any], readers: Readers, reference: str) -> tuple[str, ...]:
    """A warning if the section of the language model is missing.

    Missing single sizes of a section are normal: the reference saves only those that differ from its defaults.
    """
    sections = [
        section for section in dict.fromkeys(section for section, _ in readers.pairs) if section in LANGUAGE_SECTIONS
    ]
    missing = [section for section in sections if document.get(section) is None]
    return tuple(f"{section} is missing; used the defaults of {reference}" for section in missing)


def format_names(names: Sequence[str]) -> str:
    """Names from a file on one line, a long list shortened: "a, b and 3 more"."""
    shown = ", ".join(make_printable(name, MAX_KEY_LENGTH) for name in names[:MOST_LISTED])
    return f"{shown} and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else shown
