"""What the reference asks of the keys of its config classes, by trying: types of values, names of activations, kinds of
rotary positions. And what they say themselves: the defaults of missing keys.

`python -m tests.oracle.settings [MODEL_TYPE...]` freezes settings.json and defaults.json of paramcount/sizes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.architectures.encoders import ENCODERS, SECTION_ENCODERS
from paramcount.counting import count_sizes
from paramcount.huggingface.config import get_class_name, get_model_type, read_whole_model
from paramcount.sizes.fields import DEFAULTS, find_config_class
from paramcount.sizes.rotary_settings import POSITIONS, USUAL_BASE, USUAL_POSITIONS
from paramcount.sizes.setting_fields import OF_REFERENCE, list_settings
from paramcount.sizes.settings import AUTO, AXIAL, TABLE, get_settings, read_line
from tests.cases import load_cases
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import (
    SMALL_ENOUGH_TO_RUN,
    build_model,
    can_be_built,
    make_config,
    make_document,
    run_tokens,
    set_path,
    silence,
)
from tests.refresh_index import list_classes as list_declared

# {letter of the table: values of that type}
SAMPLES: dict[str, list[Any]] = {
    "i": [1],
    "f": [0.5],
    "b": [True],
    "s": ["x"],
    "l": [[], [1, 2], [0.5, 1.5], ["x"]],
    "d": [{}],
    "n": [None],
}

Small = tuple[dict[str, Any], str]  # a config that is quickly built, and its class
OLDER_ROPE_TYPES = ("mrope", "su", "xdrope")


def config_class(model_type: str) -> Any:
    from transformers import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type]


def list_supported() -> list[str]:
    """Model types that the reference ships."""
    from transformers.models.auto import configuration_auto

    return sorted(
        ({split_name(name)[0] for name in ARCHITECTURES} | set(ENCODERS)) & set(configuration_auto.CONFIG_MAPPING_NAMES)
    )


def list_sections(cls: Any) -> dict[str, str]:
    """{key: class, or AUTO and a model type} of the configs inside a config class."""
    from transformers import PreTrainedConfig

    found = {}
    for key, spec in cls.sub_configs_defaults.items():
        fixed = issubclass(spec.config_class, PreTrainedConfig)
        found[key] = spec.config_class.__name__ if fixed else AUTO + str(spec.model_type)
    return found


def list_classes(names: Iterable[str] = ()) -> tuple[dict[str, str], dict[str, Any]]:
    """{model type: name of its config class} and {name: class} of some model types, or of all that are supported, with
    those of sections that the reference ships.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    types = {name: config_class(name) for name in names or list_supported()}
    for cls in list(types.values()):
        for named in list_sections(cls).values():
            if named.startswith(AUTO) and named[1:] in CONFIG_MAPPING_NAMES:
                types.setdefault(named[1:], config_class(named[1:]))
    found = {cls.__name__: cls for cls in types.values()}
    for cls in list(found.values()):
        found |= list_inner_classes(cls)
    return {name: cls.__name__ for name, cls in sorted(types.items())}, found


def list_inner_classes(cls: Any) -> dict[str, Any]:
    """The classes of sections that are of one class always, and of theirs."""
    from transformers import PreTrainedConfig

    found: dict[str, Any] = {}
    for spec in cls.sub_configs_defaults.values():
        if issubclass(spec.config_class, PreTrainedConfig):
            found |= {spec.config_class.__name__: spec.config_class} | list_inner_classes(spec.config_class)
    return found


def list_letters(cls: Any, key: str) -> str:
    """The types that a class takes for a key: all but those that its validation refuses."""
    taken = "s" if "Literal" in str(next(field.type for field in fields(cls) if field.name == key)) else ""
    return "".join(
        letter
        for letter, values in SAMPLES.items()
        if letter in taken or any(accepts_value(cls, key, value) for value in values)
    )


def accepts_value(cls: Any, key: str, value: object) -> bool:
    """Whether a class takes a value: it does unless its validation refuses the value for its type."""
    from huggingface_hub.errors import StrictDataclassFieldValidationError

    try:
        cls(**{key: deepcopy(value)})
    except StrictDataclassFieldValidationError as error:
        return f"'{key}'" not in str(error)
    except Exception:  # of another key, or of this value and not of its type
        return True
    return True


