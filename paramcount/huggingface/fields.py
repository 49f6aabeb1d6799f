"""The sizes of an architecture from a config.json: each from a key, a default or a derivation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from paramcount.architectures import ARCHITECTURES, split_name
from paramcount.architectures import architecture as architecture_of
from paramcount.architectures.encoders import ENCODERS, find_part
from paramcount.errors import (
    FieldName,
    ParamcountError,
    Text,
    count_noun,
    describe_integer,
    describe_value,
    make_choice_error,
    make_phrase,
)
from paramcount.huggingface.multimodal import (
    TIE_KEY,
    check_model_type,
    find_sections,
    get_encoder_config,
    get_language_config,
)
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
from paramcount.sizes.fields import get_info
from paramcount.sizes.key_names import NameFinder, make_key_names
from paramcount.sizes.rules import validate_sizes
from paramcount.sizes.setting_fields import list_settings
from paramcount.sizes.single_layers import PER_LAYER, make_per_layer_error, read_sizes_by_kind
from paramcount.sizes.values import format_input

# {old layer type: its name today}. Source: PreTrainedConfig.layer_types.
OLD_LAYER_TYPES = {
    "mamba": "linear_attention", "attention": "full_attention", "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}  # fmt: skip

# The values that PreTrainedConfig.layer_types accepts, including the old ones.
LAYER_TYPES = (
    "full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention",
    "compressed_sparse_attention", "heavily_compressed_attention", "minimax_m3_sparse", "conv", "moe", "hybrid",
    "hybrid_sliding", "reference_sliding_attention", "linear_attention", "mamba", "attention",
    "deepseek_sparse_attention", "qwen_sparse_attention",
)  # fmt: skip


# Sizes that every model has, though the reference also builds and runs a model in which one of them is 0.
MAY_BE_ZERO = {
    "n_layers", "n_encoder_layers", "n_decoder_layers", "d_ff", "d_encoder_ff", "d_decoder_ff", "d_expert",
    "n_active_experts",
}  # fmt: skip


# The exceptions of a derivation that reads a value of the wrong type.
BROKEN_BY_VALUE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


# Which architectures read which sections of a config: ("", Llama), ("vision_config", SiglipVision)
Readers = tuple[tuple[str, type[Sizes]], ...]


class ConfigValues(NamedTuple):
    """The values that an architecture reads from a config.json.

    Keys are paths from the root of the config.json: "text_config.hidden_size".
    """

    values: dict[str, Any]  # {field: value}
    origin: dict[str, Origin]
    used: set[str]  # keys that fields were read or derived from
    readers: Readers  # the architectures and their sections

    def add_block(self, section: str) -> ConfigValues:
        origin = {field: origin.add_block(section) for field, origin in self.origin.items()}
        used = {f"{section}.{key}" for key in self.used}
        readers = tuple((f"{section}.{inner}" if inner else section, reader) for inner, reader in self.readers)
        return ConfigValues(self.values, origin, used, readers)


class RecordingConfig(dict[str, Any]):
    """A config.json that records which keys a derivation accesses. `prefix`: of its keys, if it is a section."""

    def __init__(self, config: Mapping[str, Any], prefix: str = "") -> None:
        super().__init__(config)
        self.prefix = prefix
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


class Spelling(NamedTuple):
    """A key that a field is read from."""

    name: str  # in the architecture's section, or from the root
    is_plain: bool  # a key of the section itself: no path through nested mappings, and not from the root
    at_root: bool
    path: str  # from the root
    origin: Origin  # of a field that is read from it


class ConfigField(NamedTuple):
    """How to read one field: its `Key` and its type, resolved once per architecture."""

    name: str
    spellings: tuple[Spelling, ...] = ()
    absent: Any = None
    null: Any = None
    at_most: str | None = None
    least: int | None = None  # minimum of an integer
    inner: type[Sizes] | None = None  # the class, if the field is a config itself
    optional: bool = False  # may be None
    at_root: bool = False  # derived from keys outside the architecture's section
    is_core: bool = False  # every model has it
    n_aliases: int = 0  # how many of the first spellings are aliases of one key


def get_limits(info: FieldInfo) -> Iterable[Any]:
    """The limits of an integer field, optional or not."""
    if info.annotation is int:
        return info.metadata
    kinds = getattr(info.annotation, "__args__", ())
    if type(None) not in kinds:
        return ()
    integer = next((kind for kind in kinds if getattr(kind, "__origin__", None) is int), None)
    return [limit for field in getattr(integer, "__metadata__", ()) for limit in field.metadata]


@cache
def list_fields(architecture: type[Sizes]) -> tuple[ConfigField, ...]:
    """The fields of an architecture, in the order in which they are read."""
    fields = []
    for name in architecture.fields:
        info = get_info(architecture, name)
        is_optional = type(None) in (info.annotation, *getattr(info.annotation, "__args__", ()))
        if inner := inner_configs(architecture).get(name):
            fields.append(ConfigField(name, inner=inner, optional=is_optional))
            continue
        key = get_key(architecture, name)
        limits = tuple(get_limits(info))
        minimums = [limit.ge for limit in limits if hasattr(limit, "ge")]
        field = ConfigField(
            name=name,
            spellings=tuple(make_spelling(spelling, architecture.section) for spelling in key.spellings(name)),
            absent=key.absent,
            null=key.null,
            at_most=key.at_most,
            least=minimums[0] if minimums else None,
            optional=is_optional,
            at_root=key.at_root,
            n_aliases=key.n_aliases,
            is_core=not is_optional and (any(minimums) or name in MAY_BE_ZERO),
        )
        fields.append(field)
    return tuple(fields)


def make_spelling(name: str, section: str | None) -> Spelling:
    """How to look up a key. `section`: of the architecture; a leading slash leads out of it."""
    at_root, name = name[0] == "/", name.removeprefix("/")
    path = f"{section}.{name}" if section and not at_root else name
    return Spelling(name, "." not in name and not at_root, at_root, path, Origin("read", (path,)))


def get_section(document: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """The part of a config.json that an architecture reads: the whole file, or a section, empty if missing."""
    if name is None:
        return document
    section = get_value(document, name)
    if section is ABSENT or section is None:
        return {}
    if not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=name, expected="a JSON object")
    return section


def get_value(config: Mapping[str, Any], name: str) -> Any:
    """The value of a key or of a path through nested mappings; ABSENT if there is none."""
    if name in config:
        return config[name]
    first, dot, rest = name.partition(".")
    inner = config.get(first) if dot else None
    return get_value(inner, rest) if isinstance(inner, Mapping) else ABSENT


def check_layer_types(config: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Check layer_types: the reference requires a known type for each layer even if no weight depends on it."""
    types, n_layers = config.get("layer_types"), values.get("n_layers")
    if types is None or n_layers is None:
        return
    if not isinstance(types, (list, tuple)):
        raise ParamcountError(f"= {describe_value(types)}", where="layer_types", expected="a list, one entry per layer")
    if len(types) != n_layers:
        raise ParamcountError(
            f"has {count_noun(len(types), 'entry')} for {count_noun(n_layers, 'layer')}",
            where="layer_types",
            expected="one entry per layer",
        )
    for i, layer_type in enumerate(types):
        if not isinstance(layer_type, str) or layer_type not in LAYER_TYPES:
            raise make_choice_error(layer_type, LAYER_TYPES, where=f"layer_types.{i}")


