"""Multimodal models: configs with a section for the language model, and how the reference reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paramcount.architectures import get_own, get_sections, list_section_types
from paramcount.architectures.encoders import SECTION_ENCODERS, load_encoder
from paramcount.errors import ParamcountError, describe_value, find_nearest, join_words, list_names
from paramcount.sizes.sections import Sections

if TYPE_CHECKING:
    from paramcount.sizes import Sizes


TIE_KEY = "tie_word_embeddings"
OLD_TIE_KEY = "tie_embedding"  # of LFM2
OVIS_HEAD = {"vocab_size": 151643, "hidden_size": 1536}  # top-level keys of an untied LM head, with their defaults


def find_sections(document: Mapping[str, Any]) -> Sections:
    """How the reference reads the sections of the config.json of a multimodal model."""
    sections = get_sections(document["model_type"])
    if sections is None:
        raise ParamcountError("is not a multimodal model", where="model_type")
    return sections


def get_language_config(document: Mapping[str, Any]) -> dict[str, Any]:
    """The language model of a multimodal config.json as a config.json of its own.

    Raises: ParamcountError if the section is not a mapping, or if its model type is not supported.
    """
    sections = find_sections(document)
    section = get_language_section(document, sections)
    config = {**section, "model_type": find_language_type(section, sections), "architectures": None}
    is_tied = document.get(TIE_KEY, None if sections.tie_rule == "text unless top" else sections.default_tie)
    if sections.has_old_tie_key:
        is_tied = document.get(OLD_TIE_KEY, is_tied)
    if is_tied is None and sections.tie_rule == "text unless top":
        return config
    if type(is_tied) is not bool and sections.tie_rule != "never":
        raise ParamcountError(f"= {describe_value(is_tied)}", where=TIE_KEY, expected="true or false")
    match sections.tie_rule:
        case "top" | "text unless top":
            config[TIE_KEY] = is_tied
        case "never":
            config[TIE_KEY] = False
        case "outside":
            config[TIE_KEY] = is_tied
            if not is_tied:
                check_head_sizes(document, section, sections.section)
        case "either" if is_tied is True:
            config[TIE_KEY] = True
    if OLD_TIE_KEY in config and (sections.tie_rule not in ("text", "either") or is_tied is True):
        config[OLD_TIE_KEY] = config[TIE_KEY]
    return config


def get_language_section(document: Mapping[str, Any], sections: Sections) -> Mapping[str, Any]:
    """The section of the language model, with the reference's defaults if it is missing."""
    section = document.get(sections.section)
    if section is None and sections.is_flat:
        others = (*sections.other_sections, TIE_KEY)  # which stays a key of the whole
        return {key: value for key, value in document.items() if key not in others}
    if section is None:
        return sections.default_section
    if not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=sections.section, expected="a JSON object")
    if sections.needs_model_type and "model_type" not in section:
        where = f"{sections.section}.model_type"
        raise ParamcountError("is missing", where=where, expected=sections.default_type)
    return {**sections.default_section, **section} if sections.fills_missing_keys else section


def find_language_type(section: Mapping[str, Any], sections: Sections) -> str:
    model_type = section.get("model_type", sections.default_type)
    if sections.classes:
        model_type = find_type_of_class(section, sections)
    elif sections.versions:
        model_type = find_type_of_version(section, sections)
    elif sections.ignores_model_type:
        model_type = sections.default_type
    model_type = check_model_type(model_type, sections.section)
    is_old_type = bool(sections.old_type) and model_type == sections.old_type
    if is_old_type or model_type == sections.default_type:
        return sections.default_type
    named_types = (*sections.classes.values(), *sections.versions.values())
    supported = sections.supported_types or named_types or list_section_types()
    if model_type not in supported:
        raise ParamcountError(
            f"= {describe_value(model_type)} is not supported",
            where=f"{sections.section}.model_type",
            expected=list_names(sorted(supported), model_type),
            nearest=find_nearest(model_type, supported),
        )
    return model_type


