"""The architecture that a Hugging Face config.json describes, and the origin of each of its sizes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from paramcount.architectures import ARCHITECTURES, get_own, get_sections, read_index, split_name
from paramcount.architectures import architecture as architecture_of
from paramcount.architectures.classes import (
    get_base_class,
    get_reference_class,
    has_lm_head,
    list_equivalent_classes,
    model_types,
    stems,
    strip_class_ending,
)
from paramcount.architectures.encoders import SECTION_ENCODERS
from paramcount.errors import ParamcountError, describe_value, find_nearest, find_related, join_words, make_printable
from paramcount.huggingface.fields import (
    list_default_sizes,
    list_unread_keys,
    read_language_model,
    read_sizes,
)
from paramcount.huggingface.key_warnings import (
    Ignored,
    find_ignored,
    format_names,
    warn_fixed_fields,
    warn_ignored,
    warn_missing_sections,
    warn_missing_sizes,
)
from paramcount.huggingface.multimodal import get_encoder_type, get_language_config, rename_old_type, rename_sections
from paramcount.sizes import LARGEST, Origin, Sizes, get_key, inner_configs
from paramcount.sizes.fields import DEFAULTS
from paramcount.sizes.key_names import describe_defaults, find_main_key
from paramcount.sizes.reading import Reading, check_setting_values, get_language_section, keep_documents
from paramcount.sizes.sections import Sections
from paramcount.sizes.settings import check_settings, get_config_class, read_line
from paramcount.sizes.single_layers import PER_LAYER, make_per_layer_error

# {model type of a config.json: {word in the name of its class or modeling code: the model type that it is counted as}}
RELEASED_AS: dict[str, dict[str, str]] = read_index("released_as")
# {class of a draft head for speculative decoding: its name here}, and {key that only such a head has: the same}
DRAFTS: dict[str, str] = read_index("drafts")
DRAFT_KEYS: dict[str, str] = read_index("draft_keys")
LAYER_CONFIG = "transformer_layer_config"
# Name endings of classes whose head is for another task than language modelling.
TASK_ENDINGS = (
    "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice",
    "ForNextSentencePrediction", "ForQuestionAnsweringSimple", "ForAudioClassification", "ForImageClassification",
    "ForDecision",
)  # fmt: skip
GENERATIVE_ENDINGS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")  # classes that generate text
LM_ENDINGS = (*GENERATIVE_ENDINGS, "ForMaskedLM")  # classes that are a language model with its head


class Config(NamedTuple):
    """The model that a config.json describes."""

    id: str
    name: str
    architecture: str
    sizes: Sizes
    context_length: int | None
    reading: Reading


def get_model_type(document: Mapping[str, Any]) -> str:
    model_type = document.get("model_type")
    cls = get_class_name(document)
    if not isinstance(model_type, str):
        problem = "is missing" if model_type is None else f"= {describe_value(model_type)}"
        if model_type is None and cls:
            problem += f", and {make_printable(cls, 60)} (from architectures) is not supported"
        raise ParamcountError(problem, where="model_type", expected="a model type from `paramcount architectures`")
    if model_type not in ARCHITECTURES:
        if model_type in list_image_types():
            problem = f"= {model_type} is a model of images alone, which paramcount does not count"
            raise ParamcountError(problem, where="model_type", expected="a model that reads or writes text or speech")
        needs_code = bool(document.get("auto_map"))
        problem = "needs custom modeling code, which paramcount does not run" if needs_code else "is not supported"
        raise ParamcountError(
            f"= {make_printable(model_type, 60)} {problem}",
            where="model_type",
            expected="a model type from `paramcount architectures`",
            nearest=find_related(model_type, [name for name in ARCHITECTURES if not split_name(name)[1]]),
        )
    return model_type


@cache
def list_image_types() -> frozenset[str]:
    """The model types of the reference that read images or videos and nothing else, as image_types.json has them."""
    return frozenset(json.loads(Path(__file__).with_name("image_types.json").read_text(encoding="utf-8")))


def get_class_name(document: Mapping[str, Any]) -> str:
    """The class that `architectures` names first; empty if it names none."""
    classes = document.get("architectures")
    return classes[0] if isinstance(classes, (list, tuple)) and classes and isinstance(classes[0], str) else ""


def use_released_type(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json with the model type of its modeling code, where it states that of the code it was made from."""
    words: Mapping[str, str] = RELEASED_AS.get(str(document.get("model_type")), {})
    if not words:
        return document
    auto_map = document.get("auto_map")
    code = map(str, auto_map.values()) if isinstance(auto_map, Mapping) else ()
    named = [get_class_name(document), *code, *map(str, document)]
    own = next((own for word, own in words.items() if any(word in name for name in named)), None)
    return {**document, "model_type": own} if own else document


