"""Checks of config.json keys whether or not a size is read from them.

The reference requires types of values, names of activations and kinds of rotary positions. settings.json lists them for
each of its config classes; tests/oracle/settings.py determines them by trying.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, find_nearest, list_choices, make_choice_error

TABLE = Path(__file__).with_name("settings.json")
NAMES = {
    "i": "an integer",
    "f": "a number with a decimal point",
    "b": "true or false",
    "s": "a string",
    "l": "a list",
    "d": "a JSON object",
    "n": "null",
}
TYPES = {"i": int, "f": float, "b": bool, "s": str, "l": list, "d": dict, "n": type(None)}
AUTO = "*"  # prefix of the default model type of a section that may have any model type
ACTIVATIONS = (  # of transformers.activations.ACT2CLS, those without weights
    "gelu", "gelu_10", "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh", "gelu_python_tanh",
    "gelu_accurate", "hardswish", "laplace", "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2", "relu6",
    "sigmoid", "silu", "sqrtsoftplus", "swish", "tanh",
)  # fmt: skip
WEIGHTED_ACTIVATIONS = ("xielu", "prelu")  # those with weights
COUNTED_ACTIVATION = "xielu"  # the one whose weights an architecture declares
# {kind of rotary positions: its required keys}, as RotaryEmbeddingConfigMixin checks them. Other keys have defaults.
ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "default": (), "proportional": (), "linear": ("factor",), "dynamic": ("factor",), "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"), "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}  # fmt: skip

# {kind: further required keys}, unless standardize_rope_params copies them from the rest of the config.
UNFILLED_ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "proportional": ("rope_theta",), "yarn": ("original_max_position_embeddings",),
    "longrope": ("original_max_position_embeddings",),
    "llama3": ("original_max_position_embeddings", "rope_theta"),
}  # fmt: skip

# {kind: keys that may be missing, but not null}: the first ones because of the checks, the others because rotary
# positions are computed with them.
NO_NULL_ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "yarn": ("original_max_position_embeddings",), "llama3": ("original_max_position_embeddings",),
}  # fmt: skip
NO_NULL_COMPUTED_ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "longrope": ("original_max_position_embeddings",), "proportional": ("partial_rotary_factor",),
}  # fmt: skip

# The names of data types that torch has.
DTYPES = frozenset((
    "bfloat16", "bit", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "bool", "cdouble", "cfloat", "chalf",
    "complex128", "complex32", "complex64", "double", "float", "float16", "float32", "float4_e2m1fn_x2", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "half", "int", "int1",
    "int16", "int2", "int3", "int32", "int4", "int5", "int6", "int64", "int7", "int8", "long", "qint32", "qint8",
    "quint2x4", "quint4x2", "quint8", "short", "uint1", "uint16", "uint2", "uint3", "uint32", "uint4", "uint5",
    "uint6", "uint64", "uint7", "uint8",
))  # fmt: skip

AXIAL = "axial"  # the one kind of vision encoders, for which "default" stands too


class Settings(NamedTuple):
    """The requirements of a config class of the reference."""

    types: dict[str, frozenset[type]]  # {key: types of its values}
    letters: dict[
        str, str
    ]  # {key: these types as letters of NAMES; an activation ends in "a", or "x" if xielu is valid}
    activations: dict[str, tuple[str, ...]]  # {key: the valid names}
    sections: dict[str, str]  # {key of a section: its class, or AUTO and a model type}
    rope: tuple[str, ...] | None  # the valid kinds of rotary positions; None for all
    ignores_rope: bool = False
    fills_rope: bool = True  # whether it copies missing keys of rotary positions from the rest of the config
    probabilities: tuple[str, ...] = ()  # keys of dropout that a model is built or run with: torch checks their range


def find_line(path: Path, name: str) -> bytes:
    """The text of the value of one key in a JSON file that has a line for each; {} if the file lacks it.

    Parsing such a file whole takes as long as counting a model.
    """
    start = f'"{name}": '.encode()
    with path.open("rb") as file:
        line = next((line for line in file if line.startswith(start)), start + b"{}")
    return line.removeprefix(start).strip(b",\n")


@cache
def read_line(path: Path, name: str) -> Mapping[str, Any]:
    """The value of one key in a JSON file that has a line for each; empty if the file lacks it."""
    values: dict[str, Any] = json.loads(find_line(path, name))
    return values


def get_config_class(model_type: object) -> str:
    """The config class of the reference for a model type; "" if the reference has none."""
    return search_config_class(model_type) if isinstance(model_type, str) else ""


@lru_cache(1024)  # more than there are model types
def search_config_class(model_type: str) -> str:
    """The same, found in the text of a long line: as a dictionary it takes a tenth of a megabyte."""
    found = re.search(rf'{re.escape(json.dumps(model_type))}: "(\w+)"'.encode(), find_line(TABLE, "types"))
    return found[1].decode() if found else ""


@cache
def get_settings(name: str) -> Settings:
    """The settings of a config class."""
    facts = read_line(TABLE, name)
    letters = {key: types for types, keys in facts.get("keys", {}).items() for key in keys.split()}
    has_rope, kinds = "rope" in facts, facts.get("rope")
    return Settings(
        types={key: frozenset(TYPES[letter] for letter in word.rstrip("ax")) for key, word in letters.items()},
        letters=letters,
        activations={
            key: (*ACTIVATIONS, COUNTED_ACTIVATION) if word.endswith("x") else ACTIVATIONS
            for key, word in letters.items()
            if word.endswith(("a", "x"))
        },
        sections=facts.get("sections", {}),
        rope=None if kinds is None else ("default", AXIAL) if kinds == AXIAL else (*ROPE_KEYS, *kinds),
        ignores_rope=facts.get("ignores_rope", False),
        fills_rope=has_rope or facts.get("passes_rope_on", False) or "rope_parameters" in letters,
        probabilities=tuple(facts.get("probabilities", "").split()),
    )


def check_settings(document: Mapping[str, Any], model_type: str) -> None:
    """Raises: ParamcountError for a value that the reference rejects or cannot build or run a model with."""
    if name := get_config_class(model_type):  # "": the config class is not part of the reference
        check_class(document, get_settings(name))


def check_class(config: Mapping[str, Any], settings: Settings) -> None:
    """Raises: ParamcountError for a value that the class of these settings rejects."""
    for key, value in config.items():
        types = settings.types.get(key)
        if types is not None and type(value) not in types:
            check_type(value, key, settings.letters[key])
    check_dtype(config)
    for key in settings.probabilities:
        value = config.get(key)
        if isinstance(value, (int, float)) and (value < 0 or value > 1):
            raise ParamcountError(f"= {describe_value(value)}", where=key, expected="a probability from 0 to 1")
    for key, activations in settings.activations.items():
        value = config.get(key)
        if value in WEIGHTED_ACTIVATIONS and value not in activations:
            problem = f"= {describe_value(value)} has parameters, which paramcount does not count for this model type"
            raise ParamcountError(problem, where=key, expected="an activation function without parameters")
        if isinstance(value, str) and value not in activations:
            raise ParamcountError(
                f"= {describe_value(value)}",
                where=key,
                expected="the name of an activation function in transformers, such as silu",
                nearest=find_nearest(value, activations),
            )
    if not settings.ignores_rope and (rope := config.get("rope_scaling") or config.get("rope_parameters")):
        key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
        # PreTrainedConfig fills in an undeclared rope_scaling too, if the config also has an undeclared rope_theta.
        undeclared_theta = bool(config.get("rope_theta")) and "rope_theta" not in settings.types
        filled = settings.fills_rope or (key == "rope_scaling" and undeclared_theta)
        check_rope(rope, settings.rope, key, filled=filled)
    for key, name in settings.sections.items():
        check_section(config.get(key), key, name)


def check_dtype(config: Mapping[str, Any]) -> None:
    """Raises: ParamcountError for an unknown data type: the reference looks its name up in torch, in every section."""
    key = "dtype" if config.get("dtype") is not None else "torch_dtype"
    name = config.get(key)
    if isinstance(name, str) and name not in DTYPES:
        raise ParamcountError(
            f"= {describe_value(name)}",
            where=key,
            expected="the name of a data type in torch, such as bfloat16",
            nearest=find_nearest(name, sorted(DTYPES)),
        )


def check_section(section: object, key: str, name: str) -> None:
    """Check a section of a config. `name`: its class, or AUTO and its default model type."""
    if not isinstance(section, Mapping):
        return
    if name.startswith(AUTO):
        model_type = section.get("model_type", name.removeprefix(AUTO))
        name = get_config_class(model_type)
    try:
        check_class(section, get_settings(name))
    except ParamcountError as error:
        raise error.add_block(key) from None


def check_type(value: object, key: str, letters: str) -> None:
    """Raises: ParamcountError for a value with another type. `letters`: the valid types as letters of NAMES.

    A tuple is a list, and a mapping with the key __float__ is a special float.
    """
    is_list = isinstance(value, tuple) and "l" in letters
    is_mapping = isinstance(value, Mapping) and "d" in letters
    is_special_float = isinstance(value, Mapping) and "__float__" in value and "f" in letters
    if is_list or is_mapping or is_special_float:
        return
    kinds = letters.rstrip("ax").replace("if", "f")
    names = {**NAMES, "f": "a number"} if "i" in letters else NAMES
    expected = list_choices([names[letter] for letter in kinds])
    raise ParamcountError(f"= {describe_value(value)}", where=key, expected=expected)


def check_rope(rope: object, kinds: tuple[str, ...] | None, key: str, *, filled: bool) -> None:
    """Raises: ParamcountError for an unknown kind of rotary positions, or if a required key of the kind is missing.

    Args:
        rope: The value of `key`: a mapping, or a mapping for each kind of layer.
        kinds: The valid kinds. None for a class without rotary positions, which checks the keys of all kinds.
        key: rope_scaling or rope_parameters.
        filled: Whether the reference copies missing keys from the rest of the config.
    """
    if kinds is None and not isinstance(rope, Mapping):
        return
    if not isinstance(rope, Mapping):
        raise ParamcountError(f"= {describe_value(rope)}", where=key, expected="a JSON object")
    if blocks := {name: block for name, block in rope.items() if isinstance(block, Mapping)}:
        for name, block in blocks.items():
            check_rope(block, kinds, f"{key}.{name}", filled=filled)
        return
    check_rope_block(rope, kinds, key, filled=filled)


def check_rope_block(rope: Mapping[str, Any], kinds: tuple[str, ...] | None, key: str, *, filled: bool) -> None:
    """The same for rotary positions of one kind of layers."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kinds is not None and kind not in kinds:
        raise make_choice_error(kind, kinds, where=f"{key}.rope_type")
    unfilled_keys = () if filled else UNFILLED_ROPE_KEYS.get(str(kind), ())
    for name in (*ROPE_KEYS.get(str(kind), ()), *unfilled_keys):
        if name not in rope:
            expected = "a list" if name in ("short_factor", "long_factor") else "a number"
            raise ParamcountError(f"is missing for rope_type = {kind}", where=f"{key}.{name}", expected=expected)
    computed_keys = () if kinds is None else NO_NULL_COMPUTED_ROPE_KEYS.get(str(kind), ())
    for name in (*NO_NULL_ROPE_KEYS.get(str(kind), ()), *computed_keys):
        if rope.get(name, 1) is None:
            raise ParamcountError(f"= null for rope_type = {kind}", where=f"{key}.{name}", expected="a number")
