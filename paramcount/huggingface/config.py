"""The architecture that a Hugging Face config.json describes, and the origin of each of its sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from paramcount.architectures import ARCHITECTURES
from paramcount.architectures import architecture as architecture_of
from paramcount.errors import ParamcountError, describe_value, find_nearest, join_words, make_printable
from paramcount.huggingface.fields import list_default_sizes, list_unread_keys, read_language_model, read_values
from paramcount.huggingface.key_warnings import (
    Readers,
    find_ignored_blocks,
    find_ignored_keys,
    warn_ignored_blocks,
    warn_ignored_keys,
    warn_missing_sections,
    warn_missing_sizes,
)
from paramcount.huggingface.multimodal import (
    COMPOSITES,
    ENCODERS,
    PUBLISHED_CLASSES,
    WHOLE_CLASSES,
    Composite,
    get_encoder_type,
)
from paramcount.sizes import LARGEST, Origin, Sizes
from paramcount.sizes.reading import Reading
from paramcount.sizes.rules import validate_sizes
from paramcount.sizes.settings import check_settings
from paramcount.sizes.single_layers import PER_LAYER, not_declared

# How the names of classes with the head of another task end.
TASK_ENDINGS = (
    "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction",
    "ForQuestionAnsweringSimple", "ForAudioClassification", "ForImageClassification", "ForDecision",
)  # fmt: skip
GENERATIVE_ENDINGS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")  # classes that generate text
REFERENCE_ENDINGS = (
    "ForCausalLM",
    "ForConditionalGeneration",
    "WithLMHeadModel",
    "LMHeadModel",
    "ForMaskedLM",
    "Decoder",
    "MTModel",
)


class Config(NamedTuple):
    """The model that a config.json describes."""

    id: str
    name: str
    architecture: str
    sizes: Sizes
    context_length: int | None
    reading: Reading


def get_model_type(document: Mapping[str, Any]) -> str:
    """The model type of a config.json.

    Raises: ParamcountError if it is missing or unknown.
    """
    model_type = document.get("model_type")
    cls = get_class_name(document)
    unsupported = f", and {make_printable(cls, 60)}, which `architectures` names, is not supported" if cls else ""
    if not isinstance(model_type, str):
        found = f"is missing{unsupported}" if model_type is None else f"= {describe_value(model_type)}"
        raise ParamcountError(found, where="model_type", expected="a model type from `paramcount architectures`")
    if model_type not in ARCHITECTURES and model_type not in COMPOSITES:
        custom = "needs custom modeling code, which paramcount does not run"
        raise ParamcountError(
            f"= {make_printable(model_type, 60)} {custom if document.get('auto_map') else 'is not supported'}",
            where="model_type",
            expected="a model type from `paramcount architectures`",
            nearest=find_nearest(model_type, (*ARCHITECTURES, *COMPOSITES)),
        )
    return model_type


def get_class_name(document: Mapping[str, Any]) -> str:
    """The class that `architectures` names first; empty if it names none."""
    classes = document.get("architectures")
    return classes[0] if isinstance(classes, (list, tuple)) and classes and isinstance(classes[0], str) else ""


def infer_model_type(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """A config.json whose model type is known, and a note if only the class that `architectures` names first gives it.

    Raises: ParamcountError if neither is supported.
    """
    given, cls = document.get("model_type"), get_class_name(document)
    if not cls or not (given is None or isinstance(given, str)) or given in ARCHITECTURES or given in COMPOSITES:
        return document, ()
    from paramcount.architectures.classes import model_types

    types = model_types()
    bodies = {strip_class_ending(name): model_type for name, model_type in types.items()}
    body = max((name for name in bodies if cls.startswith(name)), key=len, default="")
    model_type = types.get(cls) or bodies.get(body)
    if model_type is None or (cls not in types and not is_supported(cls, model_type)):
        return document, ()
    state = "is missing" if given is None else f"= {make_printable(given, 60)} is unknown"
    return {**document, "model_type": model_type}, (
        f"model_type {state}; counted as {cls}, which `architectures` names",
    )


def find_architecture(document: Mapping[str, Any]) -> tuple[type[Sizes], str, str]:
    """The architecture of a config.json, its name in ARCHITECTURES, and the class that `architectures` names first.

    Raises: ParamcountError if the architecture is unknown.
    """
    model_type, cls = get_model_type(document), get_class_name(document)
    name = f"{model_type}.{cls}"
    if name not in ARCHITECTURES:
        usual = architecture_of(model_type)
        if not cls or cls in list_equivalent_classes(usual) or cls not in list_task_heads(model_type):
            return usual, model_type, cls
    return architecture_of(name), name, cls


def strip_class_ending(name: str) -> str:
    """A class name without its ending: Qwen2 for Qwen2ForCausalLM."""
    return next((name.removesuffix(ending) for ending in REFERENCE_ENDINGS if name.endswith(ending)), name)


def reference_class(sizes: type[Sizes]) -> str:
    """The class whose parameters an architecture declares."""
    return sizes.reference.partition(" ")[0]


def base_model_class(sizes: type[Sizes]) -> str:
    """The reference class without a head; empty if there is none."""
    return f"{strip_class_ending(reference_class(sizes))}Model" if sizes.base_model is None else sizes.base_model


def list_equivalent_classes(sizes: type[Sizes]) -> list[str]:
    """The classes whose parameters an architecture declares, with the LM head and without."""
    return [name for name in (reference_class(sizes), *sizes.equivalent_classes, base_model_class(sizes)) if name]


def list_task_heads(model_type: str) -> Collection[str]:
    """The classes of a model type that have the head of another task."""
    from paramcount.architectures.task_heads import (
        task_heads as declared_heads,
    )  # imported here because few configs need them

    return declared_heads(model_type)


@cache
def list_supported_classes(model_type: str) -> tuple[str, ...]:
    """The supported classes of a known model type, the default one first."""
    variants = [name.partition(".")[2] for name in ARCHITECTURES if name.startswith(f"{model_type}.")]
    return (*list_equivalent_classes(architecture_of(model_type)), *variants, *list_task_heads(model_type))


def is_supported(cls: str, model_type: str) -> bool:
    return model_type in ARCHITECTURES and cls in list_supported_classes(model_type)


def check_class(model_type: str, cls: str, architecture: type[Sizes]) -> None:
    """Raise an error for a class of this model type, or of another task, that is not supported."""
    if cls in list_equivalent_classes(architecture):
        return
    beginning = strip_class_ending(reference_class(architecture))
    if (cls.startswith(beginning) or cls.endswith(TASK_ENDINGS)) and cls not in (
        supported := list_supported_classes(model_type)
    ):
        expected = join_words(dict.fromkeys([*find_nearest(cls, supported, 4), supported[0]]))
        raise ParamcountError(
            f"= {make_printable(cls, 60)} is not supported for model_type {model_type}",
            where="architectures.0",
            expected=expected,
        )


def read_config(document: Mapping[str, Any], id: str = "config.json", name: str = "") -> Config:
    """The model that a parsed config.json describes, as the reference implementation would build it. No code of the model is run.

    Raises: ParamcountError if the reference rejects the config, or if paramcount cannot count it exactly.
    """
    document, notes = infer_model_type(document)
    model_type, cls = get_model_type(document), get_class_name(document)
    composite = COMPOSITES.get(model_type)
    if composite and document.get(PER_LAYER) is not None:
        raise not_declared()
    if composite and (
        has_unsupported_encoder(document, composite)
        or (model_type not in ARCHITECTURES and f"{model_type}.{cls}" not in ARCHITECTURES)
    ):
        counted, head = get_composite_class(model_type, cls)
        config, reading, registered = read_language_model_only(document, composite, counted, head)
        reading = reading._replace(
            warnings=(*reading.warnings, *class_warnings(document, counted or reading.reference))
        )
    else:
        config, reading, registered = read_whole_model(document)
    check_settings(document, model_type)
    if notes:
        reading = reading._replace(notes=(*notes, *reading.notes))
    reach = document.get("max_position_embeddings")
    context = reach if type(reach) is int and 0 < reach <= LARGEST else None
    return Config(id, name or id, registered, config, context, reading)


def has_unsupported_encoder(document: Mapping[str, Any], composite: Composite) -> bool:
    """Whether a multimodal config names an unsupported vision encoder, so that only its language model is counted."""
    return bool(composite.default_encoder) and get_encoder_type(document)[0] not in ENCODERS


def read_whole_model(document: Mapping[str, Any]) -> tuple[Sizes, Reading, str]:
    """The sizes of the class that `architectures` names first, how they were read, and the name of the architecture."""
    architecture, registered, cls = find_architecture(document)
    check_class(str(document["model_type"]), cls, architecture)
    values, origin, used, readers = read_values(architecture, document)
    unread = list_unread_keys(document, used, readers)
    try:
        config = validate_sizes(architecture, values)
    except ParamcountError as error:
        raise rename_to_keys(error, origin) from None
    own = reference_class(architecture)
    reference = cls if cls in architecture.equivalent_classes else own
    left_out: tuple[str, ...] = ()
    head = cls in ("", own, *architecture.equivalent_classes) or cls != base_model_class(architecture)
    if not head:
        reference, left_out = cls, ("lm_head",)
    untraced = (
        ("use_sliding_window = true",)
        if document.get("use_sliding_window") is True and "window" not in architecture.model_fields
        else ()
    )
    warnings, repeated = unread_warnings(document, unread, used, readers, own)
    if not architecture.section and (missing := list_default_sizes(architecture, origin, used.union(repeated))):
        idle = config.unused_fields()
        warnings += warn_missing_sizes(architecture, [field for field in missing if field not in idle], own)
    check_second_text_config(str(document["model_type"]), unread)
    for part, sizes in config:
        if (
            isinstance(sizes, Sizes) and ("", type(sizes)) in readers.pairs
        ):  # without a section its sizes stand at the top level
            within = {name: origin[f"{part}.{name}"] for name in type(sizes).model_fields if f"{part}.{name}" in origin}
            warnings += warn_missing_language_sizes(sizes, within, used, own)
    warnings += warn_missing_sections(document, readers, own)
    warnings += class_warnings(document, reference)
    reading = Reading(
        reference,
        head,
        not_counted=left_out,
        warnings=warnings,
        origin=origin,
        document=document,
        used=used,
        unread=unread,
        untraced=untraced,
    )
    return config, reading, registered


def warn_missing_language_sizes(
    sizes: Sizes, origin: Mapping[str, Origin], used: set[str], reference: str
) -> tuple[str, ...]:
    """A warning if a composite without a section for its language model does not give that model's sizes either."""
    missing = list_default_sizes(type(sizes), origin, used)
    return warn_missing_sizes(
        type(sizes), [field for field in missing if field not in sizes.unused_fields()], reference
    )