@cache
def make_small(model_type: str) -> Small:
    """A config that is quickly built and run, and its class: a frozen one, or one drawn for a new model type."""
    for case in load_cases().get(model_type, ()):
        if "refused" not in case:
            return case["config"], case["config"].get("architectures", [MODEL_TYPES[model_type].cls])[0]
    rng, cls = random.Random(7), architecture(model_type).reference  # noqa: S311
    drawn = (make_document(model_type, rng.choice, {}) for _ in range(1000))
    small = (
        document for document in drawn if (count_reference(document, cls) or SMALL_ENOUGH_TO_RUN) < SMALL_ENOUGH_TO_RUN
    )
    return next((document, cls) for document in small if run_tokens(document, cls) is None)


def count_reference(document: dict[str, Any], cls: str) -> int | None:
    try:
        model = build_model(document, cls)
    except Exception:
        return None
    return sum(int(parameter.numel()) for parameter in model.parameters())


def list_small(model_type: str) -> Iterator[Small]:
    """The same, with each vision encoder that has no section of its own if the type takes them."""
    yield make_small(model_type)
    if model_type == "vision-encoder-decoder":
        for name in sorted(set(ENCODERS) - set(SECTION_ENCODERS)):
            yield {**make_small(model_type)[0], "encoder": {"model_type": name}}, make_small(model_type)[1]


def change_config(small: Small, path: str, value: object) -> Small:
    document = deepcopy(small[0])
    set_path(document, path, value)
    return document, small[1]


def classify_activation(small: Small, path: str) -> str:
    """`a` if a key names an activation, `x` if it may be xIELU, whose weights are declared.

    Empty if the reference never looks it up, or takes one alone.
    """
    if count_reference(*change_config(small, path, "no such activation")) is not None or None in (
        count_reference(*change_config(small, path, word)) for word in ("gelu", "relu")
    ):
        return ""
    document, cls = change_config(small, path, "xielu")
    sizes, _, _ = read_whole_model(document, get_model_type(document), get_class_name(document))
    return "x" if count_reference(document, cls) == count_sizes(sizes).total else "a"


def list_dropout_keys(cls: Any, document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[Any, str, str]]:
    """(class, where it stands, key) of what is named like a probability of dropout, in the sections too."""
    for field in fields(cls):
        if "drop" in field.name and "f" in list_letters(cls, field.name):
            yield cls, prefix, field.name
    for key in list_sections(cls):
        if section := find_section_class(cls, key, document):
            yield from list_dropout_keys(section, document.get(key) or {}, f"{prefix}{key}.")


def needs_probability(small: Small, path: str) -> bool:
    """Whether a model can be built and run with 0.5 under a key, but not with 1.5."""

    def runs(value: float) -> bool:
        changed = change_config(small, path, value)
        return count_reference(*changed) is not None and run_tokens(*changed) is None

    return not runs(1.5) and runs(0.5)


def list_probabilities(model_types: Iterable[str]) -> dict[str, list[str]]:
    """{class: keys that need a probability, for each model type that reads them}."""
    found: dict[tuple[str, str], bool] = {}
    for model_type in model_types:
        small = make_small(model_type)
        for holder, prefix, key in list_dropout_keys(config_class(model_type), small[0]):
            place = holder.__name__, key
            if found.get(place, True):  # not refuted by an earlier model type
                found[place] = needs_probability(small, prefix + key)
    probabilities: dict[str, list[str]] = {}
    for (name, key), is_needed in sorted(found.items()):
        if is_needed:
            probabilities.setdefault(name, []).append(key)
    return probabilities


