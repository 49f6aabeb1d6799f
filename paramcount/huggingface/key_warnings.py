"""Warnings about a config.json: ignored keys that look like sizes or flags, and missing sizes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from paramcount.errors import MOST_LISTED, join_words, make_printable
from paramcount.huggingface.fields import Readers, get_value
from paramcount.sizes import ABSENT, Key, Sizes, get_key, inner_configs, list_fixed_fields
from paramcount.sizes.key_names import describe_defaults, find_main_key
from paramcount.sizes.setting_fields import list_settings
from paramcount.sizes.values import format_input

SCALAR_TYPES = {str, int, float, bool, type(None), list}  # faster to check than isinstance(value, Mapping)
MOST_CACHED = 400  # configs with more keys are not cached
MOST_BLOCKS = 400  # ignored blocks to look into
MAX_KEY_LENGTH = 60
LANGUAGE_SECTIONS = ("text_config", "llm_config", "language_config", "decoder")
MIN_SIMILARITY = 0.6  # share of words that two similar keys have in common

SIZE_LIKE = re.compile(
    r"(^|_)(n|num|dim|dims|size|rank|ranks|width|layers?|heads?|experts?|hidden|inner|inter|ffn|kernel|channels?|state"
    r"|groups?|embd?|vocab|lora)(_|$)|^d_"
)
HARMLESS = re.compile(
    r"_base$|^scale_|window|token|position|^num_labels$|^num_return|beam|^max_|chunk|dropout|_range$|initializer"
    r"|^n_ctx$|_act$|activation|batch|group_size|topk|top_k|_ngram_size$|_n_top$|_every_n_layers$"
    r"|_layer_(period|offset|interval)$|_capacity$|^qk_head_dim$"
)
# Blocks that describe no part of a model: how it is stored, trained, asked or converted.
HARMLESS_BLOCKS = {"quantization_config", "compression_config", "task_specific_params", "generation_config"}
# Synonyms within keys: num_layers and n_layer, hidden_dim and hidden_size.
SYNONYMS = {
    "n": "num", "number": "num", "nb": "num", "dim": "size", "dims": "size", "width": "size", "d": "size",
    "emb": "embedding", "embd": "embedding", "embed": "embedding", "ffn": "ff", "mlp": "ff", "inner": "ff",
    "intermediate": "ff", "feedforward": "ff", "tied": "tie", "use": "", "is": "",
}  # fmt: skip
# Names for one size in different files: if an ignored key has the value of a known one, it repeats it.
SAME_SIZES = (
    {"hidden_size", "n_embd", "d_model", "dim", "hidden_dim", "embed_dim", "text_hidden_size"},
    {"intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "d_ff", "d_inner"},
    {"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
    {"num_attention_heads", "n_head", "n_heads", "num_heads"},
    {"vocab_size", "_vocab_size", "padded_vocab_size"},
)
PART_WORDS = {"text", "vision", "audio", "image", "encoder", "decoder"}  # a size of another part is no misspelling
USUAL_LABELS = {"num_labels": 2}  # what PreTrainedConfig takes where no key gives labels


class Suspect(NamedTuple):
    """An ignored key that may be a mistake."""

    key: str  # its path in the config
    is_size: bool  # looks like a size; a mistake only if its value is a number too
    is_misspelt: bool  # differs from a known key only in a letter, case or underscores
    candidates: tuple[str, ...]  # known keys that may be meant, best first


@lru_cache(maxsize=20_000)
def is_size_like(key: str) -> bool:
    """Whether the name of a key looks like a size.

    >>> is_size_like("num_experts"), is_size_like("hiddenSize"), is_size_like("rope_theta"), is_size_like("max_length")
    (True, True, False, False)
    """
    key = to_snake_case(key)
    return bool(SIZE_LIKE.search(key)) and not HARMLESS.search(key)


def to_snake_case(key: str) -> str:
    """A key in snake_case, as the reference writes keys.

    >>> to_snake_case("hiddenSize"), to_snake_case("HIDDEN-SIZE"), to_snake_case("numKVHeads")
    ('hidden_size', 'hidden_size', 'num_kv_heads')
    """
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", key)
    return re.sub(r"[^a-z0-9]+", "_", separated.lower()).strip("_")


def split_words(key: str) -> frozenset[str]:
    """The words of a key, with synonyms replaced.

    >>> sorted(split_words("n_layer")), sorted(split_words("hidden_dim"))
    (['layer', 'num'], ['hidden', 'size'])
    """
    words = (SYNONYMS.get(word, word) for word in to_snake_case(key).split("_"))
    return frozenset(word.removesuffix("s") for word in words if word)


@lru_cache(maxsize=500)
def map_all_keys(readers: Readers) -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for section, architecture in readers:
        for field in architecture.fields:
            if field not in inner_configs(architecture):
                key = get_key(architecture, field)
                keys |= {join_path(section, name): key for name in key.spellings(field)}
    return keys


@lru_cache(maxsize=500)
def list_key_names(readers: Readers) -> frozenset[str]:
    return frozenset(path.rpartition(".")[2] for path in map_all_keys(readers))


@lru_cache(maxsize=500)
def list_unused_keys(readers: Readers) -> set[str]:
    """Paths of keys that the reference or releases have but that no parameter depends on, settings included."""
    paths: set[str] = set()
    for section, architecture in readers:
        for name in architecture.unused_keys:  # "/name": at the top level, whatever the section
            paths.add(name[1:] if name.startswith("/") else join_path(section, name))
        for setting in list_settings(architecture).values():
            paths.update(join_path("" if setting.is_outside else section, name) for name in setting.names)
        if "d_nope" in architecture.fields:  # the heads of MLA have qk_nope_head_dim + qk_rope_head_dim
            paths.add(join_path(section, "head_dim"))
    return paths


def join_path(section: str, name: str) -> str:
    """The path of a key in a section; a leading slash means the top level."""
    if name[0] == "/":
        return name[1:]
    return f"{section}.{name}" if section else name


def find_ignored_keys(
    document: Mapping[str, Any], unread: Mapping[str, Any], used: set[str], readers: Readers
) -> tuple[list[Suspect], list[str]]:
    """Ignored keys that look like mistakes, and known keys whose value an ignored key repeats.

    A key looks like a mistake if it resembles a known key, or if it looks like a size and has a numeric value. It does
    not if it repeats the value of the known key, because releases repeat sizes under other names.
    """
    find = find_suspects if len(unread) <= MOST_CACHED else find_suspects.__wrapped__
    suspects = {suspect.key: suspect for suspect in find(readers, frozenset(used), frozenset(unread))}
    if not suspects:
        return [], []
    known_keys = map_all_keys(readers)
    mistakes, repeated = [], []
    for suspect in [suspects[key] for key in unread if key in suspects]:  # in the order of the file
        value = unread[suspect.key]
        found = find_repeated_key(suspect, value, document, known_keys)
        if key := found or find_same_size(suspect, value, document, {**dict.fromkeys(used), **known_keys}):
            repeated.append(key)
        elif is_number(value) or (suspect.is_misspelt and value is not None and not isinstance(value, Mapping)):
            mistakes.append(suspect)
    return mistakes, repeated


@lru_cache(maxsize=500)
def find_suspects(readers: Readers, used: frozenset[str], unread: frozenset[str]) -> tuple[Suspect, ...]:
    """The ignored keys with suspicious names, in alphabetical order."""
    unexpected_keys = sorted(unread - list_unused_keys(readers))
    if not unexpected_keys:
        return ()
    known_keys = {*map_all_keys(readers), *used}
    keys_by_variant = {variant: path for path in sorted(known_keys) for variant in spell_variants(path)}
    suspects = []
    for path in unexpected_keys:
        variants = spell_variants(path[:MAX_KEY_LENGTH])
        correction = next((keys_by_variant[variant] for variant in variants if variant in keys_by_variant), None)
        is_size = is_size_like(path.rpartition(".")[2][:MAX_KEY_LENGTH])
        if correction or is_size:
            candidates = (correction,) if correction else find_similar_keys(path, known_keys)
            suspects.append(Suspect(path, is_size, correction is not None, candidates))
    return tuple(suspects)


@lru_cache(maxsize=5_000)
def spell_variants(path: str) -> tuple[str, ...]:
    """Keys to compare spellings by: without case and underscores and, for long keys, with any one letter deleted.

    Two names with a common result differ in one letter or by a swap.
    """
    section, _, name = path.rpartition(".")
    name = to_snake_case(name).replace("_", "")
    shorter = (name[:i] + name[i + 1 :] for i in range(len(name))) if len(name) > 7 else ()
    return tuple(f"{section}.{variant}" for variant in (name, *shorter))


def find_similar_keys(path: str, known_keys: Iterable[str]) -> tuple[str, ...]:
    """Known keys of the section, or of the same name elsewhere, that share most words with a key; best first."""
    section, _, name = path.rpartition(".")
    words = split_words(name)
    scores = {}
    for known_path in known_keys:
        known_section, _, known_name = known_path.rpartition(".")
        known_words = split_words(known_name)
        all_words = words | known_words
        score = len(words & known_words) / len(all_words) if all_words else 0
        if score >= MIN_SIMILARITY and (known_name == name or known_section == section):
            scores[known_path] = score
    return tuple(sorted(scores, key=lambda known_path: (-scores[known_path], known_path)))[:MOST_LISTED]


def find_repeated_key(
    suspect: Suspect, value: object, document: Mapping[str, Any], known_keys: Mapping[str, Key]
) -> str | None:
    """The candidate with the same value as an ignored key, stated or by default: older files repeat sizes."""
    for path in suspect.candidates:
        candidate_value = get_value(document, path)
        if candidate_value is ABSENT:
            candidate_value = known_keys[path].absent if path in known_keys else USUAL_LABELS.get(path)
        if type(candidate_value) is type(value) and candidate_value == value:
            return path
    return None


def find_same_size(
    suspect: Suspect, value: object, document: Mapping[str, Any], keys: Mapping[str, Key | None]
) -> str | None:
    """The known key that states the same size under another name, with the same value; in any section."""
    name = suspect.key.rpartition(".")[2]
    names = next((names for names in SAME_SIZES if name in names), None)
    if names is None or type(value) is not int:
        return None
    for path, key in keys.items():
        if path.rpartition(".")[2] in names:
            stated = get_value(document, path)
            if value == (key.absent if key and stated is ABSENT else stated):
                return path
    return None


def is_number(value: object) -> bool:
    """Whether a value may be a size, perhaps written as another type.

    >>> is_number(8), is_number("8"), is_number(8.0), is_number([8, 8])
    (True, True, True, True)
    >>> is_number(1), is_number(0.1), is_number("none"), is_number([])
    (False, False, False, False)
    """
    if isinstance(value, (list, tuple)):
        return 0 < len(value) <= MOST_CACHED and all(type(item) is int for item in value) and max(value) > 1
    if isinstance(value, str):
        return value.strip().isdecimal() and len(value) <= MAX_KEY_LENGTH and int(value) > 1
    return (type(value) is int or (type(value) is float and value.is_integer())) and value > 1


def warn_ignored_keys(mistakes: Sequence[Suspect], document: Mapping[str, Any], reference: str) -> Iterator[str]:
    """One warning per key with a likely correction, and one for all other keys together."""
    corrections: dict[str, str] = {}
    for suspect in mistakes:
        missing_keys = [key for key in suspect.candidates if is_hint(suspect.key, key, document)]
        if missing_keys and len(corrections) < MOST_LISTED:
            corrections[suspect.key] = missing_keys[0]
    for suspect in mistakes:
        if suspect.key in corrections:
            reason = f"{reference} does not use it"
            if suspect.is_size:
                reason = f"looks like a size, but {reason}"
            ignored_key = make_printable(suspect.key, MAX_KEY_LENGTH)
            correction = make_printable(corrections[suspect.key], MAX_KEY_LENGTH)
            yield f"ignored {ignored_key} ({reason}); did you mean {correction}?"
    others = [suspect for suspect in mistakes if suspect.key not in corrections]
    sizes = [suspect.key for suspect in others if suspect.is_size]
    if len(sizes) == 1:
        yield f"ignored {format_names(sizes)} (looks like a size, but {reference} does not use it)"
    elif sizes:
        yield f"ignored {format_names(sizes)} (look like sizes, but {reference} does not use them)"
    misspelt = [suspect.key for suspect in others if not suspect.is_size]
    if misspelt:
        pronoun = "it" if len(misspelt) == 1 else "them"
        yield f"ignored {format_names(misspelt)} ({reference} does not use {pronoun})"


def is_hint(key: str, candidate: str, document: Mapping[str, Any]) -> bool:
    """Whether a known key may be what an ignored one means: it is missing, and no size of another part."""
    others = split_words(key.rpartition(".")[2]) - split_words(candidate.rpartition(".")[2])
    return get_value(document, candidate) is ABSENT and others.isdisjoint(PART_WORDS)


# ---- keys that the reference overrides


def warn_fixed_fields(
    sizes: Sizes, document: Mapping[str, Any], readers: Readers, reference: str, *, head: bool
) -> tuple[str, ...]:
    """A warning for each flag that the reference sets whatever the config.json says, unless no parameter depends on it.

    Released files may hold what the config.json says: the separate LM head of T5 v1.1, which the reference ties.
    """
    found = [
        (join_path(section, name), architecture, name)
        for section, architecture in readers
        for name, value in list_fixed_fields(architecture).items()
        if get_value(document, join_path(section, name)) is (not value)
    ]
    if not found:
        return ()
    from paramcount.counting import count_sizes

    warnings = []
    for path, architecture, name in found:
        count = count_sizes(replace_flag(sizes, architecture, name), head=head)
        if difference := count.total - count.reference_total:
            tensors = format_names(count.released_tensors)
            warnings.append(
                f"ignored {path} = {format_input(get_value(document, path))}: {reference} always ties {tensors}; "
                f"files with a separate {tensors} hold {count.total:,} parameters, {difference:,} more"
            )
    return tuple(warnings)


def replace_flag(sizes: Sizes, architecture: type[Sizes], name: str) -> Sizes:
    """The sizes with the other value of a flag of the part that has this architecture."""
    if type(sizes) is architecture:
        return sizes.replace(**{name: not getattr(sizes, name)})
    inner = {part: getattr(sizes, part) for part in inner_configs(type(sizes))}
    changes = {part: replace_flag(found, architecture, name) for part, found in inner.items() if found is not None}
    return sizes.replace(**changes) if changes else sizes


# ---- blocks


class KeyBlock(NamedTuple):
    """An ignored block with sizes."""

    path: str
    known_sizes: list[str]  # its keys with sizes that an architecture reads elsewhere
    sizes: list[str]  # all its keys with values that look like sizes


def list_blocks(unread: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, block) of the ignored blocks and those inside them."""
    waiting = deque((key, value) for key, value in unread.items() if type(value) not in SCALAR_TYPES)
    for _ in range(MOST_BLOCKS):
        if not waiting:
            return
        path, block = waiting.popleft()
        if isinstance(block, Mapping) and path.rpartition(".")[2] not in HARMLESS_BLOCKS:
            yield path, block
            waiting.extend((f"{path}.{key}", value) for key, value in block.items() if type(value) not in SCALAR_TYPES)


