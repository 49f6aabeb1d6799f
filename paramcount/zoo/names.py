"""Name resolution: an id, a Hugging Face id or URL, a common spelling, a family, a wildcard or a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES
from paramcount.errors import LONGEST, ParamcountError, find_related, list_names, quote
from paramcount.formats.hub_urls import is_url, parse_hub_url
from paramcount.zoo.catalog import map_built_in_paths

# The names of the commands. As the first word on a command line they are never a model.
RESERVED = (
    "add", "architectures", "audit", "cite", "compare", "diff", "docs", "draw", "explain", "explore", "export",
    "flops", "help", "list", "lora", "map", "memory", "plan", "report", "scan", "schema", "show", "size", "sql",
    "sweep", "trace", "training", "validate", "verify", "why",
)  # fmt: skip
PATH_ENDS = ("/", ".yaml", ".yml", ".json", ".safetensors", ".gguf")


def is_path(word: str) -> bool:
    """Whether a word looks like a path, whatever the current directory contains."""
    return word == "-" or (not is_url(word) and (word.startswith((".", "/", "~")) or word.lower().endswith(PATH_ENDS)))


def path_exists(word: str) -> bool:
    """Whether the current directory has a file or folder of this name."""
    try:
        return os.path.lexists(word)
    except ValueError:  # a NUL, a lone surrogate
        return False


def is_file_name(word: str) -> bool:
    """Whether a word is a file or folder: it looks like a path, or it exists and the zoo has no such name."""
    return is_path(word) or (not is_url(word) and path_exists(word) and not find_kind(word))


def find_kind(name: str) -> str:
    """What a name is in the zoo: "family", "model" or "" if unknown."""
    if zoo.find_path(name):
        return "model"
    if name.casefold() in zoo.list_families():
        return "family"
    return "model" if normalize_name(name[:LONGEST]) in index_spellings() else ""


def normalize_name(name: str) -> str:
    """A name without case, spaces, hyphens and underscores, whose spelling varies.

    >>> normalize_name("Llama 3.1 8B") == normalize_name("llama-3.1-8b")
    True
    """
    return re.sub(r"[\s_\-]+", lambda gap: "-" if _separates_numbers(gap) else "", name.casefold())


def _separates_numbers(gap: re.Match[str]) -> bool:
    """Whether a gap separates two numbers: qwen2 7b is not qwen 27b."""
    before, after = gap.string[: gap.start()][-1:], gap.string[gap.end() :][:1]
    return before.isdigit() and after.isdigit()


@lru_cache(maxsize=1)
def index_spellings() -> dict[str, str]:
    """{normalised spelling: id} of the whole zoo.

    The spellings are ids, names, aliases and Hugging Face ids with and without the publisher.
    """
    return index_names(zoo.list_ids())


@lru_cache(maxsize=1)
def index_built_in_spellings() -> dict[str, str]:
    """The same without the user's own entries."""
    return index_names(map_built_in_paths())


def index_names(ids: Iterable[str]) -> dict[str, str]:
    """{normalised spelling: id} of these entries."""
    spellings: dict[str, str] = {}
    without_publisher: dict[str, str] = {}
    for id in ids:
        for name in zoo.list_names(id):
            spellings.setdefault(normalize_name(name), id)
            without_publisher.setdefault(normalize_name(name.rpartition("/")[2]), id)
    return without_publisher | spellings


def search_id(name: str) -> str | None:
    """The zoo id that a name refers to, or None."""
    if zoo.find_path(name):
        return name
    return index_spellings().get(normalize_name(name[:LONGEST])) if name else None


def find_id(name: str) -> str:
    """The zoo id that a name refers to.

    >>> find_id("meta-llama/Llama-3.1-8B"), find_id("GPT2-small")
    ('llama-3.1-8b', 'gpt2-small')

    Raises: ParamcountError with the nearest names, including commands and families.
    """
    if is_url(name):
        name = parse_hub_url(name).repo
    if id := search_id(name):
        return id
    raise make_unknown_error(name)


def make_unknown_error(name: str) -> ParamcountError:
    """The error for a name that no model has: it may be a family's, a model type's, or a slip of the hand."""
    if name in zoo.list_families():
        ids = list(zoo.list_ids(name))
        return ParamcountError(f"{name} is a family of {len(ids)} models", expected=f"one of them: {list_names(ids)}")
    if name in ARCHITECTURES:
        ids = list_ids_of_type(name)
        found = f"{name} is a supported model type, not a model" + ("" if ids else "; no model of it is in the zoo")
        expected = f"{'a model of this type, or ' if ids else ''}the path of a config.json, such as ./config.json"
        return ParamcountError(found, expected=expected, nearest=ids[:3])
    return ParamcountError(
        f"unknown model {quote(name)}",
        expected="a name from `paramcount list`, or a path such as ./model.yaml",
        nearest=suggest_names(name),
    )


