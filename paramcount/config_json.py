"""A Hugging Face config.json: which architecture reads it, and which key, default or derivation each size came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.errors import ParamcountError, near, printable, shown
from paramcount.rules import validated
from paramcount.sizes import ABSENT, LARGEST, NULL, REQUIRED, Condition, Derivation, Sizes, key_of
from paramcount.zoo import Model, Reading

# Classes with the reference's body and another head, by the ending of their names; "Model" has none.
OTHER_HEADS = (
    "Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining",
    "ForQuestionAnsweringSimple", "ForAudioClassification", "ForImageClassification", "TextModel", "Encoder",
)  # fmt: skip
REFERENCE_ENDINGS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "WithLMHeadModel", "ForMaskedLM", "Decoder", "MTModel")


# The words of PreTrainedConfig.layer_types, and the older ones that it renames.
LAYER_TYPES = (
    "full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention", "compressed_sparse_attention",
    "heavily_compressed_attention", "minimax_m3_sparse", "conv", "moe", "hybrid", "hybrid_sliding", "reference_sliding_attention", "linear_attention",
    "mamba", "attention", "deepseek_sparse_attention", "qwen_sparse_attention",
)  # fmt: skip


class Values(NamedTuple):
    """What an architecture reads out of a config.json. Keys are paths from its root: "text_config.hidden_size"."""

    values: dict[str, Any]  # {field: value}
    origin: dict[str, str]  # as in zoo.Reading
    used: set[str]  # keys that a field was read or derived from
    sections: set[str]


@cache
def like_a_size(key: str) -> bool:
    return bool(SIZE_LIKE.search(key)) and not HARMLESS.search(key)


SIZE_LIKE = re.compile(
    r"(^|_)(n|num|dim|dims|size|rank|ranks|width|layers?|heads?|experts?|hidden|inner|inter|ffn|kernel|channels?|state|groups?|embd?|vocab|lora)(_|$)|^d_"
)
HARMLESS = re.compile(
    r"window|token|position|^num_labels$|^num_return|beam|^max_|chunk|dropout|_range$|initializer|^n_ctx$|_act$|activation|batch|group_size|topk|top_k"
)


class Watched(dict[str, Any]):
    """A config.json that remembers which of its keys a derivation looked at."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.seen: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.seen.append(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.seen.append(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.seen.append(str(key))
        return super().__contains__(key)


class Field(NamedTuple):
    """How one field is read: `key_of`, with what the walk over a config needs at once."""

    name: str
    spellings: tuple[str, ...]
    absent: Any
    null: Any
    at_most: str | None
    least: int | None  # of a whole number
    inner: type[Sizes] | None


@cache
def fields(architecture: type[Sizes]) -> tuple[Field, ...]:
    found = []
    for name, info in architecture.model_fields.items():
        types = (info.annotation, *getattr(info.annotation, "__args__", ()))
        inner = next((t for t in types if isinstance(t, type) and issubclass(t, Sizes)), None)
        if inner:
            found.append(Field(name, (), None, None, None, None, inner))
            continue
        key = key_of(architecture, name)
        limits = [m.ge for m in info.metadata if hasattr(m, "ge")] if info.annotation is int else []
        found.append(Field(name, key.spellings(name), key.absent, key.null, key.at_most, limits[0] if limits else None, None))
    return tuple(found)


