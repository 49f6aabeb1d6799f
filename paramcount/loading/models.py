"""Models from the words that name them: a zoo id, a Hugging Face id or URL, a path, a mapping, a config object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramcount import zoo
from paramcount.errors import ParamcountError, describe_value, make_printable, make_strict_error, quote, show_warnings
from paramcount.formats.files import expand_home
from paramcount.formats.hub_urls import is_url, parse_hub_url
from paramcount.zoo.names import expand_pattern, find_id, is_file_name, suggest_names

if TYPE_CHECKING:
    from paramcount.huggingface.locate import Document

SPEC_HELP = (
    "a zoo id, a Hugging Face id or URL, a path, a mapping, a transformers config or a Model from paramcount.load"
)
YAML_ENDS = (".yaml", ".yml")


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
        return (
            _load_url(spec, download)
            if is_url(spec)
            else _load_path_or_stdin(spec)
            if is_file_name(spec)
            else _load_name(spec, download)
        )
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
    from paramcount.huggingface import locate

    path = _find_cached(repo, revision, download) if locate.REPO.fullmatch(repo) else None
    if path is None and not download:
        expected = f"--download, or https://huggingface.co/{repo} for the main revision"
        raise ParamcountError(
            f"revision {quote(revision)} of {quote(repo)} is not in the local Hugging Face cache", expected=expected
        )
    return load_path(path or locate.download(repo, revision))


def _load_name(name: str, download: bool) -> zoo.Model:
    """The model of a name: from the zoo, else from the local Hugging Face cache, else with `download` from the Hub."""
    try:
        return zoo.load_entry(find_id(name))
    except ParamcountError:
        from paramcount.huggingface import locate

        if not locate.REPO.fullmatch(name):
            raise
        path = _find_cached(name, "main", download)
        if path is None and not download:
            expected = "a name from `paramcount list`, a repository in the local Hugging Face cache, or --download"
            raise ParamcountError(
                f"unknown model {quote(name)}", expected=expected, nearest=suggest_names(name)
            ) from None
        return load_path(path or locate.download(name))


def _find_cached(repo: str, revision: str, download: bool) -> Path | None:
    """config.json in the local cache; None if it is missing, or if the cache is damaged and `download` can repair it."""
    from paramcount.huggingface import locate

    try:
        return locate.find_in_cache(repo, revision)
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
    if (
        is_entry
        or content.get("estimate") is True
        or "architecture" in content
        or isinstance(content.get("config"), Mapping)
    ):
        return zoo.make_model(zoo.parse_entry(content, id))
    from paramcount.huggingface.locate import check_is_config

    check_is_config(content)
    return _load_config(content, id, name)


def _load_config(content: Mapping[str, Any], id: str, name: str) -> zoo.Model:
    from paramcount.huggingface.config import read_config

    found = read_config(content, id, name)
    return zoo.Model(found.id, found.name, found.sizes, found.architecture, found.reading, found.context_length)


def select_models(
    words: object, *, estimates: bool = False, download: bool = False, strict: bool = False
) -> list[zoo.Model]:
    """The models that words refer to, in the given order, each once: a family is all its models, `*` and `?` match any text.

    Estimates come only with `estimates`; `download` and `strict` as for `load`.

    Raises: ParamcountError for an unknown word, or for an estimate without `estimates`.
    """
    if isinstance(words, (str, os.PathLike, Mapping, zoo.Model)) or is_config_object(words):
        words = [words]
    if isinstance(words, bytes) or not isinstance(words, Iterable):
        raise ParamcountError(
            f"{type(words).__name__} is not a list of models", expected=f"a list of any of these: {SPEC_HELP}"
        )
    found: dict[zoo.Model, None] = {}
    for word in words:
        many = expand_pattern(word)
        for model in (
            [load(word, download=download, strict=strict)] if many is None else [zoo.load_entry(id) for id in many]
        ):
            if model.estimate and not estimates:
                if many is None:
                    _ = model.sizes  # raises: there is nothing to count
                continue
            found[model] = None
    return list(found)