def list_ids_of_type(model_type: str) -> list[str]:
    """The built-in models that are counted by the architecture of a model type."""
    from paramcount.zoo.columns import FIELDS
    from paramcount.zoo.packaged import read_packaged_rows

    fields = [field for field in FIELDS if field.name in ("id", "architecture")]
    return [id for id, architecture in read_packaged_rows(fields) if architecture == model_type]


def suggest_names(name: str) -> list[str]:
    """The ids, commands and families that a name may mean: it begins them, is part of them, or they are related."""
    ids = index_spellings()
    names = {word: f"`paramcount {word}`" for word in RESERVED} | {word: word for word in zoo.list_families()}
    names |= ids
    names |= {normalize_name(id): id for id in ids.values()}
    spelling = normalize_name(name[:LONGEST])
    with_prefix = [word for word in names if spelling and word.startswith(spelling)]
    similar = find_related(spelling, names, most=8)
    with_substring = [word for word in (*similar, *names) if len(spelling) > 1 and spelling in word]
    return list(dict.fromkeys(names[word] for word in (*with_prefix, *with_substring, *similar)))[:3]


def find_shared_entry(name: str) -> str | None:
    """The id of the zoo entry that a name shares with another release of the same sizes; None if the entry is its own.

    >>> find_shared_entry("deepseek-v2.5"), find_shared_entry("gpt2"), find_shared_entry("GPT2-small")
    ('deepseek-v2', None, None)
    """
    if is_url(name):
        name = parse_hub_url(name).repo
    if is_path(name) or zoo.find_path(name) or expand_pattern(name) is not None:
        return None  # a family or a wildcard has no single entry
    id = index_spellings().get(normalize_name(name[:LONGEST]))
    if id is None:
        return None
    id_, display_name, *others = zoo.list_names(id)
    without_publisher = normalize_name(name.rpartition("/")[2])
    main_names = [normalize_name(spelling.rpartition("/")[2]) for spelling in (id_, display_name, *others[:1])]
    return None if any(spelling.startswith(without_publisher) for spelling in main_names) else id


def find_series(word: str) -> list[str] | None:
    """The ids that continue a name after a dash; None for fewer than two, for the name of a model and for a path."""
    if zoo.find_path(word):
        return None
    series = [id for id in zoo.list_ids() if id.startswith(f"{word[:LONGEST].casefold()}-")]
    is_model = normalize_name(word[:LONGEST]) in index_spellings()
    return None if len(series) < 2 or is_model or path_exists(word) else series


def matches_name(word: str, name: str) -> bool:
    """Whether a word is a part of a name, or the beginning of one that is spelled with other gaps.

    >>> matches_name("gpt_2", "GPT-2 small"), matches_name("gpt2", "GPT-2 small"), matches_name("small", "GPT-2 small")
    (True, True, True)
    >>> matches_name("gpt2", "Cerebras-GPT-256M")
    False
    """
    pattern, text = (re.sub(r"[\s_\-]+", "-", part.casefold()) for part in (word, name))
    if "*" in pattern or "?" in pattern:
        return fnmatchcase(text, pattern)
    return pattern in text or normalize_name(name).startswith(normalize_name(word))


def expand_pattern(word: object) -> list[str] | None:
    """The zoo ids of a family, a series or a wildcard; None for the name of one model.

    A series is several ids that continue a name after a dash.

    >>> expand_pattern("gpt2-*")
    ['gpt2-small', 'gpt2-medium', 'gpt2-large', 'gpt2-xl']
    >>> expand_pattern("llama-3")
    ['llama-3-8b', 'llama-3-70b']
    """
    if not isinstance(word, str) or is_path(word) or is_url(word):
        return None
    if zoo.find_built_in_family(word) not in (None, word):  # the usual case, without the other names
        return None
    if word.casefold() in zoo.list_families():
        return list(zoo.list_ids(word.casefold()))
    if "*" not in word and "?" not in word:
        return find_series(word)
    pattern = word[:LONGEST].casefold()
    matches = [id for id in zoo.list_ids() if fnmatchcase(id, pattern)]
    if not matches:
        pattern = normalize_name(pattern)
        matches = [id for id in zoo.list_ids() if fnmatchcase(normalize_name(id), pattern)]
    if not matches:
        raise ParamcountError(
            f"no model matches {quote(word)}",
            expected="a pattern that matches ids from `paramcount list`, such as 'qwen3-*'",
        )
    return matches