def read_sizes(architecture: type[Sizes], document: Mapping[str, Any]) -> tuple[Sizes, ConfigValues]:
    """The validated sizes of an architecture from a config.json, and how they were read.

    Raises: ParamcountError that names the keys of the config.json.
    """
    config_values = read_values(architecture, document)
    values, origin, *_ = config_values
    try:
        return validate_sizes(architecture, values), config_values
    except ParamcountError as error:
        raise error.rename(make_key_names(architecture, document, values, origin)) from None


def read_values(architecture: type[Sizes], document: Mapping[str, Any]) -> ConfigValues:
    """The values of an architecture's fields from a config.json, as the reference reads them.

    Raises: ParamcountError for a missing required key, a value of the wrong type, or a failing derivation.
    """
    config = drop_replaced_keys(architecture, get_section(document, architecture.section))
    prefix = f"{architecture.section}." if architecture.section else ""
    values: dict[str, Any] = {}
    origin: dict[str, Origin] = {}
    used: set[str] = set()
    find_name = make_key_names(architecture, document, values, origin)
    readers: Readers = ((architecture.section or "", architecture),)
    recorder = RecordingConfig(config, prefix)
    for field in list_fields(architecture):
        if (inner := field.inner) is not None:
            if field.optional and inner.section and get_value(document, inner.section) in (ABSENT, None):
                values[field.name], origin[field.name] = None, DEFAULT
                used.add(inner.section)
                continue
            if field.name in architecture.named_parts:
                values[field.name], part = read_named_part(architecture, field.name, document, values)
            else:
                values[field.name], part = read_inner_config(inner, document)
            origin.update((f"{field.name}.{name}", source) for name, source in part.origin.items())
            used |= part.used
            readers += part.readers
            continue
        value, source, keys = read_field(field, config, recorder, document, values, find_name, prefix)
        values[field.name], origin[field.name] = value, source
        used.update(keys)
    if PER_LAYER in config or PER_LAYER in document:
        for name, (value, key) in read_single_layers(architecture, document, config, values, find_name).items():
            values[name] = value
            origin[name] = Origin("read", (prefix + key,)) if key else Origin("derived", (prefix + PER_LAYER,))
            used.add(prefix + PER_LAYER)
    recorder.accessed = []
    conditions = architecture.conditions
    if not architecture.own_layer_types:
        conditions = (check_layer_types, *conditions)
    for condition in conditions:
        derive_value(condition, recorder, values, find_name)
    used.update([prefix + key for key in recorder.accessed] if prefix else recorder.accessed)
    for setting in list_settings(architecture).values():
        if setting.check is not None:
            recorder.accessed = []
            derive_value(setting.check, recorder, values, find_name)
    for condition in architecture.root_conditions:
        root = RecordingConfig(document)
        derive_value(condition, root, values, find_name)
        used.update(root.accessed)
    return ConfigValues(values, origin, used, readers)


