"""Name resolution: an id, a Hugging Face id or URL, a common spelling, a family, a wildcard or a path."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramcount import zoo
from paramcount.errors import LONGEST, ParamcountError, describe_value, find_nearest, list_names, make_printable, make_strict_error, quote, show_warnings
from paramcount.formats.files import expand_home
from paramcount.huggingface.urls import is_url, parse_hub_url

if TYPE_CHECKING:
    from paramcount.huggingface.locate import Document

# The names of the commands: as the first word on a command line they are never a model.
RESERVED = (
    "architectures", "audit", "compare", "diff", "docs", "draw", "explain", "help", "list", "report",
    "scan", "schema", "show", "trace", "verify", "why",
)  # fmt: skip
PATH_ENDS = ("/", ".yaml", ".yml", ".json", ".safetensors", ".gguf")
SPEC_HELP = "a zoo id, a Hugging Face id or URL, a path, a mapping, a transformers config or a Model from paramcount.load"
YAML_ENDS = (".yaml", ".yml")


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
    """Whether a word names a file or folder: by its looks, or because it exists and the zoo has no such name."""
    return is_path(word) or (not is_url(word) and path_exists(word) and not find_kind(word))


def find_kind(name: str) -> str:
    """What a name is in the zoo: "family", "model" or "" if unknown."""
    if name.casefold() in zoo.list_families():
        return "family"
    return "model" if zoo.find_path(name) or normalize_name(name[:LONGEST]) in index_spellings() else ""


def normalize_name(name: str) -> str:
    """A name without case, blanks, hyphens and underscores, which people write differently.

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
    """{normalised spelling: id} of the whole zoo: ids, names, aliases, Hugging Face ids with and without the publisher."""
    found: dict[str, str] = {}
    weaker: dict[str, str] = {}
    for id in zoo.list_ids():
        for name in zoo.list_names(id):
            found.setdefault(normalize_name(name), id)
            weaker.setdefault(normalize_name(name.rpartition("/")[2]), id)
    return weaker | found


def find_id(name: str) -> str:
    """The zoo id that a name refers to.

    >>> find_id("meta-llama/Llama-3.1-8B"), find_id("GPT2-small")
    ('llama-3.1-8b', 'gpt2-small')

    Raises: ParamcountError with the nearest names, including commands and families.
    """
    if is_url(name):
        name = parse_hub_url(name).repo
    if zoo.find_path(name):
        return name
    known = index_spellings()
    if name and (id := known.get(normalize_name(name[:LONGEST]))):
        return id
    if name in zoo.list_families():
        raise ParamcountError(f"{name} is a family of {len(list(zoo.list_ids(name)))} models", expected=f"one of them: {list_names(zoo.list_ids(name))}")
    raise ParamcountError(f"unknown model {quote(name)}", expected="a name from `paramcount list`, or a path such as ./model.yaml", nearest=suggest_names(name))


def suggest_names(name: str) -> list[str]:
    """The ids, commands and families nearest to a name."""
    known = index_spellings()
    by_spelling = {**{word: word for word in (*RESERVED, *zoo.list_families())}, **known, **{normalize_name(id): id for id in known.values()}}
    typed = normalize_name(name[:LONGEST])
    beginning = [word for word in by_spelling if typed and word.startswith(typed)]
    holding = [word for word in by_spelling if len(typed) > 1 and typed in word]
    return list(dict.fromkeys(by_spelling[word] for word in (*beginning, *holding, *find_nearest(typed, by_spelling, most=8))))[:3]


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
    id_, display, *others = zoo.list_names(id)
    bare = normalize_name(name.rpartition("/")[2])
    own = [normalize_name(spelling.rpartition("/")[2]) for spelling in (id_, display, *others[:1])]
    return None if any(spelling.startswith(bare) for spelling in own) else id


