"""The names that a config.json has for the sizes in an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paramcount.errors import FieldName
from paramcount.sizes import Origin, Sizes, get_key, inner_configs
from paramcount.sizes.settings import get_config_class, get_settings

NameFinder = Callable[[str], FieldName | str]

# Sizes without a key of their own that errors mention.
DERIVED_SIZES = {
    "d_head": "head size", "d_encoder_head": "encoder head size", "d_decoder_head": "decoder head size",
    "d_mamba_head": "Mamba head size", "d_qk_head": "query and key head size", "d_qk": "query and key size",
    "d_rope": "rotary dimension", "d_rope_sliding": "rotary dimension of sliding attention",
    "d_sliding_rope": "rotary dimension of sliding attention", "d_index_rope": "rotary dimension of the indexer",
    "d_far_rope": "rotary dimension of compressed attention", "d_ff": "MLP hidden size", "d_inner": "inner size",
    "d_gate": "gate size", "dense_layers": "layers without experts",
    "unrotated_layers": "layers without rotary embedding", "n_kv_heads": "number of KV heads",
    "dt_rank": "time step rank",
}  # fmt: skip


def make_key_names(
    architecture: type[Sizes], document: Mapping[str, Any], values: Mapping[str, Any], origin: Mapping[str, Origin]
) -> NameFinder:
    """The name of each size: the key that it was read from, otherwise the main key that it could be read from.

    A size without a key has a description: "head size".
    """

    def find_name(path: str) -> FieldName | str:
        source = origin.get(path)
        if source and source.kind == "read":
            return FieldName(source.keys[0])
        block, _, field = path.rpartition(".")
        reader = architecture
        for name in block.split(".") if block else ():
            value = values.get(name)
            found = type(value) if isinstance(value, Sizes) else inner_configs(reader).get(name)
            if found is None:
                return FieldName(path)
            reader = found
        if field not in reader.fields or field in inner_configs(reader):
            return FieldName(path)
        section = reader.section or ""
        if spellings := get_key(reader, field).spellings(field):
            key = find_main_key(spellings, document.get(section, {}) if section else document)
            return FieldName(key[1:] if key[0] == "/" else f"{section}.{key}" if section else key)
        description = DERIVED_SIZES.get(field) or describe_field(field)
        return f"{description} of {section or block}" if section or block else description

    return find_name


def find_main_key(spellings: Sequence[str], config: object) -> str:
    """The key that the config class of a config.json or a section uses itself, rather than an alias."""
    own_keys = get_settings(find_config_class(config)).letters
    return next((key for key in spellings if key in own_keys), spellings[0])


def describe_defaults(config: object) -> str:
    """Whose defaults stand for missing keys.

    >>> describe_defaults({"model_type": "bert"}), describe_defaults({"model_type": "Yi"})
    ('BertConfig', 'the reference')
    """
    return find_config_class(config) or "the reference"


def find_config_class(config: object) -> str:
    """The config class of the reference for a config.json or a section; empty if it is unknown."""
    return get_config_class(config.get("model_type") if isinstance(config, Mapping) else None)


def describe_field(field: str) -> str:
    """The name of a field in words.

    >>> describe_field("n_hash_tables"), describe_field("d_shared_expert"), describe_field("layer_groups")
    ('number of hash tables', 'shared expert size', 'layer groups')
    """
    kind, _, rest = field.partition("_")
    words = (rest if kind in ("n", "d") else field).replace("_", " ")
    return {"n": f"number of {words}", "d": f"{words} size"}.get(kind, words)
