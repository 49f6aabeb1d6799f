"""Models from what identifies them: a zoo id, a Hugging Face id or URL, a path, a mapping or a config object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import paramcount.zoo as zoo
from paramcount.errors import (
    Argument,
    ParamcountError,
    find_nearest,
    make_printable,
    make_strict_error,
    quote,
    show_warnings,
)
from paramcount.formats.files import expand_home
from paramcount.formats.hub_urls import is_url, parse_hub_url
from paramcount.loading.files import LoadRequest, load_document, load_mapping, load_path, load_yaml
from paramcount.tiny import NAMES, find_folder
from paramcount.zoo.names import expand_pattern, is_file_name, make_unknown_error, search_id, suggest_names

SPEC_HELP = (
    "a zoo id, a Hugging Face id or URL, a path, a mapping, a transformers config or a Model from paramcount.load"
)
YAML_ENDS = (".yaml", ".yml")


class ConfigObject(Protocol):
    """A transformers config, or an object like one."""

    @property
    def model_type(self) -> str: ...

    def to_dict(self) -> Mapping[str, Any]: ...


# What every function of the API takes as a model; see `load`.
ModelLike = str | os.PathLike[str] | Mapping[str, Any] | ConfigObject | zoo.Model


def load(spec: object, *, download: bool = False, strict: bool = False, base: object = None) -> zoo.Model:
    """The model that `spec` identifies, with its sizes and their sources.

    Args:
        spec: A zoo id; a Hugging Face id or URL (in the zoo, or in the local cache); the path of a config.json, of a
            directory with one or of a YAML file; a mapping (a parsed config.json, or `architecture` and `config`); a
            transformers config, or any object with `model_type` and `to_dict()`; a loaded model. A name without a
            slash or extension is looked up in the zoo first, then in the current directory.
        download: Fetch the config.json of a Hugging Face id that is not in the local cache; needs the [hub] extra.
        base: The model that an adapter changes, for an adapter_config.json whose base is not known by its name.
        strict: Turn warnings into errors. By default Python's `warnings` shows each of them as a `ConfigWarning`.

    Raises: ParamcountError for an unknown model and for an invalid config.

    >>> load("deepseek-v3").sizes.n_routed_experts
    256
    >>> load({"model_type": "qwen3", "num_hidden_layers": 36}).sizes.n_layers
    36
    """
    model = spec if isinstance(spec, zoo.Model) else load_any(spec, LoadRequest(download, base))
    if base is not None and model.adapter is None:
        raise ParamcountError("is only for an adapter_config.json", where="base", expected="no base for other models")
    if warnings := model.warnings:
        if strict:
            raise make_strict_error(warnings)
        if model is not spec:
            show_warnings(warnings)
    return model


def load_any(spec: object, request: LoadRequest) -> zoo.Model:
    """The model of any spec that is not a Model already."""
    if isinstance(spec, Mapping):
        return load_mapping(spec, "unnamed", request=request)
    if isinstance(spec, str):
        if is_url(spec):
            return _load_url(spec, request)
        if is_file_name(spec):
            return _load_path_or_stdin(spec, request)
        return _load_name(spec, request)
    if isinstance(spec, os.PathLike):
        return _load_path_or_stdin(os.fsdecode(spec), request)
    if is_config_object(spec):
        return _load_object(spec)
    raise ParamcountError(f"{type(spec).__name__} is not a model", expected=SPEC_HELP)


def is_config_object(spec: object) -> TypeGuard[ConfigObject]:
    """Whether an object is a transformers config, or looks like one."""
    return not isinstance(spec, type) and hasattr(spec, "model_type") and callable(getattr(spec, "to_dict", None))


def _load_object(config: ConfigObject) -> zoo.Model:
    """The model of a config object, read like the config.json that it would save."""
    type_name = make_printable(type(config).__name__, 60)
    try:
        # A data type as a config.json states it: bfloat16 for torch.bfloat16.
        document = json.loads(json.dumps(config.to_dict(), default=lambda value: str(value).removeprefix("torch.")))
    except Exception as error:  # whatever the object's own code raises, including RecursionError
        problem = f"to_dict() of {type_name} raises {type(error).__name__}: {make_printable(error, 200)}"
        raise ParamcountError(problem, expected=SPEC_HELP) from error
    if not isinstance(document, dict):
        raise ParamcountError(f"to_dict() of {type_name} does not return a mapping", expected=SPEC_HELP)
    name = getattr(config, "name_or_path", None)
    return load_mapping(document, make_printable(name, 100) if isinstance(name, str) and name else "unnamed")


def _load_url(url: str, request: LoadRequest) -> zoo.Model:
    """The model of a Hugging Face URL. The zoo is used for the main revision only."""
    repo, revision = parse_hub_url(url)
    if revision == "main":
        return _load_name(repo, request)
    from paramcount.huggingface import locate

    path = _find_cached(repo, revision, request.download) if locate.REPO.fullmatch(repo) else None
    if path is None and not request.download:
        raise ParamcountError(
            f"revision {quote(revision)} of {quote(repo)} is not in the local Hugging Face cache",
            expected=Argument("download", "True") + f", or https://huggingface.co/{repo} for the main revision",
        )
    return load_path(_widen(path or locate.download_config(repo, revision)), request)


def _load_name(name: str, request: LoadRequest) -> zoo.Model:
    """The model of a name: from the zoo, else from the local Hugging Face cache, else from the Hub if `download`."""
    if folder := find_folder(name):
        return replace(load_path(folder, request), id=name, name=name)
    if id := search_id(name):
        return zoo.load_entry(id)
    from paramcount.huggingface import locate

    if not locate.REPO.fullmatch(name):
        error = make_unknown_error(name)
        raise error if error.nearest else error.replace(nearest=find_nearest(name, NAMES))
    path = _find_cached(name, "main", request.download)
    if path is None and not request.download:
        raise ParamcountError(
            f"unknown model {quote(name)}",
            expected="a name from `paramcount list` or a repository in the local Hugging Face cache; "
            + Argument("download", "True")
            + " fetches others",
            nearest=suggest_names(name),
        )
    return load_path(_widen(path or locate.download_config(name)), request)


def _widen(path: Path) -> Path:
    """The directory of a cached config.json if other files there belong to the model, as sentence-transformers has."""
    return path.parent if os.path.isfile(path.parent / "modules.json") else path


def _find_cached(repo: str, revision: str, download: bool) -> Path | None:
    """The config.json in the local cache; None if it is missing, or damaged and `download` can replace it."""
    from paramcount.huggingface import locate

    try:
        return locate.find_in_cache(repo, revision)
    except ParamcountError:
        if not download:
            raise
        return None


def _load_path_or_stdin(path: str, request: LoadRequest) -> zoo.Model:
    """The model of a file or directory, or of the config.json on standard input for "-"."""
    if path.lower().endswith(YAML_ENDS):
        return load_yaml(expand_home(path))
    if path != "-":
        return load_path(expand_home(path), request)
    from paramcount.huggingface.locate import read_stdin

    return load_document(read_stdin(), request)


def select_models(
    specs: object, *, estimates: bool = False, download: bool = False, strict: bool = False, base: object = None
) -> list[zoo.Model]:
    """The selected models in the given order, each once.

    Args:
        specs: Whatever `load` accepts, alone or in a list; also families, which select all their models, and patterns,
            in which `*` and `?` match any text.
        estimates: Include third-party estimates.
        download: As for `load`.
        strict: As for `load`.
        base: As for `load`.

    Raises: ParamcountError as `load` does, and for the name of an estimate without `estimates`.
    """
    if isinstance(specs, (str, os.PathLike, Mapping, zoo.Model)) or is_config_object(specs):
        specs = [specs]
    if isinstance(specs, bytes) or not isinstance(specs, Iterable):
        problem = f"{type(specs).__name__} is not a list of models"
        raise ParamcountError(problem, expected=f"a list of any of these: {SPEC_HELP}")
    models: dict[zoo.Model, None] = {}  # without duplicates
    for spec in specs:
        ids = expand_pattern(spec)
        if ids is None:
            model = load(spec, download=download, strict=strict, base=base)
            if model.estimate and not estimates:
                _ = model.sizes  # raises: there is nothing to count
            models[model] = None
            continue
        for id in ids:
            model = zoo.load_entry(id)
            if estimates or not model.estimate:
                models[model] = None
    return list(models)