def read_field(
    field: ConfigField,
    config: Mapping[str, Any],
    recorder: RecordingConfig,
    document: Mapping[str, Any],
    values: Mapping[str, Any],
    find_name: NameFinder,
    prefix: str = "",
) -> tuple[Any, Origin, Iterable[str]]:
    """The value of a field, its origin, and the keys that were used.

    Args:
        field: Of an architecture; not a config itself.
        config: The section of the architecture.
        recorder: The same, for derivations.
        document: The whole config.json.
        values: {field: value} of the fields before it.
        find_name: The names of fields in errors.
        prefix: Of the keys in the section.

    Raises: ParamcountError for a missing required key, a value of the wrong type, or a failing derivation.
    """
    name, spellings, absent, null, at_most, least, _, optional, at_root, _, n_aliases = field
    if n_aliases:
        spellings = (*sort_aliases(spellings[:n_aliases], config), *spellings[n_aliases:])
    used: list[str] = []
    hides_others = False  # a null that a derivation replaces hides the other spellings, as a value does
    for key, is_plain, is_outside, path, origin in spellings:
        value = config.get(key, ABSENT) if is_plain else get_value(document if is_outside else config, key)
        if value is ABSENT or hides_others:
            continue
        used.append(path)
        if value is None and null is not NULL:
            absent, hides_others = (absent, False) if null is ABSENT else (null, callable(null))
            continue
        if least is not None and (type(value) is not int or not least <= value <= LARGEST):  # noqa: SIM102
            if not (optional and value is None):
                is_too_large = type(value) is int and value >= least
                expected = f"an integer of at most {LARGEST:,}" if is_too_large else describe_integer(least)
                raise ParamcountError(f"= {describe_value(value)}", where=path, expected=expected)
        if at_most is not None and value > values[at_most]:
            value = values[at_most]
        if type(value) is list:
            if key == "layer_types":  # by their names today
                value = [OLD_LAYER_TYPES.get(word, word) if isinstance(word, str) else word for word in value]
            value = tuple(value)
        return value, origin, used
    if absent is REQUIRED:
        expected = "" if least is None else describe_integer(least)
        raise ParamcountError("is missing", where=find_name(name), expected=expected)
    if not callable(absent):
        return absent if at_most is None else min(absent, values[at_most]), DEFAULT, used
    is_copied = at_root and document is not recorder
    source, source_prefix = (RecordingConfig(document), "") if is_copied else (recorder, prefix)
    source.accessed = []
    value = derive_value(absent, source, values, find_name)
    accessed = [source_prefix + key for key in source.accessed] if source_prefix else source.accessed
    present = [path for path, key in zip(accessed, source.accessed) if dict.__contains__(source, key)]
    return value, Origin("derived", tuple(dict.fromkeys(present))), (*used, *accessed)


def sort_aliases(aliases: Iterable[Spelling], config: Mapping[str, Any]) -> list[Spelling]:
    """The aliases of one key that a section has, the last one first: each replaces the value of those before it."""
    places = {key: place for place, key in enumerate(config)}
    present = [alias for alias in aliases if alias.name in places]
    return sorted(present, key=lambda alias: places[alias.name], reverse=True)


def read_inner_config(inner: type[Sizes], document: Mapping[str, Any]) -> tuple[Any, ConfigValues]:
    """The value of a field that is a config itself, and how it was read.

    `Sizes` stands for the language model and `Tower` for the vision encoder that the config.json names.
    """
    if inner is Sizes:
        sizes, _, config_values = read_language_model(document)
        return sizes, config_values
    if inner is Tower:
        return read_encoder(document)
    config_values = read_values(inner, document)
    return config_values.values, config_values