def add_layer_config(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config.json of a draft head with the keys of its layers, which vLLM's speculators keep in a block, outside of
    it too. The block lacks keys with the default of the config class that its model type has.
    """
    block = document.get(LAYER_CONFIG)
    if not isinstance(block, Mapping):
        return document
    return {**read_line(DEFAULTS, get_config_class(block.get("model_type"))), **block, **document}


def find_draft_key(document: Mapping[str, Any], cls: str) -> str | None:
    """The key that shows that a config.json of one layer is that of a draft head, if it names its target's class."""
    if document.get("num_hidden_layers") != 1 or (cls and not is_known_class(cls)):
        return None
    return next((key for key in DRAFT_KEYS if document.get(key) is not None), None)


def infer_model_type(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The config.json with its model type, and a note if the type had to be inferred from `architectures`.

    The config.json is returned unchanged if its model type is supported, or if no type can be inferred. That of a draft
    head has the model type of its target: its class says what it is.
    """
    given_type, cls = document.get("model_type"), get_class_name(document)
    if cls in DRAFTS:
        draft_type, variant = split_name(DRAFTS[cls])
        return {**add_layer_config(document), "model_type": draft_type, "architectures": [variant or cls]}, ()
    if (key := find_draft_key(document, cls)) is not None:
        reference = get_reference_class(architecture_of(DRAFT_KEYS[key]))
        note = f"a single layer with {key} is a draft head; counted as {reference}"
        return {**document, "model_type": DRAFT_KEYS[key], "architectures": [reference]}, (note,)
    if not cls or not (given_type is None or isinstance(given_type, str)):
        return document, ()
    if given_type in ARCHITECTURES:
        return document, ()
    types, types_by_stem = model_types(), stems()
    stem = max((stem for stem in types_by_stem if cls.startswith(stem)), key=len, default="")
    model_type = types.get(cls) or types_by_stem.get(stem)
    if model_type is None or (cls not in types and not is_supported(cls, model_type)):
        return document, ()
    problem = "is missing" if given_type is None else f"= {make_printable(given_type, 60)} is unknown"
    note = f"model_type {problem}; counted as {cls} (from architectures)"
    return {**document, "model_type": model_type}, (note,)


def find_architecture(model_type: str, cls: str) -> str:
    """The name in ARCHITECTURES for a class of a known model type; an empty `cls` is the type's own."""
    name = f"{model_type}.{cls}"
    if name in ARCHITECTURES:
        return name
    if not cls or cls in list_equivalent_classes(architecture_of(model_type)) or cls not in list_task_heads(model_type):
        return model_type
    return name


def list_task_heads(model_type: str) -> Collection[str]:
    """The classes of a model type that have the head of another task."""
    from paramcount.architectures.task_heads import list_all_heads  # few configs need them

    return list_all_heads(model_type)


@cache
def list_supported_classes(model_type: str) -> tuple[str, ...]:
    """The supported classes of a known model type, the default one first."""
    names = [split_name(name) for name in ARCHITECTURES if name.startswith(f"{model_type}.")]
    variants = [cls for known_type, cls in names if known_type == model_type]
    return (*list_equivalent_classes(architecture_of(model_type)), *variants, *list_task_heads(model_type))


def is_supported(cls: str, model_type: str) -> bool:
    """Whether paramcount can count a class as a model of this type."""
    return model_type in ARCHITECTURES and cls in list_supported_classes(model_type)


def check_class(model_type: str, cls: str, architecture: type[Sizes]) -> None:
    """Raise an error for a class that is neither counted nor replaced by the reference class of the model type.

    It is replaced, with a warning, if it is a class of another model type (that of the multimodal model around this
    language model, say) or an unknown language model. A variant of the type's own class, the head of another task and
    a class that does not call itself a language model (a draft head, say) have other parameters.
    """
    if not cls or cls in list_equivalent_classes(architecture):
        return
    stem = strip_class_ending(get_reference_class(architecture))
    has_other_head = cls.startswith(stem) or cls.endswith(TASK_ENDINGS)
    around = get_sections(model_types().get(cls))
    if around is not None and around.default_type == model_type:
        return
    if not has_other_head and (cls.endswith(LM_ENDINGS) or is_known_class(cls)):
        return
    supported = list_supported_classes(model_type)
    if cls.casefold() not in map(str.casefold, supported):
        nearest = dict.fromkeys([*find_nearest(cls, supported, 4), supported[0]])
        raise ParamcountError(
            f"= {make_printable(cls, 60)} is not supported for model_type {model_type}",
            where="architectures.0",
            expected=join_words(nearest),
        )


def is_known_class(cls: str) -> bool:
    """Whether a class, or the class with an LM head that it is the base of, is one of any model type."""
    return cls in model_types() or (cls.endswith("Model") and cls.removesuffix("Model") in stems())


def check_ignored_sizes(cls: str, reference: str, ignored: Ignored) -> None:
    """Raise an error for an unknown class with sizes that the reference class, which would be counted, does not use."""
    names = ignored.list_sizes()
    if names and cls and cls.casefold() != reference.casefold() and not is_known_class(cls):
        problem = f"= {make_printable(cls, 60)} is unknown, and {reference} does not use {format_names(names)}"
        raise ParamcountError(problem, where="architectures.0", expected=reference)


def check_has_known_sizes(
    architecture: type[Sizes],
    origin: Mapping[str, Origin],
    used: set[str],
    ignored: Ignored,
    document: Mapping[str, Any],
) -> None:
    """Raise an error if a config.json states its sizes under names that the reference does not have.

    It does if the hidden size and another size that every model has are missing, but several ignored keys look like
    sizes. A single one is a warning.
    """
    names = [suspect.key for suspect in ignored.keys if suspect.is_size]
    hidden = origin.get("d_model")
    if len(names) < 2 or hidden is None or hidden.keys:
        return
    spellings = get_key(architecture, "d_model").spellings("d_model")
    is_repeated = not set(spellings).isdisjoint(ignored.repeated)
    others = {*list_default_sizes(architecture, origin, used.union(ignored.repeated))} - {"d_model", "vocab_size"}
    if others and not is_repeated:
        raise ParamcountError(
            f"is missing, and {format_names(names)} look like sizes under other names",
            where=find_main_key(spellings, document),
            expected=f"the keys of {describe_defaults(document)}",
        )


def read_config(document: Mapping[str, Any], id: str = "config.json", name: str = "") -> Config:
    """The model that a parsed config.json describes, as the reference implementation would build it.

    No code of the model's author is run.

    Raises: ParamcountError if the reference rejects the config, or if paramcount cannot count it exactly.
    """
    document, notes = infer_model_type(use_released_type(document))
    document = rename_sections(document)
    model_type, cls = get_model_type(document), get_class_name(document)
    sections = get_sections(model_type)
    if sections and document.get(PER_LAYER) is not None:
        raise make_per_layer_error()
    if sections and not is_whole_supported(document, sections, model_type, cls):
        counted_cls, has_head = get_sections_class(model_type, cls)
        if cls not in list_equivalent_classes(architecture_of(sections.default_type)):
            check_class(model_type, cls, architecture_of(model_type))
        sizes, reading, architecture = read_language_model_only(document, sections, counted_cls, has_head)
        warnings = warn_unknown_part(document) + warn_other_class(document, counted_cls or reading.reference)
        warnings += warn_own_code(document, architecture_of(model_type), counted_cls or reading.reference)
        reading = reading._replace(warnings=(*reading.warnings, *warnings))
    else:
        sizes, reading, architecture = read_whole_model(document, model_type, cls)
    check_settings(rename_old_type(document), model_type)
    if notes:
        reading = reading._replace(notes=(*notes, *reading.notes))
    context_key, context_length = find_context(document)
    sizes = keep_documents(sizes, reading.document, "")
    check_setting_values(sizes, reading.document)
    if context_length is not None:
        context_length = max(context_length - sizes.count_unused_positions(), 0) or None
    if context_key in reading.unread:
        unread = {key: value for key, value in reading.unread.items() if key != context_key}
        reading = reading._replace(context_key=context_key, unread=unread)
    return Config(id, name or id, architecture, sizes, context_length, reading)


def find_context(document: Mapping[str, Any]) -> tuple[str, int | None]:
    """(key with its section, value) of the longest context that a config.json states; ("", None) if it states none."""
    key, language = "max_position_embeddings", document
    if not is_context(n := document.get(key)):
        language = get_language_section(document)
        n = language.get(key)
    if not is_context(n):
        return "", None
    if language is document:
        return key, n
    return next(f"{name}.{key}" for name, value in document.items() if value is language), n


def is_context(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= LARGEST


def is_whole_supported(document: Mapping[str, Any], sections: Sections, model_type: str, cls: str) -> bool:
    if sections.default_encoder and get_encoder_type(document)[0] not in (sections.encoders or SECTION_ENCODERS):
        return False
    return not is_language_class(model_type, cls)


def is_language_class(model_type: str, cls: str) -> bool:
    """Whether a class is that of the language model alone, whose config.json may be the same."""
    sections = get_sections(model_type)
    if sections is None or not sections.is_flat:
        return False
    whole, language = (get_reference_class(architecture_of(name)) for name in (model_type, sections.default_type))
    return cls == language != whole


def read_whole_model(document: Mapping[str, Any], model_type: str, cls: str) -> tuple[Sizes, Reading, str]:
    """The sizes of a model with all its parts, how they were read, and the name of its architecture."""
    name = find_architecture(model_type, cls)
    architecture = architecture_of(name)
    check_class(model_type, cls, architecture)
    sizes, (_, origin, used, readers) = read_sizes(architecture, document)
    unread = list_unread_keys(document, used, readers)
    default_cls = get_reference_class(architecture)
    has_head = not cls or has_lm_head(architecture, cls)
    reference = cls if cls in architecture.equivalent_classes or not has_head else default_cls
    ignored = find_ignored(document, unread, used, readers)
    check_ignored_sizes(cls, reference, ignored)
    warnings = warn_ignored(ignored, document, readers, default_cls)
    if not architecture.section:
        check_has_known_sizes(architecture, origin, used, ignored, document)
        warnings += warn_default_sizes(sizes, origin, used.union(ignored.repeated), document)
    check_second_text_config(model_type, unread)
    for field in inner_configs(architecture):
        part = getattr(sizes, field)
        if ("", type(part)) in readers:  # a part without a section has its sizes at the top level
            paths = {inner: f"{field}.{inner}" for inner in type(part).fields}
            part_origin = {inner: origin[path] for inner, path in paths.items() if path in origin}
            warnings += warn_default_sizes(part, part_origin, used, document)
    warnings += warn_missing_sections(document, readers)
    warnings += warn_fixed_fields(sizes, document, readers, reference, head=has_head)
    warnings += warn_other_class(document, reference)
    warnings += warn_own_code(document, architecture, reference)
    reading = Reading(
        reference,
        has_head,
        not_counted=() if has_head else ("lm_head",),
        warnings=warnings,
        origin=origin,
        document=document,
        used=used,
        unread=unread,
    )
    return sizes, reading, name


def warn_default_sizes(
    sizes: Sizes, origin: Mapping[str, Origin], used: set[str], document: Mapping[str, Any]
) -> tuple[str, ...]:
    """A warning if a config.json does not state sizes that every model has, unless no layer uses them."""
    missing = list_default_sizes(type(sizes), origin, used)
    if not missing:
        return ()
    unused = sizes.unused_fields()
    return warn_missing_sizes(type(sizes), [field for field in missing if field not in unused], document)


def check_second_text_config(model_type: str, unread: Mapping[str, Any]) -> None:
    """Raise an error for a section that the reference would take for the language model of a text-only model."""
    sections = [key for key in ("text_config", "decoder", "generator") if unread.get(key) is not None]
    if not sections or model_type not in ARCHITECTURES:
        return
    reference = get_reference_class(architecture_of(model_type))
    if reference.endswith(GENERATIVE_ENDINGS):
        problem = f"is set, but {reference} has no such section and cannot run with it"
        raise ParamcountError(problem, where=sections[0], expected="sizes at the top level")


def warn_other_class(document: Mapping[str, Any], reference: str) -> tuple[str, ...]:
    """A warning if `architectures` names no class, or another one than `reference`, which is counted."""
    classes, cls = document.get("architectures"), get_class_name(document)
    if not cls and not classes:
        return ()
    if not cls:
        problem = f"expected a list of class names, found {describe_value(classes)}"
        return (f"ignored architectures ({problem}); counted as {reference}",)
    # Without case: the publisher's PhiMoEForCausalLM is the reference's PhimoeForCausalLM.
    if cls.casefold() == reference.casefold():
        return ()
    model_type = make_printable(document["model_type"], 60)
    other_type = model_types().get(cls)
    description = f"a class of model_type {other_type}" if other_type else "which is unknown"
    problem = f"architectures names {make_printable(cls, 60)}, {description}, but model_type is {model_type}"
    return (f"{problem}; counted as {reference}",)


def warn_unknown_part(document: Mapping[str, Any]) -> tuple[str, ...]:
    """A warning for each part that a config.json names instead of stating its sizes, if the name is not known."""
    named: Mapping[str, tuple[str, Mapping[str, Any]]] = get_own(document["model_type"], "named_sections") or {}
    return tuple(
        f"{key} = {make_printable(document[key], 60)} is not known; its parameters are not counted"
        for key, (_, known) in named.items()
        if document[key] not in known
    )


def warn_own_code(document: Mapping[str, Any], architecture: type[Sizes], reference: str) -> tuple[str, ...]:
    """A warning if a config.json names modeling code of its own, though that of transformers is counted.

    There is none if the architecture is declared from a publisher's code, or if it names this code as a copy of what
    transformers has.
    """
    auto_map = document.get("auto_map")
    if not isinstance(auto_map, Mapping) or " of " in architecture.reference:
        return ()
    models = [value for key, value in auto_map.items() if str(key).startswith("AutoModel") and isinstance(value, str)]
    modules = {value.rpartition("--")[2].partition(".")[0] for value in models}  # of repository--module.Class
    if not models or not modules.isdisjoint(architecture.copied_modules):
        return ()
    problem = f"config.json names its own modeling code (auto_map: {make_printable(models[0], 80)})"
    return (f"{problem}; paramcount counts {reference} of transformers, which may differ",)


def get_sections_class(model_type: str, cls: str) -> tuple[str, bool]:
    """The class of a multimodal model that is counted, and whether it has an LM head.

    That is `cls` if the model type has such a class, else the class with all parts; empty if `cls` is empty.

    Raises: ParamcountError if `cls` has the head of another task.
    """
    if cls.endswith(TASK_ENDINGS):
        raise ParamcountError(
            f"= {make_printable(cls, 60)} has a head that is not supported for this model type",
            where="architectures.0",
            expected="a class with an LM head or without a head",
        )
    architecture = architecture_of(model_type)
    whole, base = get_reference_class(architecture), get_base_class(architecture)
    is_base = cls.casefold() == base.casefold()
    if is_base or cls.casefold() == whole.casefold() or is_language_class(model_type, cls):
        return cls, not is_base
    return (whole if cls else ""), True


def read_language_model_only(
    document: Mapping[str, Any], sections: Sections, cls: str, has_head: bool
) -> tuple[Sizes, Reading, str]:
    """The language model of a multimodal config whose other parts are not supported; `not_counted` names them."""
    sizes, name, (_, origin, used, readers) = read_language_model(document)
    reference = get_reference_class(type(sizes))
    language_keys = {key: value for key, value in document.items() if key not in sections.other_sections}
    unread = list_unread_keys(language_keys, used, readers)
    suspects: Mapping[str, Any] = unread
    if sections.section in document:  # then keys at the top level describe other parts
        suspects = {key: value for key, value in unread.items() if "." in key}
    ignored = find_ignored(document, suspects, used, readers)
    check_ignored_sizes(get_class_name(document), cls or reference, ignored)
    warnings = warn_ignored(ignored, document, readers, reference)
    if ("", type(sizes)) in readers:
        warnings += warn_default_sizes(sizes, origin, used, get_language_config(document))
    warnings += warn_missing_sections(document, readers)
    warnings += warn_fixed_fields(sizes, document, readers, sizes.reference, head=has_head)
    reading = Reading(
        cls or f"{document['model_type']}, its language model as {sizes.reference}",
        has_head,
        "language_model",
        not_counted=(*sections.other_sections, "projector", *([] if has_head else ["lm_head"])),
        warnings=warnings,
        origin=origin,
        document=document,
        used=used,
        unread=unread,
    )
    return sizes, reading, name
