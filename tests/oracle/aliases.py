"""Every alias of the reference's `attribute_map`, with a value that is not the default: what the reference builds then.

`python -m tests.oracle.aliases [MODEL_TYPE...]` freezes them in tests/data/types.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from paramcount.architectures import split_name
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import NEED_TIMM, build_model, make_config, run_tokens, silence
from tests.test_aliases import make_document
from tests.type_files import save_fact

REFUSED = "refused"
# Aliases with which the reference builds a model that it cannot run, in sizes small enough to try it. {(model type,
# alias): config}
SMALL = {
    ("dbrx", "hidden_size"): {
        "hidden_size": 32, "n_heads": 4, "n_layers": 1, "vocab_size": 96,
        "attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 40},
    },
}  # fmt: skip


class Alias(NamedTuple):
    model_type: str
    alias: str
    key: str


def list_aliases() -> Iterator[Alias]:
    """The aliases of every supported model type that the reference ships a config class of and builds by itself."""
    from transformers import CONFIG_MAPPING

    for model_type in sorted({name for name in MODEL_TYPES if not split_name(name)[1]} - {*NEED_TIMM}):
        for alias, key in sorted(CONFIG_MAPPING[model_type].attribute_map.items()):
            yield Alias(model_type, alias, key)


def list_values(value: object) -> list[Any]:
    """Values to try in the place of a default, the likeliest to be valid first."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [other for other in (2 * value, value // 2, value + 1, type(value)(1)) if other != value]
        case None:
            return [2, 4, 128]
        case list() | tuple() if value:
            return [words for words in ([value[0]] * len(value), [value[-1]] * len(value)) if words != list(value)]
        case _:
            return []


def count_reference(row: Alias, value: object) -> int | str:
    """How many parameters the reference allocates for the default config with this alias; or that it refuses it."""
    small = SMALL.get((row.model_type, row.alias))
    if small and run_tokens({"model_type": row.model_type, **small}, MODEL_TYPES[row.model_type].cls):
        return REFUSED
    try:
        model = build_model(make_document(row.model_type, row.alias, value), MODEL_TYPES[row.model_type].cls)
    except Exception:
        return REFUSED
    return sum(int(parameter.numel()) for parameter in model.parameters())


def find_default(row: Alias) -> object:
    return getattr(make_config(make_document(row.model_type), MODEL_TYPES[row.model_type].cls), row.alias, None)


def find_facts(row: Alias) -> tuple[object, int | str]:
    """(value, total) with a value that changes the total if one does; else with any that the reference builds."""
    usual = count_reference(row, find_default(row))
    found = [(value, count_reference(row, value)) for value in list_values(find_default(row))]
    built = [(value, n) for value, n in found if n != REFUSED]
    changed = [(value, n) for value, n in built if n != usual]
    return (changed or built or found or [(None, usual)])[0]


def freeze(names: Iterable[str] = ()) -> None:
    """Freeze the aliases of some model types, or of all."""
    silence()
    found: dict[str, list[Any]] = {}
    for row in list_aliases():
        if not names or row.model_type in names:
            found.setdefault(row.model_type, []).append([row.alias, row.key, *find_facts(row)])
    for name, rows in found.items():
        save_fact(name, "aliases", rows)


if __name__ == "__main__":
    freeze(sys.argv[1:])