def find_ignored_blocks(unread: Mapping[str, Any], readers: Readers) -> list[KeyBlock]:
    """Ignored blocks with a size that an architecture reads elsewhere, or with several keys that look like sizes.

    A single one may be a setting: the rank of a quantisation, the dimension of a rotary embedding.
    """
    found = list(list_blocks(unread))
    if not found:
        return []
    names, unused = list_key_names(readers), list_unused_keys(readers)
    blocks = []
    for path, block in found:
        numbers = [str(key) for key, value in block.items() if type(value) is int and value > 1]
        sizes = [key for key in numbers if is_size_like(key[:MAX_KEY_LENGTH])]
        known_sizes = [key for key in sizes if key in names]
        if path not in unused and (known_sizes or len(sizes) >= 2):
            blocks.append(KeyBlock(path, known_sizes, sizes))
    return blocks


def warn_ignored_blocks(blocks: Sequence[KeyBlock], readers: Readers, reference: str) -> Iterator[str]:
    for block in blocks[:MOST_LISTED]:
        if sizes := block.known_sizes:
            path = next(path for path in map_all_keys(readers) if path.rpartition(".")[2] == sizes[0])
            section = path.rpartition(".")[0]
            place = f"in {section}" if section else "at the top level"
            pronoun = "it" if len(sizes) == 1 else "them"
            reason = f"a block with {format_names(sizes)}, but {reference} reads {pronoun} {place}"
        else:
            reason = f"a block with {format_names(block.sizes)}, but {reference} does not use it"
        yield f"ignored {make_printable(block.path, MAX_KEY_LENGTH)} ({reason})"
    if (more := len(blocks) - MOST_LISTED) > 0:
        yield f"ignored {more:,} more block{'s' if more > 1 else ''} with sizes"