def section_of(document: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """The part of a config.json that an architecture reads: all of it, or a block that may be missing."""
    if name is None:
        return document
    section = found(document, name)
    if section is ABSENT or section is None:
        return {}
    if not isinstance(section, Mapping):
        raise ParamcountError(f"= {shown(section)}", where=name, accepted="a mapping")
    return section


def found(config: Mapping[str, Any], name: str) -> Any:
    """The value under a name, which may lead through nested mappings; ABSENT where there is none."""
    if name in config:
        return config[name]
    first, dot, rest = name.partition(".")
    inner = config.get(first) if dot else None
    return found(inner, rest) if isinstance(inner, Mapping) else ABSENT


def layer_types_fit(config: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """The reference asks one known word for each layer wherever the key stands, also where no weight depends on it."""
    words, n = config.get("layer_types"), values.get("n_layers")
    if words is not None and n is not None:
        if not isinstance(words, (list, tuple)) or len(words) != n:
            raise ParamcountError(
                f"names {len(words) if isinstance(words, (list, tuple)) else 'no'} layers of {n}", where="layer_types", accepted="one word a layer"
            )
        for i, word in enumerate(words):
            if not isinstance(word, str) or word not in LAYER_TYPES:
                raise ParamcountError(f"= {shown(word)}", where=f"layer_types.{i}", accepted=", ".join(LAYER_TYPES), nearest=near(word, LAYER_TYPES))


def read(architecture: type[Sizes], document: Mapping[str, Any]) -> Values:
    """config.json to field values as the reference would take them.

    Raises: ParamcountError for a required key that is missing, a value of the wrong type, and what cannot be worked out.
    """
    config = section_of(document, architecture.section)
    start = f"{architecture.section}." if architecture.section else ""
    done = Values({}, {}, set(), {architecture.section} if architecture.section else set())
    values, origin, used, sections = done
    watched = Watched(config)
    for field, spellings, absent, null, at_most, least, inner in fields(architecture):
        if inner is not None:
            within = read(inner, document)
            values[field] = within.values
            origin.update((f"{field}.{name}", key) for name, key in within.origin.items())
            used |= within.used
            sections |= within.sections
            continue
        for name in spellings:
            value = found(document, name[1:]) if name[0] == "/" else found(config, name)
            if value is ABSENT:
                continue
            key = name[1:] if name[0] == "/" else start + name
            used.add(key)
            if value is None and null is not NULL:
                absent = absent if null is ABSENT else null
                continue
            if least is not None and (type(value) is not int or not least <= value <= LARGEST):
                limit = f"a whole number from {least}" if type(value) is not int or value < least else f"a whole number up to {LARGEST:,}"
                raise ParamcountError(f"= {shown(value)}", where=key, accepted=limit)
            if at_most is not None and value > values[at_most]:
                value = values[at_most]
            values[field], origin[field] = tuple(value) if type(value) is list else value, key
            break
        else:
            if absent is REQUIRED:
                raise ParamcountError("is missing", where=start + spellings[0], accepted=" or ".join(spellings))
            if not callable(absent):
                values[field], origin[field] = absent if at_most is None else min(absent, values[at_most]), "default"
                continue
            watched.seen = []
            values[field] = worked_out(absent, watched, values, field)
            looked_at = [start + key for key in dict.fromkeys(watched.seen) if key in config]
            origin[field] = f"derived from {', '.join(looked_at)}" if looked_at else "derived"
            used.update(looked_at)
    watched.seen = []
    for condition in architecture.conditions if architecture.own_layer_types else (layer_types_fit, *architecture.conditions):
        worked_out(condition, watched, values, "config.json")
    used.update(start + key for key in watched.seen)
    return done


def left_unread(document: Mapping[str, Any], used: set[str], sections: set[str]) -> dict[str, Any]:
    """{key: value} of what no field was read or derived from, inside the sections that were read too."""
    unread: dict[str, Any] = {}
    roots = {key.partition(".")[0] for key in used}
    for key, value in document.items():
        if key in sections and isinstance(value, Mapping):
            unread.update((f"{key}.{name}", inner) for name, inner in value.items() if f"{key}.{name}" not in used)
        elif key not in roots:
            unread[key] = value
    return unread


def worked_out(derivation: Derivation | Condition, config: Watched, values: Mapping[str, Any], field: str) -> Any:
    """What the reference would work out, with one line where a value of the wrong kind stops it."""
    try:
        return derivation(config, values)
    except ParamcountError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        looked_at = ", ".join(dict.fromkeys(config.seen)) or "the other sizes"
        raise ParamcountError(f"cannot be worked out from {looked_at}", where=field, accepted="a config that the reference can build") from None


def declared(document: Mapping[str, Any]) -> tuple[type[Sizes], str, str]:
    """The architecture that a config.json names, its name, and the class to count.

    Raises: ParamcountError where there is no model type or none that is known.
    """
    model_type = document.get("model_type")
    classes = document.get("architectures")
    cls = classes[0] if isinstance(classes, (list, tuple)) and classes and isinstance(classes[0], str) else ""
    if not isinstance(model_type, str):
        raise ParamcountError("is missing" if model_type is None else f"= {shown(model_type)}", where="model_type", accepted="see `paramcount architectures`")
    if model_type not in ARCHITECTURES:
        remote = ", whose code is its author's and is not run," if document.get("auto_map") else ""
        raise ParamcountError(
            f"= {printable(model_type, 60)}{remote} is not supported",
            where="model_type",
            accepted="what `paramcount architectures` lists",
            nearest=near(model_type, ARCHITECTURES),
        )
    name = f"{model_type}.{cls}" if f"{model_type}.{cls}" in ARCHITECTURES else model_type
    return architecture(name), name, cls


def stem(sizes: type[Sizes]) -> str:
    """The beginning of the reference's class names: Qwen2 of Qwen2ForCausalLM."""
    name = sizes.reference.partition(" ")[0]
    return next((name.removesuffix(ending) for ending in REFERENCE_ENDINGS if name.endswith(ending)), name)


def from_config(document: Mapping[str, Any], id: str = "config.json", name: str = "") -> Model:
    """The model that a parsed config.json describes, as the reference implementation would build it. Nothing of it is run.

    Raises: ParamcountError where the reference refuses it, or where it is not known how to count it exactly.
    """
    if document.get("per_layer_config"):
        raise ParamcountError("overrides sizes layer by layer, which is not supported", where="per_layer_config")
    architecture, registered, cls = declared(document)
    values, origin, used, sections = read(architecture, document)
    unread = left_unread(document, used, sections)
    try:
        config = validated(architecture, values)
    except ParamcountError as error:
        raise in_keys(error, origin) from None
    own = architecture.reference.partition(" ")[0]
    if cls in architecture.larger:
        raise ParamcountError(f"= {cls} is not supported", where="architectures", accepted=own)
    more = cls if cls in architecture.with_more else ""
    other = cls if cls not in (own, more, *architecture.same) and cls in [stem(architecture) + ending for ending in OTHER_HEADS] else ""
    left_out = (f"other head of {more}",) if more else () if not other else ("lm_head",) if other.endswith(("Model", "Encoder")) else (f"head of {other}",)
    reach = document.get("max_position_embeddings")
    context = reach if type(reach) is int and 0 < reach <= LARGEST else None
    model = Model(id=id, name=name or id, architecture=registered, config=config, context_length=context)
    model._reading = Reading(other or more or own, not other, "model", left_out, remarks(unread), origin, unread)
    return model


def in_keys(error: ParamcountError, origin: Mapping[str, str]) -> ParamcountError:
    """The same error with the keys of config.json in the place of the fields that were read from them."""
    keys = {field: key for field, key in origin.items() if key != "default" and not key.startswith("derived")}

    def renamed(text: str) -> str:
        return re.sub(r"[\w.]+", lambda word: keys.get(word[0], word[0]), text)

    return ParamcountError(renamed(error.found), where=renamed(error.where), accepted=error.accepted, nearest=error.nearest)


def remarks(unread: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader of the count should know: numbers that are named like sizes and were not read."""
    odd = [key for key, value in unread.items() if type(value) is int and value > 1 and like_a_size(key.rpartition(".")[2])]
    return (f"not read, though named like sizes: {', '.join(printable(key, 60) for key in odd)}",) if odd else ()
