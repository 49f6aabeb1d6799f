"""Sizes of an architecture: typed fields, the config.json key that each is read from, and what must hold between them.

`fields` declares them, `derivations` (with `layer_types`, `rotary`, `mixers` and `single_layers`) works out sizes that no key gives, `rules`
checks sizes against each other, `conditions` checks keys of a config.json that no size depends on, `values` formats and parses values.
"""

from paramcount.sizes.derivations import (
    SLIDING,
    class_ends,
    d_model_per_head,
    equal_to,
    flag,
    full_every,
    part_of,
    per_layer,
    rotary_part,
    scattered_dense_layers,
    unvisited,
)  # fmt: skip
from paramcount.sizes.fields import (
    ABSENT,
    DEFAULT,
    LARGEST,
    MOST_NAMED,
    NULL,
    REQUIRED,
    SET,
    USUAL,
    Condition,
    Derivation,
    Flag,
    Indices,
    Key,
    Natural,
    Origin,
    Positive,
    Sizes,
    Tower,
    Widths,
    Word,
    Words,
    before_lm_head,
    derived,
    hf,
    inner_configs,
    key_of,
)  # fmt: skip

__all__ = [
    "ABSENT", "DEFAULT", "LARGEST", "MOST_NAMED", "NULL", "REQUIRED", "SET", "SLIDING", "USUAL", "Condition", "Derivation", "Flag", "Indices",
    "Key", "Natural", "Origin", "Positive", "Sizes", "Tower", "Widths", "Word", "Words",
    "before_lm_head", "class_ends", "d_model_per_head", "derived", "equal_to",
    "flag", "full_every", "hf", "inner_configs", "key_of", "part_of", "per_layer", "rotary_part", "scattered_dense_layers", "unvisited",
]  # fmt: skip