# ---- both


class Ignored(NamedTuple):
    """What a config.json states and nothing reads, though it looks like sizes or like misspelt keys."""

    keys: list[Suspect]
    blocks: list[KeyBlock]
    repeated: list[str]  # known keys whose value an ignored key repeats

    def list_sizes(self) -> list[str]:
        """The keys and blocks that look like sizes."""
        return [*(suspect.key for suspect in self.keys if suspect.is_size), *(block.path for block in self.blocks)]


def find_ignored(document: Mapping[str, Any], unread: Mapping[str, Any], used: set[str], readers: Readers) -> Ignored:
    """The ignored keys and blocks of a config.json that may be mistakes."""
    mistakes, repeated = find_ignored_keys(document, unread, used, readers)
    return Ignored(mistakes, find_ignored_blocks(unread, readers), repeated)


def warn_ignored(ignored: Ignored, document: Mapping[str, Any], readers: Readers, reference: str) -> tuple[str, ...]:
    if not ignored.keys and not ignored.blocks:
        return ()
    return (
        *warn_ignored_keys(ignored.keys, document, reference),
        *warn_ignored_blocks(ignored.blocks, readers, reference),
    )


# ---- missing sizes


def warn_missing_sizes(
    architecture: type[Sizes], fields: Sequence[str], document: Mapping[str, Any]
) -> tuple[str, ...]:
    """A warning about missing sizes, for which the reference uses its defaults."""
    keys = [find_main_key(get_key(architecture, field).spellings(field), document) for field in fields]
    if not keys:
        return ()
    if len(keys) == 1:
        default = get_key(architecture, fields[0]).absent
        return (f"{format_names(keys)} is missing; used the default of {describe_defaults(document)}: {default:,}",)
    return (f"{format_names(keys)} are missing; used the defaults of {describe_defaults(document)}",)


def warn_missing_sections(document: Mapping[str, Any], readers: Readers) -> tuple[str, ...]:
    """A warning if the section of the language model is missing.

    Missing single sizes of a section are normal: the reference saves only those that differ from its defaults.
    """
    sections = [section for section, _ in readers if section in LANGUAGE_SECTIONS]
    if not sections:
        return ()
    missing = [section for section in dict.fromkeys(sections) if document.get(section) is None]
    return tuple(f"{section} is missing; used the defaults of {describe_defaults(document)}" for section in missing)


def format_names(names: Sequence[str]) -> str:
    """Names from a file on one line; of a long list, the first five.

    >>> format_names(["a", "b", "c"]), format_names(list("abcdefgh"))
    ('a, b and c', 'a, b, c, d, e and 3 more')
    """
    items = [make_printable(name, MAX_KEY_LENGTH) for name in names[:MOST_LISTED]]
    if len(names) > MOST_LISTED:
        items.append(f"{len(names) - MOST_LISTED:,} more")
    return join_words(items, "and")