def load(spec: object, *, download: bool = False, strict: bool = False) -> zoo.Model:
    """The validated config of a model, with its sources.

    `spec`: a zoo id; a Hugging Face id or URL (of the zoo, else of the local cache); the path of a config.json, of a directory with one
    or of a YAML file; a mapping (a parsed config.json, or `architecture` and `config`); a transformers config, or any object with
    `model_type` and `to_dict()`; a loaded model. A bare name is looked up in the zoo first, then in the current directory. `download`:
    config.json of a Hugging Face id that is nowhere else is fetched from the Hub, which needs the [hub] extra. `strict`: warnings are
    errors; else Python's `warnings` shows each as a `ConfigWarning`.

    >>> load("deepseek-v3").config.n_routed_experts
    256
    >>> load({"model_type": "qwen3", "num_hidden_layers": 36}).config.n_layers
    36

    Raises: ParamcountError for anything else, saying what was found and what is expected.
    """
    model = spec if isinstance(spec, zoo.Model) else _load_any(spec, download)
    if warnings := model.warnings:
        if strict:
            raise make_strict_error(warnings)
        if model is not spec:
            show_warnings(warnings)
    return model


def _load_any(spec: object, download: bool) -> zoo.Model:
    """The model of any spec that is not a Model already."""
    if isinstance(spec, Mapping):
        return load_mapping(spec, "unnamed")
    if isinstance(spec, str):
        return _load_url(spec, download) if is_url(spec) else _load_path_or_stdin(spec) if is_file_name(spec) else _load_name(spec, download)
    if isinstance(spec, os.PathLike):
        return _load_path_or_stdin(os.fsdecode(spec))
    if is_config_object(spec):
        return _load_object(spec)
    raise ParamcountError(f"{type(spec).__name__} is not a model", expected=SPEC_HELP)


def is_config_object(spec: object) -> bool:
    """Whether an object is a transformers config, or looks like one."""
    return not isinstance(spec, type) and hasattr(spec, "model_type") and callable(getattr(spec, "to_dict", None))


def _load_object(config: Any) -> zoo.Model:
    """The model of a config object, read like the config.json that it saves."""
    try:
        document = json.loads(json.dumps(config.to_dict(), default=str))
    except Exception as error:  # whatever the object's own code raises, also if it is recursive
        problem = f"to_dict() of {make_printable(type(config).__name__, 60)} raises {type(error).__name__}: {make_printable(str(error), 200)}"
        raise ParamcountError(problem, expected=SPEC_HELP) from error
    if not isinstance(document, dict):
        raise ParamcountError(f"to_dict() of {type(config).__name__} does not return a mapping", expected=SPEC_HELP)
    name = getattr(config, "name_or_path", None)
    return load_mapping(document, make_printable(name, 100) if isinstance(name, str) and name else "unnamed")


def _load_url(url: str, download: bool) -> zoo.Model:
    """The model of a Hugging Face URL. The zoo is used for the main revision only."""
    repo, revision = parse_hub_url(url)
    if revision == "main":
        return _load_name(repo, download)
    from paramcount.huggingface import locate as config_files

    path = _find_cached(repo, revision, download) if config_files.REPO.fullmatch(repo) else None
    if path is None and not download:
        expected = f"--download, or https://huggingface.co/{repo} for the main revision"
        raise ParamcountError(f"revision {quote(revision)} of {quote(repo)} is not in the local Hugging Face cache", expected=expected)
    return load_path(path or config_files.download(repo, revision))


def _load_name(name: str, download: bool) -> zoo.Model:
    """The model of a name: from the zoo, else from the local Hugging Face cache, else with `download` from the Hub."""
    try:
        return zoo.load_entry(find_id(name))
    except ParamcountError:
        from paramcount.huggingface import locate as config_files

        if not config_files.REPO.fullmatch(name):
            raise
        path = _find_cached(name, "main", download)
        if path is None and not download:
            expected = "a name from `paramcount list`, a repository in the local Hugging Face cache, or --download"
            raise ParamcountError(f"unknown model {quote(name)}", expected=expected, nearest=suggest_names(name)) from None
        return load_path(path or config_files.download(name))


def _find_cached(repo: str, revision: str, download: bool) -> Path | None:
    """config.json in the local cache; None if it is missing, or if the cache is damaged and `download` can repair it."""
    from paramcount.huggingface import locate as config_files

    try:
        return config_files.find_in_cache(repo, revision)
    except ParamcountError:
        if not download:
            raise
        return None


