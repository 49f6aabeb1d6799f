"""Models from what identifies them: a zoo id, a Hugging Face id or URL, a path, a mapping or a config object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import paramcount.zoo as zoo
from paramcount.errors import (
    ParamcountError,
    describe_value,
    locate_errors,
    make_printable,
    make_strict_error,
    quote,
    show_warnings,
)
from paramcount.formats.files import expand_home, read_text
from paramcount.formats.hub_urls import is_url, parse_hub_url
from paramcount.zoo.names import expand_pattern, find_id, is_file_name, suggest_names

if TYPE_CHECKING:
    from paramcount.huggingface.forms import Form
    from paramcount.huggingface.locate import Document

SPEC_HELP = (
    "a zoo id, a Hugging Face id or URL, a path, a mapping, a transformers config or a Model from paramcount.load"
)
YAML_ENDS = (".yaml", ".yml")
BASE_KEY = "base_model_name_or_path"
BASE_HELP = "a model of the zoo, in the local Hugging Face cache or on this disk, or the option base"


class LoadRequest(NamedTuple):
    """What a model may be read with besides its spec."""

    download: bool = False  # fetch the config.json of a Hugging Face id that is not in the local cache
    base: object = None  # the spec of the model that an adapter changes, instead of the name that its config states
    is_base: bool = False  # the model that is read is the base of an adapter, and no adapter itself


DEFAULT = LoadRequest()


class ConfigObject(Protocol):
    """A transformers config, or an object like one."""

    model_type: str

    def to_dict(self) -> Mapping[str, Any]: ...


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
    model = spec if isinstance(spec, zoo.Model) else _load_any(spec, LoadRequest(download, base))
    if base is not None and model.adapter is None:
        raise ParamcountError("is only for an adapter_config.json", where="base", expected="no base for other models")
    if warnings := model.warnings:
        if strict:
            raise make_strict_error(warnings)
        if model is not spec:
            show_warnings(warnings)
    return model


def _load_any(spec: object, request: LoadRequest) -> zoo.Model:
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
            expected=f"--download, or https://huggingface.co/{repo} for the main revision",
        )
    return load_path(path or locate.download_config(repo, revision), request)


def _load_name(name: str, request: LoadRequest) -> zoo.Model:
    """The model of a name: from the zoo, else from the local Hugging Face cache, else from the Hub if `download`."""
    try:
        return zoo.load_entry(find_id(name))
    except ParamcountError:
        from paramcount.huggingface import locate

        if not locate.REPO.fullmatch(name):
            raise
        path = _find_cached(name, "main", request.download)
        if path is None and not request.download:
            raise ParamcountError(
                f"unknown model {quote(name)}",
                expected="a name from `paramcount list` or a repository in the local Hugging Face cache; "
                "--download fetches others",
                nearest=suggest_names(name),
            ) from None
        return load_path(path or locate.download_config(name), request)


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
        return _load_yaml(expand_home(path))
    if path != "-":
        return load_path(expand_home(path), request)
    from paramcount.huggingface.locate import read_stdin

    return load_document(read_stdin(), request)


def _load_yaml(path: Path) -> zoo.Model:
    """The model of a zoo entry. Raises: ParamcountError that names the tool if the file is another one's."""
    from paramcount.formats.strict_yaml import LARGEST_FILE
    from paramcount.huggingface.forms.refused import find_yaml_kind

    with locate_errors(path):
        if error := find_yaml_kind(read_text(path, "a YAML file", LARGEST_FILE)):
            raise error
    return zoo.make_model(zoo.read_entry(path))


def load_path(path: Path, request: LoadRequest = DEFAULT) -> zoo.Model:
    """The model of a config.json, or of a directory with one."""
    from paramcount.huggingface.locate import read_path

    return load_document(read_path(path), request)


def load_document(document: Document, request: LoadRequest = DEFAULT) -> zoo.Model:
    """The model of a parsed file; errors name its location."""
    try:
        return load_mapping(document.content, document.place, document.name, request)
    except ParamcountError as error:
        raise error.add_location(document.place) from None


def load_mapping(content: Mapping[str, Any], id: str, name: str = "", request: LoadRequest = DEFAULT) -> zoo.Model:
    """The model of a parsed mapping.

    A config.json has `model_type` or `architectures`, a zoo entry has `architecture` and `config`.

    Raises: ParamcountError if the mapping is both or neither, or the file of another tool.
    """
    if "peft_type" in content:
        return _load_adapter(content, request)
    if form := _find_form(content):
        return _load_form(form, content, id, name)
    has_model_type, has_config = "model_type" in content, "architecture" in content and "config" in content
    if has_model_type and has_config:
        raise ParamcountError("has both model_type and architecture", expected="a config.json or a zoo entry, not both")
    if has_model_type:
        if set(map(type, content)) != {str}:
            for key in content:
                if not isinstance(key, str):
                    raise ParamcountError(f"the key {describe_value(key)} is not a string", expected="string keys")
        return _load_config(content, id, name)
    is_estimate = content.get("estimate") is True
    if is_estimate or "architecture" in content or isinstance(content.get("config"), Mapping):  # perhaps incomplete
        return zoo.make_model(zoo.parse_entry(content, id))
    from paramcount.huggingface.forms.refused import check_is_config

    check_is_config(content)
    return _load_config(content, id, name)


def _load_adapter(content: Mapping[str, Any], request: LoadRequest) -> zoo.Model:
    """The model that an adapter_config.json of PEFT changes, with the adapter beside it."""
    if request.is_base:
        raise ParamcountError("is an adapter too", expected="the base of an adapter is a model")
    inner, base, name = LoadRequest(request.download, is_base=True), request.base, content.get(BASE_KEY)
    if base is not None:
        model = base if isinstance(base, zoo.Model) else _load_any(base, inner)
    elif isinstance(name, str) and name:
        try:
            model = _load_any(name, inner)
        except ParamcountError as error:
            problem = f"= {quote(name)} is not known: {error.found}"
            last = name.rstrip("/").rpartition("/")[2]
            nearest = suggest_names(last) if len(last) > 2 else ()
            raise ParamcountError(problem, where=BASE_KEY, expected=BASE_HELP, nearest=nearest) from None
    else:
        raise ParamcountError(f"= {describe_value(name)}", where=BASE_KEY, expected=BASE_HELP)
    note = f"read as PEFT's adapter_config.json, an adapter of {model.id}"
    return replace(model, adapter=content, reading=model.reading._replace(notes=(note, *model.reading.notes)))


def _find_form(content: Mapping[str, Any]) -> Form | None:
    """The form of a mapping that is no usual config.json: it has no model type, or Mistral's key beside it."""
    if "model_type" in content and "dim" not in content:
        return None
    from paramcount.huggingface.forms import find_form

    return find_form(content)


def _load_form(form: Form, content: Mapping[str, Any], id: str, name: str) -> zoo.Model:
    """The model of a file in another form, with a note that says which; errors name the keys that the file has."""
    try:
        translation = form.translate(content)
        model = _load_config(translation.document, id, name)
    except ParamcountError as error:
        raise form.rename_error(error) from None
    reading = model.reading
    warnings = (*translation.warnings, *map(form.rename, reading.warnings))
    notes = (translation.note or f"read as {form.name}", *reading.notes)
    return replace(model, reading=reading._replace(warnings=warnings, notes=notes))


def _load_config(content: Mapping[str, Any], id: str, name: str) -> zoo.Model:
    from paramcount.huggingface.config import read_config

    config = read_config(content, id, name)
    return zoo.Model(config.id, config.name, config.sizes, config.architecture, config.reading, config.context_length)


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