def list_common_keys(architecture: type[Sizes]) -> dict[str, str]:
    keys = {key for sizes in architecture.layered.values() for key in sizes}
    return {
        spelling.name: field.name
        for field in list_fields(architecture)
        for spelling in field.spellings
        if spelling.name in keys
    }


def drop_replaced_keys(architecture: type[Sizes], config: Mapping[str, Any]) -> Mapping[str, Any]:
    if PER_LAYER not in config or not architecture.layered:
        return config
    common = set(list_common_keys(architecture).values())
    replaced = {field for sizes in architecture.layered.values() for field in sizes.values()} - common
    fields = [field for field in list_fields(architecture) if field.name in replaced]
    dropped = {spelling.name for field in fields for spelling in field.spellings if not spelling.at_root}
    return {key: value for key, value in config.items() if key not in dropped}


def read_single_layers(
    architecture: type[Sizes],
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    values: Mapping[str, Any],
    find_name: NameFinder,
) -> dict[str, tuple[Any, str]]:
    """{field: (value, key)} from per_layer_config, which only a section with layers may have."""
    outer: Mapping[str, Any] = {}
    if architecture.section:
        outer = document
    elif inner_configs(architecture) and "n_layers" not in architecture.fields:
        outer = config
    if outer.get(PER_LAYER) is not None:
        raise make_per_layer_error()
    if PER_LAYER not in config:
        return {}
    layered, common = architecture.layered, list_common_keys(architecture)

    def read_overrides(js: Mapping[str, Any], sizes: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
        return read_sizes_by_kind(js, sizes, layered, common)

    try:
        overrides: dict[str, tuple[Any, str]] = derive_value(read_overrides, RecordingConfig(config), values, find_name)
    except ParamcountError as error:
        raise error.add_block(architecture.section) if architecture.section else error from None
    return overrides


def read_language_model(document: Mapping[str, Any]) -> tuple[Sizes, str, ConfigValues]:
    """The sizes of the language model in a multimodal config, its architecture, and how the sizes were read."""
    language_config = get_language_config(document)
    sections = find_sections(document)
    name = str(language_config["model_type"])
    section = document.get(sections.section)
    block = sections.section if section is not None or not sections.is_flat else ""
    try:
        architecture = architecture_of(name)
        if block and section:
            check_tie_key(architecture, section)
        sizes, config_values = read_sizes(architecture, language_config)
    except ParamcountError as error:
        raise error.add_block(block) if block else error from None
    if block:
        config_values = config_values.add_block(block)
        if TIE_KEY in document and TIE_KEY in config_values.origin and TIE_KEY not in (section or {}):
            config_values.origin[TIE_KEY] = Origin("read", (TIE_KEY,))
        config_values.used.add(TIE_KEY)
    return sizes, name, config_values


def check_tie_key(architecture: type[Sizes], section: Mapping[str, Any]) -> None:
    """Check tie_word_embeddings in a language model's section, even if the key at the top level decides."""
    if TIE_KEY not in architecture.fields:
        return
    is_tied = section.get(TIE_KEY, False)
    is_null_valid = get_key(architecture, TIE_KEY).null is not NULL
    if type(is_tied) is not bool and not (is_tied is None and is_null_valid):
        raise ParamcountError(f"= {describe_value(is_tied)}", where=TIE_KEY, expected="true or false")


def read_encoder(document: Mapping[str, Any]) -> tuple[Sizes, ConfigValues]:
    encoder, section = get_encoder_config(document)
    section_name = str(encoder.section)
    sizes, config_values = read_sizes(encoder, {section_name: section})
    if document.get(section_name) is None:
        config_values = config_values._replace(origin=dict.fromkeys(config_values.origin, DEFAULT), used=set())
    config_values.used.add(f"{section_name}.model_type")
    return sizes, config_values


def read_named_part(
    architecture: type[Sizes], field: str, document: Mapping[str, Any], values: Mapping[str, Any]
) -> tuple[Sizes, ConfigValues]:
    """The sizes of a part that can be any model, from its section, and how they were read.

    `values`: of the fields before it.
    """
    default, is_supported, ending, section_name, shared = architecture.named_parts[field]
    name = section_name or field
    section = document.get(name)
    if section is not None and not isinstance(section, Mapping):
        raise ParamcountError(f"= {describe_value(section)}", where=name, expected="a JSON object")
    config = dict(default) if section is None else {"model_type": default["model_type"], **section}
    config["architectures"] = default.get("architectures")
    config |= {key: n for key, n in shared(values).items() if type(config.get(key, n)) is int}  # else it is refused
    model_type = check_model_type(config["model_type"], name)
    kind = inner_configs(architecture)[field]
    registry = ARCHITECTURES if kind is Sizes else ENCODERS
    of_type = [known for known in registry if split_name(known)[0] == model_type]
    part_name = next((known for known in of_type if ending and known.endswith(ending)), model_type)
    if not of_type or not is_supported(part := find_part(kind, part_name)):
        raise ParamcountError(
            f"= {describe_value(model_type)} is not supported as {name}",
            where=f"{name}.model_type",
            expected=f"a model type such as {default['model_type']}",
        )
    try:
        sizes, config_values = read_sizes(part, config)
    except ParamcountError as error:
        raise error.add_block(name) from None
    config_values.used.add("model_type")
    config_values = config_values.add_block(name)
    if section is None:
        config_values = config_values._replace(origin=dict.fromkeys(config_values.origin, DEFAULT), used={name})
    return sizes, config_values


def list_unread_keys(document: Mapping[str, Any], used: set[str], readers: Readers) -> dict[str, Any]:
    """{key: value} of all keys that no field was read or derived from.

    Includes the keys at the top level and those in sections that an architecture reads.
    """
    unread: dict[str, Any] = {}
    sections = {section for section, _ in readers if section}
    dotted = [key for key in used if "." in key]
    blocks = {key[:end] for key in dotted for end, letter in enumerate(key) if letter == "."}

    def look_into(block: Mapping[str, Any], prefix: str) -> None:
        for name, value in block.items():
            key = f"{prefix}{name}" if prefix else name  # a mapping may have keys that are no strings
            if key in sections and isinstance(value, Mapping):
                look_into(value, f"{key}.")
            elif key not in used and key not in blocks:
                unread[key] = value

    look_into(document, "")
    return unread


def derive_value(
    derivation: Derivation | Condition, config: RecordingConfig, values: Mapping[str, Any], find_name: NameFinder
) -> Any:
    """The result of a derivation, with a one-line error if a value of the wrong type breaks it."""
    try:
        return derivation(config, values)
    except ParamcountError as error:
        raise error.rename(find_name) from None
    except BROKEN_BY_VALUE as error:
        key = config.accessed[-1] if config.accessed else ""
        if isinstance(error, KeyError) and error.args == (key,) and not dict.__contains__(config, key):
            raise ParamcountError("is missing", where=key) from None
        raise make_derivation_error(derivation, config, values).rename(find_name) from None


def make_derivation_error(
    derivation: Derivation | Condition, config: RecordingConfig, values: Mapping[str, Any]
) -> ParamcountError:
    """The error for a derivation that fails: it names the keys and the sizes that the derivation accessed."""
    fields = RecordingConfig(values)
    with suppress(*BROKEN_BY_VALUE):
        derivation(config, fields)
    keys = [key for key in dict.fromkeys(config.accessed) if dict.__contains__(config, key)]
    named: list[tuple[Text, Any]] = [(key, config.get(key)) for key in keys]
    named += [(FieldName(field), values[field]) for field in dict.fromkeys(fields.accessed) if field in values]
    expected = "a value that the reference accepts"
    if not named:
        return ParamcountError("the reference cannot build this config", expected="a valid config.json")
    (where, value), *others = sorted(named, key=lambda item: type(item[1]) is int and item[1] > 0)
    found = make_phrase(f"{format_if_short(value)} is invalid".strip())
    for i, (name, other) in enumerate(others):
        separator = " with " if i == 0 else " and " if i == len(others) - 1 else ", "
        found += separator + make_phrase(name) + format_if_short(other)
    return ParamcountError(found, where=where, expected=expected)


def format_if_short(value: object) -> str:
    """ " = " and a value; empty for a JSON object or a list of lists."""
    items = value if isinstance(value, (list, tuple)) else (value,)
    return "" if any(isinstance(item, (dict, list, tuple)) for item in items) else f" = {format_input(value)}"


def list_default_sizes(architecture: type[Sizes], origin: Mapping[str, Origin], used: Set[str]) -> list[str]:
    """The sizes that every model has but that the config does not state, not even as null."""
    return [
        field.name
        for field in list_core_sizes(architecture)
        if origin[field.name] is DEFAULT and used.isdisjoint(spelling.path for spelling in field.spellings)
    ]


@cache
def list_core_sizes(architecture: type[Sizes]) -> tuple[ConfigField, ...]:
    return tuple(field for field in list_fields(architecture) if field.is_core)
