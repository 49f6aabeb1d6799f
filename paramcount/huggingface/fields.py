"""The sizes of an architecture from a config.json: each from a key, a default or a derivation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import cache
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from paramcount.architectures import architecture as architecture_of
from paramcount.errors import ParamcountError, describe_integer, describe_value, make_choice_error
from paramcount.huggingface.key_warnings import Readers
from paramcount.huggingface.multimodal import COMPOSITES, get_encoder_config, get_language_config
from paramcount.sizes import (
    ABSENT,
    DEFAULT,
    LARGEST,
    NULL,
    REQUIRED,
    Condition,
    Derivation,
    Origin,
    Sizes,
    Tower,
    get_key,
    inner_configs,
)
from paramcount.sizes.rules import validate_sizes
from paramcount.sizes.single_layers import PER_LAYER, by_kind, not_declared

# What PreTrainedConfig.layer_types renames.
OLD_LAYER_TYPES = {
    "mamba": "linear_attention", "attention": "full_attention", "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}  # fmt: skip

# The words of PreTrainedConfig.layer_types, including the old ones that it renames.
LAYER_TYPES = (
    "full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention", "compressed_sparse_attention",
    "heavily_compressed_attention", "minimax_m3_sparse", "conv", "moe", "hybrid", "hybrid_sliding", "reference_sliding_attention", "linear_attention",
    "mamba", "attention", "deepseek_sparse_attention", "qwen_sparse_attention",
)  # fmt: skip


TIE_KEY = "tie_word_embeddings"


class ConfigValues(NamedTuple):
    """The values that an architecture reads from a config.json. Keys are paths from its root: "text_config.hidden_size"."""

    values: dict[str, Any]  # {field: value}
    origin: dict[str, Origin]
    used: set[str]  # keys that fields were read or derived from
    readers: Readers  # the architectures and their sections

    def add_block(self, section: str) -> ConfigValues:
        """The same values with all keys in a section."""
        origin = {field: origin.add_block(section) for field, origin in self.origin.items()}
        pairs = tuple(
            (f"{section}.{inner}" if inner else section, architecture) for inner, architecture in self.readers.pairs
        )
        return ConfigValues(self.values, origin, {f"{section}.{key}" for key in self.used}, Readers(pairs))


@cache
def make_origin(key: str) -> Origin:
    """The origin of a field that was read from a key. Cached: architectures declare few different keys."""
    return Origin("read", (key,))


class RecordingConfig(dict[str, Any]):
    """A config.json that records which keys a derivation accesses."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.accessed: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.accessed.append(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.accessed.append(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.accessed.append(str(key))
        return super().__contains__(key)


class ConfigField(NamedTuple):
    """How one field is read: `get_key`, with what the walk over a config needs at once."""

    name: str
    spellings: tuple[str, ...]
    absent: Any
    null: Any
    at_most: str | None
    least: int | None  # minimum of an integer
    inner: type[Sizes] | None
    optional: bool = False  # may be None
    at_root: bool = False  # derived from keys outside the architecture's section


def get_limits(info: FieldInfo) -> Iterable[Any]:
    """The limits of an integer field, optional or not."""
    if info.annotation is int:
        return info.metadata
    kinds = getattr(info.annotation, "__args__", ())
    held = next((kind for kind in kinds if getattr(kind, "__origin__", None) is int and type(None) in kinds), None)
    return [limit for field in getattr(held, "__metadata__", ()) for limit in field.metadata]


@cache
def list_fields(architecture: type[Sizes]) -> tuple[ConfigField, ...]:
    found = []
    for name, info in architecture.model_fields.items():
        types = (info.annotation, *getattr(info.annotation, "__args__", ()))
        if inner := inner_configs(architecture).get(name):
            found.append(ConfigField(name, (), None, None, None, None, inner, type(None) in types))
            continue
        key = get_key(architecture, name)
        limits = [limit.ge for limit in get_limits(info) if hasattr(limit, "ge")]
        found.append(
            ConfigField(
                name,
                key.spellings(name),
                key.absent,
                key.null,
                key.at_most,
                limits[0] if limits else None,
                None,
                type(None) in types,
                key.at_root,
            )
        )
    return tuple(found)


def get_section(document: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """The part of a config.json that an architecture reads: the whole file, or a section, empty if missing."""
    if name is None:
        return document
    section = get_value(document, name)
    if section is ABSENT or section is None:
        return {}
    if not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=name, expected="a mapping")
    return section


def get_value(config: Mapping[str, Any], name: str) -> Any:
    """The value of a key or of a path through nested mappings; ABSENT if there is none."""
    if name in config:
        return config[name]
    first, dot, rest = name.partition(".")
    inner = config.get(first) if dot else None
    return get_value(inner, rest) if isinstance(inner, Mapping) else ABSENT