def check_second_text_config(model_type: str, unread: Mapping[str, Any]) -> None:
    """Raise an error for a section that the reference would take for the language model of a text-only model."""
    reference = reference_class(architecture_of(model_type)) if model_type in ARCHITECTURES else ""
    if reference.endswith(GENERATIVE_ENDINGS):
        for key in ("text_config", "decoder", "generator"):
            if unread.get(key) is not None:
                raise ParamcountError(
                    f"is set, but {reference} has no such section and cannot run with it",
                    where=key,
                    expected="sizes at the top level",
                )


def class_warnings(document: Mapping[str, Any], reference: str) -> tuple[str, ...]:
    """A warning if `architectures` names no class, or none of the model type. `reference`: the class that is counted."""
    given, cls = document.get("architectures"), get_class_name(document)
    if not cls:
        return (
            (
                f"ignored architectures (expected a list of class names, found {describe_value(given)}); counted as {reference}",
            )
            if given
            else ()
        )
    if (
        cls.casefold() == reference.casefold()
    ):  # PhiMoEForCausalLM of the publisher's code, PhimoeForCausalLM of the reference
        return ()
    from paramcount.architectures.classes import model_types

    model_type = make_printable(document["model_type"], 60)
    other = model_types().get(cls)
    whose = f"a class of model_type {other}" if other else "which is unknown"
    return (
        f"architectures names {make_printable(cls, 60)}, {whose}, but model_type is {model_type}; counted as {reference}",
    )