def rename_sections(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json with its sections under their present names too."""
    renamed: Mapping[str, str] = get_own(document.get("model_type"), "older_sections") or {}
    for old, new in renamed.items():
        if document.get(new) is None and document.get(old) is not None:
            document = {**document, new: document[old]}
    replaced: Mapping[str, str] = get_own(document.get("model_type"), "replaced_sections") or {}
    for old, new in replaced.items():
        if document.get(old) is not None:
            document = {**{key: value for key, value in document.items() if key != old}, new: document[old]}
    named: Mapping[str, tuple[str, Mapping[str, Any]]] = get_own(document.get("model_type"), "named_sections") or {}
    for key, (section, known) in named.items():
        name = document.get(key)
        if not isinstance(name, str):
            found = "is missing" if name is None else f"= {describe_value(name)}"
            raise ParamcountError(found, where=key, expected=f"the name of a model, such as {next(iter(known))}")
        document = {**document, section: known.get(name, {"model_type": name})}
    return document


def rename_old_type(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json with the present name of the language model's type."""
    sections = get_sections(document["model_type"])
    section = document.get(sections.section) if sections and sections.old_type else None
    if sections and isinstance(section, Mapping) and section.get("model_type") == sections.old_type:
        return {**document, sections.section: {**section, "model_type": sections.default_type}}
    return document


def check_head_sizes(document: Mapping[str, Any], section: Mapping[str, Any], name: str) -> None:
    """Raise an error if an untied LM head has other sizes at the top level than the token embedding in the section."""
    if all(section.get(key) == document.get(key, default) for key, default in OVIS_HEAD.items()):
        return
    raise ParamcountError(
        "= false, but the LM head and the token embedding have different sizes",
        where=TIE_KEY,
        expected=f"true, or the same {join_words(OVIS_HEAD, 'and')} at the top level and in {name}",
    )


def find_type_of_class(section: Mapping[str, Any], sections: Sections) -> str:
    """The model type of the class that a section's `architectures` names first."""
    classes = section.get("architectures")
    cls = classes[0] if isinstance(classes, (list, tuple)) and classes else None
    if isinstance(cls, str) and cls in sections.classes:
        return sections.classes[cls]
    raise ParamcountError(
        "is missing" if cls is None else f"= {describe_value(cls)} is not supported",
        where=f"{sections.section}.architectures.0",
        expected=list_names(sections.classes, cls or ""),
        choices=sections.classes,
        nearest=find_nearest(cls, sections.classes),
    )


def find_type_of_version(section: Mapping[str, Any], sections: Sections) -> str:
    version = section.get("version")
    if str(version) in sections.versions:
        return sections.versions[str(version)]
    problem = "is missing" if version is None else f"= {describe_value(version)} is not supported"
    raise ParamcountError(problem, where="version", choices=sections.versions)


def get_encoder_type(document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The model type of the vision encoder that a multimodal config.json names, and its section."""
    sections = find_sections(document)
    name = sections.other_sections[0]
    section = document.get(name)
    if section is None:
        section = sections.default_encoder_section
    elif not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=name, expected="a JSON object")
    return check_model_type(section.get("model_type", sections.default_encoder), name), section


def check_model_type(model_type: object, section: str) -> str:
    """The model type of a section. Raises an error if it is not a string."""
    if not isinstance(model_type, str):
        raise ParamcountError(f"= {describe_value(model_type)}", where=f"{section}.model_type", expected="a string")
    return model_type


def get_encoder_config(document: Mapping[str, Any]) -> tuple[type[Sizes], Mapping[str, Any]]:
    """The class of the vision encoder that a multimodal config.json names, and its section."""
    name, section = get_encoder_type(document)
    if name not in SECTION_ENCODERS:
        raise ParamcountError(
            f"= {describe_value(name)} is not supported",
            where="vision_config.model_type",
            expected=list_names(SECTION_ENCODERS, name),
            nearest=find_nearest(name, SECTION_ENCODERS),
        )
    return load_encoder(name), section