def _load_path_or_stdin(path: str) -> zoo.Model:
    if path.lower().endswith(YAML_ENDS):
        return zoo.make_model(zoo.read_entry(expand_home(path)))
    if path != "-":
        return load_path(expand_home(path))
    from paramcount.huggingface.locate import read_stdin

    return load_document(read_stdin())


def load_path(path: Path) -> zoo.Model:
    """The model of a config.json, or of a directory with one."""
    from paramcount.huggingface.locate import read_path

    return load_document(read_path(path))


def load_document(document: Document) -> zoo.Model:
    """The model of a parsed file; errors name its location."""
    try:
        return load_mapping(document.content, document.place, document.name)
    except ParamcountError as error:
        raise error.add_location(document.place) from None


def load_mapping(content: Mapping[str, Any], id: str, name: str = "") -> zoo.Model:
    """The model of a parsed mapping: a config.json has `model_type` or `architectures`, a zoo entry `architecture` and `config`.

    Raises: ParamcountError if it is both or neither, or another tool's file.
    """
    is_hub, is_entry = "model_type" in content, "architecture" in content and "config" in content
    if is_hub and is_entry:
        raise ParamcountError("has both model_type and architecture", expected="a config.json or a zoo entry, not both")
    if is_hub:
        if wrong := [key for key in content if not isinstance(key, str)]:
            raise ParamcountError(f"the key {describe_value(wrong[0])} is not a string", expected="string keys")
        return _load_config(content, id, name)
    if is_entry or content.get("estimate") is True or "architecture" in content or isinstance(content.get("config"), Mapping):
        return zoo.make_model(zoo.parse_entry(content, id))
    from paramcount.huggingface.locate import check_is_config

    check_is_config(content)
    return _load_config(content, id, name)


def _load_config(content: Mapping[str, Any], id: str, name: str) -> zoo.Model:
    from paramcount.huggingface.config import read_config

    found = read_config(content, id, name)
    return zoo.Model(found.id, found.name, found.sizes, found.architecture, found.reading, found.context_length)


def select_models(words: object, *, estimates: bool = False, download: bool = False, strict: bool = False) -> list[zoo.Model]:
    """The models that words refer to, in the given order, each once: a family is all its models, `*` and `?` match any text.

    Estimates come only with `estimates`; `download` and `strict` as for `load`.

    Raises: ParamcountError for an unknown word, or for an estimate without `estimates`.
    """
    if isinstance(words, (str, os.PathLike, Mapping, zoo.Model)) or is_config_object(words):
        words = [words]
    if isinstance(words, bytes) or not isinstance(words, Iterable):
        raise ParamcountError(f"{type(words).__name__} is not a list of models", expected=f"a list of any of these: {SPEC_HELP}")
    found: dict[zoo.Model, None] = {}
    for word in words:
        many = expand_pattern(word)
        for model in [load(word, download=download, strict=strict)] if many is None else [zoo.load_entry(id) for id in many]:
            if model.estimate and not estimates:
                if many is None:
                    _ = model.sizes  # raises: there is nothing to count
                continue
            found[model] = None
    return list(found)


def expand_pattern(word: object) -> list[str] | None:
    """The zoo ids of a family or a wildcard; None for the name of one model.

    >>> expand_pattern("gpt2-*")
    ['gpt2-small', 'gpt2-medium', 'gpt2-large', 'gpt2-xl']
    """
    if not isinstance(word, str) or is_path(word) or is_url(word):
        return None
    if word.casefold() in zoo.list_families():
        return list(zoo.list_ids(word.casefold()))
    if "*" not in word and "?" not in word:
        return None
    exact, loose = word[:LONGEST].casefold(), normalize_name(word[:LONGEST])
    matching = [id for id in zoo.list_ids() if fnmatchcase(id, exact)] or [id for id in zoo.list_ids() if fnmatchcase(normalize_name(id), loose)]
    if not matching:
        raise ParamcountError(f"no model matches {quote(word)}", expected="a pattern that matches ids of `paramcount list`, such as 'qwen3-*'")
    return matching