def unread_warnings(
    document: Mapping[str, Any], unread: Mapping[str, Any], used: set[str], readers: Readers, reference: str
) -> tuple[tuple[str, ...], list[str]]:
    """Warnings about ignored keys, and the known keys whose value an ignored one repeats."""
    mistakes, repeated = find_ignored_keys(document, unread, used, readers)
    blocks = find_ignored_blocks(unread, readers)
    if not mistakes and not blocks:
        return (), repeated
    return (
        *warn_ignored_keys(mistakes, document, reference),
        *warn_ignored_blocks(blocks, readers, reference),
    ), repeated


def get_composite_class(model_type: str, cls: str) -> tuple[str, bool]:
    """The class of a composite that is counted, and whether it has an LM head. If `cls` is none of them, it is the one with all parts.

    Raises: ParamcountError if `cls` has the head of another task.
    """
    if cls.endswith(TASK_ENDINGS):
        expected = "a class with an LM head or without a head"
        raise ParamcountError(
            f"= {make_printable(cls, 60)} has a head that is not supported for this model type",
            where="architectures.0",
            expected=expected,
        )
    if model_type in WHOLE_CLASSES:
        whole, base = WHOLE_CLASSES[model_type]
    else:
        architecture = architecture_of(model_type)
        whole, base = reference_class(architecture), base_model_class(architecture)
    if cls.casefold() in (whole.casefold(), base.casefold()) or cls in PUBLISHED_CLASSES.get(model_type, ("",)):
        return cls, cls.casefold() != base.casefold()
    return (whole if cls else ""), True


