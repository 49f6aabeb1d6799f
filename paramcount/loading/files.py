"""Models from parsed files: a config.json, another form of one, an adapter's config, a directory, a zoo entry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import paramcount.zoo as zoo
from paramcount.errors import ParamcountError, describe_value, locate_errors, quote
from paramcount.formats.files import read_text
from paramcount.zoo.names import find_id, suggest_names

if TYPE_CHECKING:
    from paramcount.huggingface.forms import ConfigForm
    from paramcount.huggingface.locate import Document

GGUF = ".gguf"
BASE_KEY = "base_model_name_or_path"
BASE_HELP = "a model of the zoo, in the local Hugging Face cache or on this disk, or the option base"


class LoadRequest(NamedTuple):
    """What a model may be read with besides its spec."""

    download: bool = False  # fetch the config.json of a Hugging Face id that is not in the local cache
    base: object = None  # the spec of the model that an adapter changes, instead of the name that its config states
    is_base: bool = False  # the model that is read is the base of an adapter, and no adapter itself


DEFAULT = LoadRequest()


def load_yaml(path: Path) -> zoo.Model:
    """The model of a zoo entry. Raises: ParamcountError that names the tool if the file is another one's."""
    from paramcount.formats.strict_yaml import LARGEST_FILE
    from paramcount.huggingface.forms.refused import find_yaml_kind

    text = read_text(path, "a YAML file", LARGEST_FILE)
    with locate_errors(path):
        if error := find_yaml_kind(text):
            raise error
    return zoo.make_model(zoo.read_entry(path))


def load_path(path: Path, request: LoadRequest = DEFAULT) -> zoo.Model:
    """The model of a config.json, or of a directory with one."""
    from paramcount.huggingface.locate import read_path

    if os.path.isdir(path) and (model := _load_sentence_model(path)):
        return model
    if path.suffix.lower() == GGUF or is_gguf_folder(path):
        from paramcount.loading.gguf import load_gguf

        return load_gguf(path)
    return load_document(read_path(path), request)


def is_gguf_folder(folder: Path) -> bool:
    """Whether a directory has GGUF files and no config."""
    from paramcount.huggingface.locate import find_config

    try:
        names = os.listdir(folder) if os.path.isdir(folder) else []
    except OSError:
        return False  # reading it raises the error
    return any(name.lower().endswith(GGUF) for name in names) and find_config(folder) is None


def _load_sentence_model(folder: Path) -> zoo.Model | None:
    """The model of a directory of sentence-transformers, or of such a repository in a cache; None for any other."""
    from paramcount.huggingface.locate import find_snapshot, read_path

    if os.path.isdir(folder / "snapshots"):
        folder = find_snapshot(folder).parent
    if not os.path.isfile(folder / "modules.json"):
        return None
    from paramcount.loading import sentence_transformers

    modules = sentence_transformers.find_modules(folder)
    if modules is None:
        return None
    document = read_path(modules[0].folder)
    content = sentence_transformers.use_base_class(document.content)
    return sentence_transformers.add_modules(load_document(document._replace(content=content)), modules)


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
        check_is_published(content["model_type"])
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


def check_is_published(model_type: object) -> None:
    """Raises: ParamcountError for the name of a model whose sizes are unpublished, which is no misspelt type."""
    from paramcount.architectures import ARCHITECTURES

    if not isinstance(model_type, str) or model_type in ARCHITECTURES:
        return
    try:
        model = zoo.load_entry(find_id(model_type))
    except ParamcountError:
        return
    if model.estimate:
        problem = f"= {quote(model_type)} is a model whose sizes are unpublished; a config cannot be counted as one"
        raise ParamcountError(problem, where="model_type")


def _load_adapter(content: Mapping[str, Any], request: LoadRequest) -> zoo.Model:
    """The model that an adapter_config.json of PEFT changes, with the adapter beside it."""
    if request.is_base:
        raise ParamcountError("is an adapter too", expected="the base of an adapter is a model")
    from paramcount.loading.models import load_any

    inner, base, name = LoadRequest(request.download, is_base=True), request.base, content.get(BASE_KEY)
    if base is not None:
        model = base if isinstance(base, zoo.Model) else load_any(base, inner)
    elif isinstance(name, str) and name:
        try:
            model = load_any(name, inner)
        except ParamcountError as error:
            problem = f"= {quote(name)} is not known: {error.found}"
            last = name.rstrip("/").rpartition("/")[2]
            nearest = suggest_names(last) if len(last) > 2 else ()
            raise ParamcountError(problem, where=BASE_KEY, expected=BASE_HELP, nearest=nearest) from None
    else:
        raise ParamcountError(f"= {describe_value(name)}", where=BASE_KEY, expected=BASE_HELP)
    note = f"read as PEFT's adapter_config.json, an adapter of {model.id}"
    return replace(model, adapter=content, reading=model.reading._replace(notes=(note, *model.reading.notes)))


def _find_form(content: Mapping[str, Any]) -> ConfigForm | None:
    """The form of a mapping that is no usual config.json: it has no model type, or Mistral's key beside it."""
    if "model_type" in content and "dim" not in content:
        return None
    from paramcount.huggingface.forms import find_form

    return find_form(content)


def _load_form(form: ConfigForm, content: Mapping[str, Any], id: str, name: str) -> zoo.Model:
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
