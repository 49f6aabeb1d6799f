"""What the reference asks of the keys of a config.json whether or not a size is read from them: types of values, names of activations,
kinds of rotary positions. settings.json holds it for each of its config classes; tests/oracle/settings.py finds it out by trying."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, find_nearest, make_choice_error

TABLE = Path(__file__).with_name("settings.json")
NAMES = {
    "i": "an integer",
    "f": "a number with a decimal point",
    "b": "true or false",
    "s": "a string",
    "l": "a list",
    "d": "a mapping",
    "n": "null",
}
TYPES = {"i": int, "f": float, "b": bool, "s": str, "l": list, "d": dict, "n": type(None)}
AUTO = "*"  # before the model type that a section is of unless it names another
ACTIVATIONS = (  # of transformers.activations.ACT2CLS, those without weights
    "gelu", "gelu_10", "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate", "hardswish", "laplace",
    "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2", "relu6", "sigmoid", "silu", "sqrtsoftplus", "swish", "tanh",
)  # fmt: skip
# {kind of rotary positions: the keys that it needs}, as RotaryEmbeddingConfigMixin checks them; defaults stand in for the others.
ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "default": (), "proportional": (), "linear": ("factor",), "dynamic": ("factor",), "yarn": ("factor",), "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}  # fmt: skip

# More keys that a kind needs, unless standardize_rope_params fills them in from the rest of the config.
UNFILLED_ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "proportional": ("rope_theta",), "yarn": ("original_max_position_embeddings",),
    "longrope": ("original_max_position_embeddings",),
    "llama3": ("original_max_position_embeddings", "rope_theta"),
}  # fmt: skip

IGNORE_ROPE = ("Cohere2MoeConfig",)  # their code replaces these keys before they are checked
PASS_ROPE_ON = ("FuyuConfig", "Qwen2VLConfig", "Qwen2_5_VLConfig")  # to their language model, which fills keys in


class Settings(NamedTuple):
    """The requirements of a config class of the reference."""

    types: dict[str, frozenset[type]]  # {key: types of its values}
    letters: dict[str, str]  # {key: the same types as letters of NAMES}
    activations: dict[str, tuple[str, ...]]  # {key: the names that it takes}
    sections: dict[str, str]  # {key of a section: its class, or AUTO and a model type}
    rope: tuple[str, ...] | None  # kinds of rotary positions; None if any is taken
    ignores_rope: bool = False
    fills_rope: bool = True  # with what its kind of rotary positions needs and the config says elsewhere


@cache
def load_table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


@cache
def get_settings(name: str) -> Settings:
    """The settings of a config class."""
    table = load_table()
    letters = {key: types for types, keys in table["keys"].get(name, {}).items() for key in keys.split()}
    return Settings(
        {key: frozenset(TYPES[letter] for letter in word.rstrip("ax")) for key, word in letters.items()},
        letters,
        {
            key: (*ACTIVATIONS, "xielu") if word.endswith("x") else ACTIVATIONS
            for key, word in letters.items()
            if word.endswith(("a", "x"))
        },
        table["sections"].get(name, {}),
        (*ROPE_KEYS, *table["rope"][name]) if name in table["rope"] else None,
        name in IGNORE_ROPE,
        name in table["rope"] or name in PASS_ROPE_ON or "rope_parameters" in letters,
    )


def check_settings(document: Mapping[str, Any], model_type: str) -> None:
    """Raises: ParamcountError for a value that the reference rejects or cannot build or run a model with."""
    name = load_table()["types"].get(model_type)
    if name is not None:  # else the config class is not the reference's own
        check_class(document, get_settings(name))


def check_class(config: Mapping[str, Any], settings: Settings) -> None:
    for key, value in config.items():
        types = settings.types.get(key)
        if types is not None and type(value) not in types:
            check_type(value, key, settings.letters[key])
    for key, known in settings.activations.items():
        value = config.get(key)
        if isinstance(value, str) and value not in known:
            raise ParamcountError(
                f"= {describe_value(value)}",
                where=key,
                expected="an activation of transformers without weights",
                nearest=find_nearest(value, known),
            )
    if not settings.ignores_rope and (rope := config.get("rope_scaling") or config.get("rope_parameters")):
        key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
        # PreTrainedConfig fills in an undeclared rope_scaling too, if the config also has an undeclared rope_theta.
        undeclared_theta = bool(config.get("rope_theta")) and "rope_theta" not in settings.types
        filled = settings.fills_rope or (key == "rope_scaling" and undeclared_theta)
        check_rope(rope, settings.rope, key, filled=filled)
    for key, name in settings.sections.items():
        check_section(config.get(key), key, name)


def check_section(section: object, key: str, name: str) -> None:
    """A config inside a config: of one class, or of that of its own model type."""
    if not isinstance(section, Mapping):
        return
    if name.startswith(AUTO):
        model_type = section.get("model_type", name.removeprefix(AUTO))
        name = load_table()["types"].get(model_type, "") if isinstance(model_type, str) else ""
    try:
        check_class(section, get_settings(name))
    except ParamcountError as error:
        raise error.add_block(key) from None


def check_type(value: object, key: str, letters: str) -> None:
    """Raises if a value is of none of these types; a list may be any sequence, a mapping may stand for a special float."""
    special = isinstance(value, Mapping) and "__float__" in value and "f" in letters
    if special or (isinstance(value, tuple) and "l" in letters) or (isinstance(value, Mapping) and "d" in letters):
        return
    raise ParamcountError(
        f"= {describe_value(value)}", where=key, expected=" or ".join(NAMES[letter] for letter in letters.rstrip("ax"))
    )


def check_rope(rope: object, kinds: tuple[str, ...] | None, key: str, *, filled: bool) -> None:
    """Raises for an unknown kind of rotary positions, or if a key that the kind needs is missing, also for one kind of layer.

    A class without rotary positions (`kinds` is None) takes any kind, but checks these keys too.
    `filled`: the reference takes some missing keys from the rest of the config.
    """
    if kinds is None and not isinstance(rope, Mapping):
        return
    if not isinstance(rope, Mapping):
        raise ParamcountError(f"= {describe_value(rope)}", where=key, expected="a mapping")
    if blocks := {name: block for name, block in rope.items() if isinstance(block, Mapping)}:
        for name, block in blocks.items():
            check_rope(block, kinds, f"{key}.{name}", filled=filled)
        return
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kinds is not None and kind not in kinds:
        raise make_choice_error(kind, kinds, where=f"{key}.rope_type")
    for needed in (*ROPE_KEYS.get(str(kind), ()), *(() if filled else UNFILLED_ROPE_KEYS.get(str(kind), ()))):
        if needed not in rope:
            raise ParamcountError(
                f"is missing for rope_type = {kind}",
                where=f"{key}.{needed}",
                expected="a list" if needed[:5] in ("short", "long_") else "a number",
            )