def read_language_model_only(
    document: Mapping[str, Any], composite: Composite, cls: str, head: bool
) -> tuple[Sizes, Reading, str]:
    """The language model of a multimodal config whose other parts are not supported; `not_counted` names them."""
    if composite.wraps_composite:
        return read_nested_language_model(document, composite, cls, head)
    config, registered, (_, origin, used, readers) = read_language_model(document)
    unread = list_unread_keys(
        {key: value for key, value in document.items() if key not in composite.other_sections}, used, readers
    )
    left_out = (*composite.other_sections, "projector", *([] if head else ["lm_head"]))
    reference = cls or f"{document['model_type']}, its language model as {config.reference}"
    inside = (
        {key: value for key, value in unread.items() if "." in key} if composite.section in document else unread
    )  # the other keys describe other parts
    warnings, _ = unread_warnings(document, inside, used, readers, config.reference.partition(" ")[0])
    if ("", type(config)) in readers.pairs:
        warnings += warn_missing_language_sizes(config, origin, used, reference_class(type(config)))
    warnings += warn_missing_sections(document, readers, reference_class(type(config)))
    reading = Reading(
        reference,
        head,
        "language_model",
        left_out,
        warnings=warnings,
        origin=origin,
        document=document,
        used=used,
        unread=unread,
    )
    return config, reading, registered


def read_nested_language_model(
    document: Mapping[str, Any], composite: Composite, cls: str, head: bool
) -> tuple[Sizes, Reading, str]:
    """The language model of a composite within a composite, such as Qwen3-Omni's thinker."""
    where, section = composite.section, document.get(composite.section) or {}
    if not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=where, expected="a mapping")
    try:
        thinker = {**section, "model_type": composite.default_type}
        config, reading, registered = read_language_model_only(thinker, COMPOSITES[composite.default_type], cls, head)
    except ParamcountError as error:
        raise error.add_block(where) from None
    unread = {f"{where}.{key}": value for key, value in reading.unread.items()}
    unread |= {key: value for key, value in document.items() if key not in (where, *composite.other_sections)}
    reading = reading._replace(
        not_counted=(*reading.not_counted, *composite.other_sections),
        origin={field: origin.add_block(where) for field, origin in reading.origin.items()},
        document=document,
        used={f"{where}.{key}" for key in reading.used},
        unread=unread,
    )
    return config, reading, registered


def rename_to_keys(error: ParamcountError, origin: Mapping[str, Origin]) -> ParamcountError:
    """The same error with config.json keys instead of field names."""
    keys = {field: found.keys[0] for field, found in origin.items() if found.kind == "read"}

    block, dot, _ = error.where.rpartition(".")
    inside = (
        block + dot if any(field.startswith(block + dot) for field in origin) else ""
    )  # names of an inner config are relative to it

    def renamed(text: str) -> str:
        return re.sub(
            r"[\w.]+", lambda word: keys.get(word[0] if word[0].startswith(inside) else inside + word[0], word[0]), text
        )

    return error.replace(found=renamed(error.found), where=renamed(error.where))