def check_layer_types(config: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Check layer_types: the reference requires one known word per layer even if no weight depends on it."""
    words, n = config.get("layer_types"), values.get("n_layers")
    if words is not None and n is not None:
        if not isinstance(words, (list, tuple)) or len(words) != n:
            raise ParamcountError(
                f"names {len(words) if isinstance(words, (list, tuple)) else 'no'} layers of {n}",
                where="layer_types",
                expected="one entry per layer",
            )
        for i, word in enumerate(words):
            if not isinstance(word, str) or word not in LAYER_TYPES:
                raise make_choice_error(word, LAYER_TYPES, where=f"layer_types.{i}")


def read_values(architecture: type[Sizes], document: Mapping[str, Any]) -> ConfigValues:
    """The values of an architecture's fields from a config.json, as the reference would read them.

    Raises: ParamcountError for a missing required key, a value of the wrong type, or a failing derivation.
    """
    config = drop_replaced_keys(architecture, get_section(document, architecture.section))
    start = f"{architecture.section}." if architecture.section else ""
    values: dict[str, Any] = {}
    origin: dict[str, Origin] = {}
    used: set[str] = set()
    pairs: tuple[tuple[str, type[Sizes]], ...] = ((architecture.section or "", architecture),)
    watched = RecordingConfig(config)
    whole = RecordingConfig(document)
    for field, spellings, absent, null, at_most, least, inner, optional, at_root in list_fields(architecture):
        if inner is not None:
            if optional and inner.section and get_value(document, inner.section) in (ABSENT, None):
                values[field], origin[field] = None, DEFAULT
                used.add(inner.section)
                continue
            if inner is Sizes:  # the language model of a composite, named in config.json
                values[field], _, within = read_language_model(document)
            elif inner is Tower:
                values[field], within = read_encoder(document)
            else:
                within = read_values(inner, document)
                values[field] = within.values
            origin.update((f"{field}.{name}", key) for name, key in within.origin.items())
            used |= within.used
            pairs += within.readers.pairs
            continue
        hidden = False  # a null that a derivation replaces hides what other names say, as a value does
        for name in spellings:
            value = get_value(document, name[1:]) if name[0] == "/" else get_value(config, name)
            if value is ABSENT or hidden:
                continue
            key = name[1:] if name[0] == "/" else start + name
            used.add(key)
            if value is None and null is not NULL:
                absent, hidden = (absent, False) if null is ABSENT else (null, callable(null))
                continue
            if (
                least is not None
                and not (optional and value is None)
                and (type(value) is not int or not least <= value <= LARGEST)
            ):
                limit = (
                    describe_integer(least)
                    if type(value) is not int or value < least
                    else f"an integer of at most {LARGEST:,}"
                )
                raise ParamcountError(f"= {describe_value(value)}", where=key, expected=limit)
            if at_most is not None and value > values[at_most]:
                value = values[at_most]
            if name == "layer_types" and type(value) is list:
                value = [OLD_LAYER_TYPES.get(word, word) if isinstance(word, str) else word for word in value]
            values[field], origin[field] = tuple(value) if type(value) is list else value, make_origin(key)
            break
        else:
            if absent is REQUIRED:
                raise ParamcountError("is missing", where=start + spellings[0], choices=spellings)
            if not callable(absent):
                values[field], origin[field] = absent if at_most is None else min(absent, values[at_most]), DEFAULT
                continue
            source, above = (whole, "") if at_root else (watched, start)
            source.accessed = []
            values[field] = derive_value(absent, source, values, field)
            looked_at = tuple(above + key for key in dict.fromkeys(source.accessed) if dict.__contains__(source, key))
            origin[field] = Origin("derived", looked_at)
            used.update([above + key for key in source.accessed] if above else source.accessed)
    for field, (value, where) in read_single_layers(architecture, document, config, values).items():
        values[field], origin[field] = (
            value,
            Origin("read", (start + where,)) if where else Origin("derived", (start + PER_LAYER,)),
        )
        used.add(start + PER_LAYER)
    watched.accessed = []
    for condition in (
        architecture.conditions if architecture.own_layer_types else (check_layer_types, *architecture.conditions)
    ):
        derive_value(condition, watched, values, "config.json")
    used.update([start + key for key in watched.accessed] if start else watched.accessed)
    return ConfigValues(values, origin, used, Readers(pairs))


def list_common_keys(architecture: type[Sizes]) -> dict[str, str]:
    """{key: field} of the keys that per_layer_config may set for single layers."""
    keys = {key for sizes in architecture.layered.values() for key in sizes}
    return {name: field.name for field in list_fields(architecture) for name in field.spellings if name in keys}


def drop_replaced_keys(architecture: type[Sizes], config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config without the keys that per_layer_config replaces."""
    if PER_LAYER not in config or not architecture.layered:
        return config
    replaced = {field for sizes in architecture.layered.values() for field in sizes.values()} - set(
        list_common_keys(architecture).values()
    )
    dropped = {name for field in list_fields(architecture) if field.name in replaced for name in field.spellings}
    return {key: value for key, value in config.items() if key not in dropped}


def read_single_layers(
    architecture: type[Sizes], document: Mapping[str, Any], config: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, tuple[Any, str]]:
    """{field: (value, key)} from per_layer_config; only a section with layers may have it."""
    outside = (
        document
        if architecture.section
        else config
        if inner_configs(architecture) and "n_layers" not in architecture.model_fields
        else {}
    )
    if outside.get(PER_LAYER) is not None:
        raise not_declared()
    if PER_LAYER not in config:
        return {}
    layered, common = architecture.layered, list_common_keys(architecture)
    try:
        found: dict[str, tuple[Any, str]] = derive_value(
            lambda js, c: by_kind(js, c, layered, common), RecordingConfig(config), values, PER_LAYER
        )
    except ParamcountError as error:
        raise error.add_block(architecture.section) if architecture.section else error from None
    return found


def read_language_model(document: Mapping[str, Any]) -> tuple[Sizes, str, ConfigValues]:
    """The sizes of the language model in a multimodal config, its architecture, and how the sizes were read."""
    language = get_language_config(document)
    composite = COMPOSITES[document["model_type"]]
    inside = composite.section if document.get(composite.section) is not None or not composite.is_flat else ""
    try:
        part = architecture_of(language["model_type"])
        said = (
            document[inside].get(TIE_KEY, False)
            if inside and TIE_KEY in part.model_fields and document.get(inside)
            else False
        )
        if type(said) is not bool and (said is not None or get_key(part, TIE_KEY).null is NULL):
            raise ParamcountError(
                f"= {describe_value(said)}", where=TIE_KEY, expected="true or false"
            )  # checked even if the top-level key decides
        within = read_values(part, language)
        sizes = validate_sizes(part, within.values)
    except ParamcountError as error:
        raise error.add_block(inside) if inside else error from None
    if inside:
        within = within.add_block(inside)
        if TIE_KEY in document and TIE_KEY in within.origin and TIE_KEY not in (document.get(inside) or {}):
            within.origin[TIE_KEY] = Origin("read", (TIE_KEY,))
        within.used.add(TIE_KEY)
    return sizes, str(language["model_type"]), within


def read_encoder(document: Mapping[str, Any]) -> tuple[Sizes, ConfigValues]:
    """The sizes of the vision encoder in a multimodal config, and how they were read."""
    tower, section = get_encoder_config(document)
    section_name = str(tower.section)
    within = read_values(tower, {section_name: section})
    sizes = validate_sizes(tower, within.values)
    if document.get(section_name) is None:
        within = ConfigValues(within.values, dict.fromkeys(within.origin, DEFAULT), set(), within.readers)
    within.used.add(f"{section_name}.model_type")
    return sizes, within


def list_unread_keys(document: Mapping[str, Any], used: set[str], readers: Readers) -> dict[str, Any]:
    """{key: value} of all keys that no field was read or derived from, at the top level and in sections that were read."""
    unread: dict[str, Any] = {}
    sections = {section for section, _ in readers.pairs if section}
    roots = {key.partition(".")[0] for key in used}
    for key, value in document.items():
        if key in sections and isinstance(value, Mapping):
            unread.update((f"{key}.{name}", inner) for name, inner in value.items() if f"{key}.{name}" not in used)
        elif key not in roots:
            unread[key] = value
    return unread


def derive_value(
    derivation: Derivation | Condition, config: RecordingConfig, values: Mapping[str, Any], field: str
) -> Any:
    """The result of a derivation, with a one-line error if a value of the wrong type breaks it."""
    try:
        return derivation(config, values)
    except ParamcountError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        looked_at = ", ".join(dict.fromkeys(config.accessed)) or "the other sizes"
        raise ParamcountError(
            f"cannot be derived from {looked_at}", where=field, expected="a config that the reference can build"
        ) from None


def list_default_sizes(architecture: type[Sizes], origin: Mapping[str, Origin], used: Set[str]) -> list[str]:
    """The fields of sizes that every model has and that the config does not give, not even as null."""
    return [
        field.name
        for field in list_core_sizes(architecture)
        if origin[field.name] is DEFAULT and used.isdisjoint(field.spellings)
    ]


@cache
def list_core_sizes(architecture: type[Sizes]) -> tuple[ConfigField, ...]:
    """The fields that are positive integers in every model."""
    return tuple(field for field in list_fields(architecture) if field.least and not field.optional)