def find_section_class(cls: Any, key: str, document: Mapping[str, Any]) -> Any:
    """The class of a section of a config.json; None for a type that the reference names but does not ship."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    named = list_sections(cls)[key]
    if not named.startswith(AUTO):
        return cls.sub_configs_defaults[key].config_class
    model_type = (document.get(key) or {}).get("model_type", named[1:])
    return config_class(model_type) if model_type in CONFIG_MAPPING_NAMES else None


def list_activation_keys(cls: Any, document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[Any, str, str]]:
    """(class, where it stands, key) of what is named like an activation, in the sections of a config.json too."""
    for field in fields(cls):
        if "act" in field.name and "s" in list_letters(cls, field.name) and "f" not in list_letters(cls, field.name):
            yield cls, prefix, field.name
    for key in list_sections(cls):
        if section := find_section_class(cls, key, document):
            yield from list_activation_keys(section, document.get(key) or {}, f"{prefix}{key}.")


def list_rope_types(model_type: str) -> list[str] | None:
    """The older words for kinds of rotary positions that a model type can be built with.

    None if it builds with any word.
    """
    words = set(getattr(make_config(*make_small(model_type)), "layer_types", None) or ())
    for key, place_in in (
        ("rope_scaling", lambda block: block),
        ("rope_parameters", lambda block: {word: {"rope_theta": 10000.0, **block} for word in words}),
    ):
        if count_reference(*change_config(make_small(model_type), key, place_in({"rope_type": "default"}))) is None:
            continue  # the other way to write them is the only one
        if (
            count_reference(*change_config(make_small(model_type), key, place_in({"rope_type": "no such kind"})))
            is None
        ):
            break
    else:
        return None
    return [
        word
        for word in OLDER_ROPE_TYPES
        if any(
            count_reference(*change_config(make_small(model_type), "rope_scaling", rope_numbers(word, n))) is not None
            for n in (1, 2, 3, 4, 6, 8)
        )
    ]


def list_section_classes(cls: Any, document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[Any, str]]:
    """(class, its place with a dot) of the sections of a config.json, and of theirs."""
    for key in list_sections(cls):
        if section := find_section_class(cls, key, document):
            yield section, f"{prefix}{key}."
            inner = document.get(key)
            yield from list_section_classes(section, inner if isinstance(inner, dict) else {}, f"{prefix}{key}.")


def classify_section_rope(small: Small, place: str) -> list[str] | str | None:
    """What the table says of the class of a section: AXIAL if only this kind of rotary positions is built.

    None if the model is built with any word, or not even with "default".
    """

    def is_built(kind: str) -> bool:
        rope = {"rope_type": kind, "rope_theta": 10000.0, "factor": 2.0, "partial_rotary_factor": 0.5}
        return count_reference(*change_config(small, place + "rope_parameters", rope)) is not None

    if not is_built("default") or is_built("no such kind"):
        return None
    return [] if is_built("linear") else AXIAL if is_built(AXIAL) else None


def rope_numbers(word: str, n: int) -> dict[str, Any]:
    """What a kind of rotary positions may need, with factors for n pairs."""
    return {
        "rope_type": word,
        "factor": 2.0,
        "original_max_position_embeddings": 8,
        "short_factor": [1.0] * n,
        "long_factor": [1.0] * n,
    }


def list_section_ropes(model_types: Iterable[str], known: Set[str]) -> dict[str, Any]:
    """{class: what the table says} of the classes of sections that are not known from model types of their own."""
    found: dict[str, Any] = {}
    for model_type in model_types:
        small = make_small(model_type)
        for cls, place in list_section_classes(config_class(model_type), small[0]):
            name = cls.__name__
            if name in known or name in found or "rope_parameters" not in {field.name for field in fields(cls)}:
                continue
            found[name] = classify_section_rope(small, place)
    return {name: kinds for name, kinds in found.items() if kinds is not None}


def group_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """{letters: the keys, with spaces}, which is shorter."""
    found: dict[str, list[str]] = {}
    for key, types in sorted(keys.items()):
        found.setdefault(types, []).append(key)
    return {types: " ".join(names) for types, names in sorted(found.items())}


def make_table(names: Collection[str] = ()) -> dict[str, Any]:
    """The file of settings: of all model types, or as it is but for some model types and their config classes."""
    silence()
    found = find_settings(names)
    types = found.pop("types")
    if names:
        known = json.loads(TABLE.read_text(encoding="utf-8"))
        types = known.pop("types") | types
        found |= {name: facts for name, facts in known.items() if name not in {types[one] for one in names}}
    return {"types": dict(sorted(types.items())), **dict(sorted(found.items()))}


def find_settings(names: Collection[str]) -> dict[str, Any]:
    """What the config classes of some model types take, or of all."""
    from transformers import PreTrainedConfig

    types, found = list_classes(names)
    built = [name for name in names or MODEL_TYPES if "." not in name]
    usual = {field.name for field in fields(PreTrainedConfig)}
    keys = {
        name: {field.name: list_letters(cls, field.name) for field in fields(cls) if field.name not in usual}
        for name, cls in found.items()
    }
    ropes: dict[str, Any] = {}
    for model_type in built:
        cls = config_class(model_type)
        for small in list_small(model_type):
            for holder, prefix, key in list_activation_keys(cls, small[0]):
                if letter := classify_activation(small, prefix + key):
                    held = keys[holder.__name__]
                    held[key] = held[key].rstrip("aAx") + letter
        if (kinds := list_rope_types(model_type)) is not None:
            ropes[cls.__name__] = kinds
    built = [name for name in built if can_be_built(name)]
    checked = {
        name: {key: types for key, types in held.items() if types and set(types) != set(SAMPLES)}
        for name, held in keys.items()
    }
    facts = {
        "sections": {name: inside for name, cls in found.items() if (inside := list_sections(cls))},
        "keys": {name: group_keys(held) for name, held in checked.items()},
        "rope": ropes | list_section_ropes(built, set(ropes)),
        "probabilities": {name: " ".join(held) for name, held in list_probabilities(built).items()},
    }
    for fact in ("ignores_rope", "passes_rope_on"):  # the declarations know them
        stating = (find_config_class(cls) for _, cls in list_declared("architectures") if fact in vars(cls))
        facts[fact] = {name: True for name in stating if name in found}
    classes = {name for held in facts.values() for name in held}
    return {"types": types} | {n: {what: held[n] for what, held in facts.items() if n in held} for n in classes}


def make_defaults() -> dict[str, dict[str, Any]]:
    """{config class: {key: default}} of the keys that sizes and settings are read from, those without a default left
    out.

    A null is none of them: what it means is the declaration's. Nor is a size with a decimal point.
    """
    _, found = list_classes()
    table: dict[str, dict[str, Any]] = {}
    for _, declared in (*list_declared("architectures"), *list_declared("parts")):
        cls = found.get(find_config_class(declared))
        if cls is None:
            continue
        known = list_defaults(cls)
        for name, field in declared.fields.items():
            spellings = field.key.spellings(name) if field.key else ()
            key = next((key for key in spellings if type(known.get(key)) in (bool, int, str, list)), None)
            if key is not None:
                table.setdefault(cls.__name__, {})[key] = known[key]
        for setting in list_settings(declared).values():
            key = next((key for key in setting.names if type(known.get(key)) in (bool, int, str, float)), None)
            if setting.default is OF_REFERENCE and key is not None:
                table.setdefault(cls.__name__, {})[key] = known[key]
        if "rope" in list_settings(declared):  # it reads both of these if they are missing
            theta: Any = getattr(cls, "default_theta", None)  # an object where kinds of layers differ
            rotary = {"rope_theta": int(theta) if type(theta) is float else None, POSITIONS: known.get(POSITIONS)}
            own = {key: n for key, n in rotary.items() if n not in (None, USUAL_BASE, USUAL_POSITIONS)}
            table.setdefault(cls.__name__, {}).update(own)
    return {name: dict(sorted(held.items())) for name, held in sorted(table.items())}


def list_defaults(cls: Any) -> dict[str, Any]:
    """{key: default} of a config class, under the names that it has for them."""
    found: dict[str, Any] = {}
    for field in fields(cls):
        if field.default_factory is not MISSING:
            value = field.default_factory()
            found[field.name] = list(value) if isinstance(value, tuple) else value
        elif field.default is not MISSING:
            found[field.name] = list(field.default) if isinstance(field.default, tuple) else field.default
    aliases = {alias: found[name] for alias, name in cls.attribute_map.items() if name in found}
    return {**aliases, **found}


def format_lines(table: Mapping[str, Any]) -> str:
    """A file with a line for each config class, of which one alone can be read."""
    lines = (f"{json.dumps(name)}: {json.dumps(held)}" for name, held in table.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def freeze(names: Iterable[str] = ()) -> None:
    """Freeze the defaults, and what the config classes of some model types take, or of all."""
    own = {split_name(name)[0] for name in names} & {*list_supported()}
    if names and not own:
        return
    known = json.loads(TABLE.read_text(encoding="utf-8"))
    types, classes = list_classes(own)
    known["types"] |= types  # by which the defaults of a new one are found, as by the sections
    known |= {name: {"sections": list_sections(cls)} for name, cls in classes.items() if name not in known}
    write_table(TABLE, known)
    write_table(DEFAULTS, make_defaults())
    write_table(TABLE, make_table(own))


def write_table(path: Path, table: Mapping[str, Any]) -> None:
    path.write_text(format_lines(table), encoding="utf-8")
    for cached in (read_line, get_settings, find_config_class):
        cached.cache_clear()


if __name__ == "__main__":
    freeze(sys.argv[1:])
